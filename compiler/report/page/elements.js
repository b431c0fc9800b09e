// Making elements. Text goes in as text, never as HTML.

function html(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child !== null));
  return element;
}

function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// A part of the page under a title.
function section(id, title, note, ...children) {
  return html('section', {id, 'aria-labelledby': `${id}-title`}, html('h2', {id: `${id}-title`}, title),
              note ? html('p', {class: 'note'}, note) : null, ...children);
}

// A table under the names of its columns. A cell is text or {text, attributes}.
function table(label, head, rows) {
  const cell = (tag, content) => typeof content === 'object' ?
      html(tag, content.attributes, content.text) : html(tag, tag === 'th' ? {scope: 'col'} : {}, content);
  return html('div', {class: 'wide', tabindex: '0', role: 'region', 'aria-label': label},
              html('table', {}, html('thead', {}, html('tr', {}, ...head.map(name => cell('th', name)))),
                   html('tbody', {}, ...rows.map(row => html('tr', {}, ...row.map(content => cell('td', content)))))));
}
