// The timelines of the page: the plan's own step, the measured one under it, other schedules beside it.

// What the colours mean, of the kinds and shades that these steps have.
function timelineKey(steps) {
  const shades = new Map();  // kind -> classes, dark to light
  for (const action of steps.flatMap(step => step.lists.flat())) {
    const kind = isCompute(action.kind) ? action.kind : 'once';
    if (!shades.has(kind)) shades.set(kind, new Set());
    shades.get(kind).add(action.style);
  }
  const share = name => Number(name.split('-')[1] || 0);
  const names = {...KIND_NAMES, once: 'norm, update'};
  const key = html('p', {class: 'key'});
  for (const kind of ['F', 'B', 'I', 'W', 'once'].filter(k => shades.has(k))) {
    const swatches = [...shades.get(kind)].sort((a, b) => share(a) - share(b)).map(style => html('i', {class: style, 'aria-hidden': 'true'}));
    key.append(html('span', {'data-kind': kind}, ...swatches, kind === 'once' ? names[kind] : `${kind} ${names[kind]}`));
  }
  if (steps.some(step => step.virtual_stages > 1)) key.append(html('span', {class: 'shades'}, 'lighter: later stages of a rank'));
  key.append(swatch('idle', 'bubble'));
  if (steps.some(step => step.bound > 0)) key.append(swatch('line bound', 'no order ends earlier'));
  if (shades.has('F') && shades.size > 1)
    key.append(swatch('phase warm-up', 'warm-up'), swatch('phase steady', 'steady'), swatch('phase cool-down', 'cool-down'));
  return key;
}

function toolbar(view, options) {
  const button = (text, label, act) => html('button', {type: 'button', 'aria-label': label, title: label, onclick: act}, text);
  const messages = button('messages', 'draw all messages (M)', () => options.toggleMessages());
  options.showState = () => messages.setAttribute('aria-pressed', String(options.messages));
  options.showState();
  const zoom = html('output', {class: 'zoom', 'aria-label': 'zoom'}, '1×');
  view.onChange(() => { zoom.textContent = `${digits(view.zoom, view.zoom < 9.95 ? 2 : 3)}×`; });
  return html('div', {class: 'tools', role: 'toolbar', 'aria-label': 'timelines'}, button('−', 'zoom out (−)', () => view.zoomBy(1 / 1.5)),
              zoom, button('+', 'zoom in (+)', () => view.zoomBy(1.5)), button('fit', 'show the whole step (0)', () => view.fit()), messages);
}

// "+8.3 %": how much more a figure is than the plan's own.
const against = (value, own) => `${value >= own ? '+' : '−'}${Math.abs((value / own - 1) * 100).toFixed(1)}\u00a0%`;

// Over another schedule's timeline.
function caption(step, own) {
  const recomputed = step.recomputing_stages > 0 ? `, ${plural(step.recomputing_stages, 'stage')} recomputed` : '';
  return html('p', {class: 'caption'}, html('b', {}, step.schedule), ` ${step.ranks} × ${plural(step.virtual_stages, 'stage')}, step `,
              html('b', {}, formatTime(step.length)), ` (${against(step.length, own.length)}), bubble ${formatPercent(step.bubble_ratio)}` +
              `${recomputed}, peak memory ${formatBytes(step.peak_bytes)} (${against(step.peak_bytes, own.peak_bytes)}) `, tag(step.times));
}

function measuredSection(step, own, timeline, {mode}) {
  const ratio = step.length / own.length;
  const figures = html('dl', {class: 'figures'},
      figure('step time', formatTime(step.length), 'measured', `step ${step.step} of the trace, the median: until the last rank is done`),
      figure('measured over planned', ratio.toFixed(3), 'measured', `planned ${formatTime(own.length)}, ${own.times}`),
      figure('bubble ratio', formatPercent(step.bubble_ratio), 'measured', `planned ${formatPercent(own.bubble_ratio)}, ${own.times}`));
  const parts = [['forward', 'F'], ...(mode === 'train' ? [['backward', 'BIW']] : [])];
  const rows = step.rank_of_stage.map((rank, stage) => {
    const row = [stage, rank];
    for (const [, kinds] of parts) {
      const planned = own.meanTime(stage, kinds), measured = step.meanTime(stage, kinds);
      row.push(formatTime(planned), formatTime(measured), planned > 0 ? (measured / planned).toFixed(3) : '–');
    }
    return row.map(String);
  });
  const head = ['stage', 'rank', ...parts.flatMap(([name]) => [`${name}, planned`, 'measured', 'ratio'])];
  return section('measured', 'Measured', 'The same plan as it ran, on the scale of the planned step. Stage ' +
                 `times are means over the microbatches; those planned are ${own.times}.`, figures, timeline.host,
                 table('measured and planned stage times', head, rows));
}

function compareSection(steps, refused, own, timelineOf) {
  const left = text => ({text, attributes: {class: 'left'}});
  const beside = (step, value) => step === own ? 'this plan' : against(value(step), value(own));
  const rows = [own, ...steps].map(step => [
    left(step.schedule + (step.recomputing_stages > 0 ? ', recomputing' : '')), String(step.virtual_stages),
    formatTime(step.length), beside(step, s => s.length), formatPercent(step.bubble_ratio),
    formatBytes(step.peak_bytes), beside(step, s => s.peak_bytes)]);
  for (const {schedule, refusal} of refused)
    rows.push([left(schedule), {text: refusal, attributes: {class: 'left', colspan: 6}}]);
  const head = ['schedule', 'V', 'step time', 'against the plan', 'bubble ratio', 'peak memory', 'against the plan'];
  return section('compare', 'Other schedules', 'The same model, ranks and microbatches, cut anew for each schedule; all on one scale. ' +
                 `Times are ${[...new Set([own, ...steps].map(step => step.times))].join('; ')}.`, table('schedules', head, rows),
                 ...steps.flatMap(step => [caption(step, own), timelineOf(step).host]));
}
