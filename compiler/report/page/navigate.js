// Mouse, touch and keys on the timelines: what is selected and told about, which window of time is shown.

const HELP = 'Point at an action, or press Tab and the arrow keys, to see its messages. + and − zoom, 0 fits, Shift and arrows ' +
    'pan, M draws all messages, Escape lets go. Drag to pan, Ctrl and wheel to zoom.';

class Navigator {
  constructor(view, options) {
    this.view = view;
    this.options = options;
    this.timelines = [];
    this.card = html('div', {id: 'card', role: 'status', 'aria-live': 'polite', hidden: ''});
    document.addEventListener('keydown', event => { if (event.key === 'Escape') this.letGo(); });
    addEventListener('scroll', () => { this.card.hidden = true; }, {passive: true});
  }

  add(timeline) {
    this.timelines.push(timeline);
    const {picture} = timeline;
    picture.addEventListener('pointermove', event => this.move(timeline, event));
    picture.addEventListener('pointerleave', () => { if (!this.drag && document.activeElement !== picture) this.select(timeline, null); });
    picture.addEventListener('pointerdown', event => this.press(timeline, event));
    picture.addEventListener('pointerup', () => { this.drag = null; picture.classList.remove('dragged'); });
    picture.addEventListener('dblclick', event => this.view.zoomBy(2, this.timeOf(timeline, event)));
    picture.addEventListener('wheel', event => this.wheel(timeline, event), {passive: false});
    picture.addEventListener('keydown', event => this.key(timeline, event));
    picture.addEventListener('blur', () => this.select(timeline, null));
  }

  timeOf(timeline, event) { return timeline.scale.time(event.clientX - timeline.picture.getBoundingClientRect().left); }

  select(timeline, action) {
    if (timeline.selected === action) return;
    const stages = timeline.step.rank_of_stage.length;
    for (const other of this.timelines) {
      // Of another number of stages, a stage of the same number is another part of the model.
      const same = other === timeline ? action : action && other.step.rank_of_stage.length === stages ? other.step.byName.get(action.name) : null;
      const twin = same || null;
      if (other.selected === twin) continue;
      other.selected = twin;
      other.drawSelection();
    }
    this.card.hidden = !action;
    if (!action) return;
    this.card.replaceChildren(...describe(action, timeline.step, this.twins(timeline, action)));
    this.place(timeline, timeline.boxOf(action));
  }

  // The same action where it was measured, or simulated.
  twins(timeline, action) {
    return this.timelines.filter(other => other.step.measured !== timeline.step.measured && other.step.schedule === timeline.step.schedule)
        .map(({step}) => ({twin: step.byName.get(action.name), times: step.times})).filter(({twin}) => twin);
  }

  // Below the timeline, so that it hides no message, or above it; where neither has room, at the end of the window that is
  // farther from the action.
  place(timeline, {left, right, top, bottom}) {
    const {offsetWidth, offsetHeight} = this.card, box = timeline.picture.getBoundingClientRect();
    const x = Math.max(8, Math.min((left + right) / 2 - offsetWidth / 2, document.documentElement.clientWidth - offsetWidth - 8));
    const fits = y => y >= 8 && y + offsetHeight <= innerHeight - 8;
    const far = (top + bottom) / 2 < innerHeight / 2 ? innerHeight - offsetHeight - 8 : 8;
    const y = [box.bottom + 4, box.top - offsetHeight - 8].find(fits) ?? far;
    this.card.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  }

  letGo() {
    for (const timeline of this.timelines) this.select(timeline, null);
    this.card.hidden = true;
  }

  move(timeline, event) {
    if (!this.drag) {
      this.select(timeline, timeline.at(event.clientX, event.clientY));
      return;
    }
    const {from, to, x} = this.drag;
    const shift = (x - event.clientX) / timeline.scale.perNs;
    if (Math.abs(event.clientX - x) > 3) timeline.picture.classList.add('dragged');
    this.view.show(from + shift, to + shift, false);
  }

  press(timeline, event) {
    if (event.button !== 0) return;
    timeline.picture.setPointerCapture(event.pointerId);
    this.drag = {from: this.view.from, to: this.view.to, x: event.clientX};
  }

  wheel(timeline, event) {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.shiftKey ? event.deltaY : 0;
    if (event.ctrlKey || event.metaKey) {
      this.view.zoomBy(Math.exp(-event.deltaY / 300), this.timeOf(timeline, event), false);
    } else if (sideways) {
      this.view.panBy(sideways / timeline.picture.clientWidth, false);
    } else {
      return;  // the page scrolls
    }
    event.preventDefault();
  }

  key(timeline, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const {selected} = timeline;
    const at = selected ? (selected.start + selected.end) / 2 : undefined;
    const keys = {
      '+': () => this.view.zoomBy(1.5, at), '=': () => this.view.zoomBy(1.5, at),
      '-': () => this.view.zoomBy(1 / 1.5, at), '_': () => this.view.zoomBy(1 / 1.5, at),
      '0': () => this.view.fit(),
      m: () => this.options.toggleMessages(), M: () => this.options.toggleMessages(),
    };
    if (event.shiftKey) {
      Object.assign(keys, {ArrowRight: () => this.view.panBy(0.2), ArrowLeft: () => this.view.panBy(-0.2)});
    } else {
      Object.assign(keys, {
        ArrowRight: () => this.step(timeline, 1), ArrowLeft: () => this.step(timeline, -1),
        ArrowDown: () => this.changeRank(timeline, 1), ArrowUp: () => this.changeRank(timeline, -1),
        Home: () => this.go(timeline, timeline.step.lists[selected ? selected.rank : 0][0]),
        End: () => this.go(timeline, timeline.step.lists[selected ? selected.rank : 0].at(-1)),
        Enter: () => this.step(timeline, 0),
      });
    }
    if (!keys[event.key]) return;
    keys[event.key]();
    event.preventDefault();
  }

  go(timeline, action) {
    if (!action) return;
    this.view.reveal(action.start, action.end);
    this.select(timeline, action);
  }

  step(timeline, by) {
    const {selected} = timeline;
    if (!selected) return this.go(timeline, timeline.step.lists[0].find(action => action.end > this.view.from));
    this.go(timeline, timeline.step.lists[selected.rank][selected.index + by] || selected);
  }

  // To the action of the next rank that is nearest in time.
  changeRank(timeline, by) {
    const {selected, step} = timeline;
    if (!selected) return this.step(timeline, 0);
    const list = step.lists[selected.rank + by];
    if (!list) return;
    const middle = ({start, end}) => (start + end) / 2;
    const distance = action => Math.abs(middle(action) - middle(selected));
    this.go(timeline, list.reduce((best, next) => distance(next) < distance(best) ? next : best));
  }
}

// What the card says of an action.
function describe(action, step, twins) {
  const {kind, stage, microbatch, rank, start, end, phase} = action;
  const what = [stage >= 0 ? `stage ${stage}` : null, KIND_NAMES[kind], microbatch >= 0 ? `microbatch ${microbatch}` : null];
  const line = text => html('p', {}, text);
  const out = [html('p', {class: 'name'}, html('b', {}, action.name), ' ', what.filter(part => part).join(', ')),
               line(`rank ${rank}, ${phase === 'update' ? 'once a step' : phase}, at ${formatTime(start)}, ` +
                    (end > start ? `takes ${formatTime(end - start)} (${step.times})` : 'its time is not modelled'))];
  for (const {twin, times} of twins)
    out.push(line(`${times}: at ${formatTime(twin.start)}, takes ${formatTime(twin.end - twin.start)}`));
  const messages = [...action.received, ...action.sent].map(message => html('li', {},
      `message from stage ${message.from} (rank ${message.sender.rank}) to stage ${message.to} (rank ${message.receiver.rank}), ` +
      `microbatch ${message.microbatch}: ${formatBytes(message.bytes)}, sent at ${formatTime(message.sent)}, ` +
      `arrived at ${formatTime(message.arrived)}`));
  if (messages.length) out.push(html('ul', {}, ...messages));
  return out;
}
