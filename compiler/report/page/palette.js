// The colours of the actions. Four hues that differ in lightness too, so that they stay apart for people who do not see red,
// green or blue: blue, green, plum, amber. Each is a range: a rank's first stage has the one end, its last the other.
const PALETTE = {
  light: {idle: '#f1f2f4', F: ['#1d4b9c', '#4675c2'], B: ['#2b9a83', '#5cbfa8'], I: ['#6d2c55', '#8f4c71'],
          W: ['#b57606', '#e0a02a'], once: ['#4b5563', '#4b5563']},
  dark: {idle: '#20242b', F: ['#4a7edb', '#7ba3f2'], B: ['#2bb896', '#5fe0bf'], I: ['#a65389', '#c072a6'],
         W: ['#c8921c', '#edc153'], once: ['#9aa4b2', '#9aa4b2']},
};
const NUMBER_INKS = ['#ffffff', '#0d1117'];

const KIND_NAMES = {F: 'forward', B: 'backward', I: 'input gradients', W: 'weight gradients',
                    T: 'sum of tied gradients', N: 'norm', U: 'update'};

const isCompute = kind => 'FBIW'.includes(kind);

function mixed([from, to], share) {
  const part = k => Math.round(parseInt(from.slice(k, k + 2), 16) * (1 - share) + parseInt(to.slice(k, k + 2), 16) * share);
  return '#' + [1, 3, 5].map(k => part(k).toString(16).padStart(2, '0')).join('');
}

// As WCAG 2 defines it.
function contrast(a, b) {
  const light = colour => [1, 3, 5].map(k => parseInt(colour.slice(k, k + 2), 16) / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
      .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

// The style class of an action of a rank's local-th of `held` stages.
function shadeClass(kind, local, held) {
  return isCompute(kind) ? `${kind}-${held > 1 ? Math.round(100 * local / (held - 1)) : 0}` : 'once';
}

// Rules for these classes: fill of a bar, ink of the number on it.
function shadeRules(scheme, classes) {
  const rules = [`.idle{fill:${scheme.idle}}`];
  for (const name of classes) {
    const [kind, share] = name === 'once' ? ['once', 0] : name.split('-');
    const fill = mixed(scheme[kind], share / 100);
    const ink = NUMBER_INKS.reduce((best, next) => contrast(next, fill) > contrast(best, fill) ? next : best);
    rules.push(`.${name}{fill:${fill};background:${fill}}`, `text.${name}{fill:${ink}}`);
  }
  return rules.join('\n');
}

// Paper is light, whatever the screen is.
function addPalette(classes) {
  const style = document.createElement('style');
  style.textContent = `${shadeRules(PALETTE.light, classes)}\n@media screen and (prefers-color-scheme: dark) {\n` +
      `${shadeRules(PALETTE.dark, classes)}\n}`;
  document.head.append(style);
}
