// The timeline of a step: ranks down, time across. All bars of a colour on a rank are one path with a rectangle an action;
// numbers are texts where they fit. Drawn anew for every window of time, and only what lies in it.

const ROW_HEIGHTS = [[8, 38], [16, 28], [32, 20], [Infinity, 15]];  // up to so many ranks, pixels a rank
const NUMBER_SIZES = [12, 10.5, 9, 8, 7.5];

class Timeline {
  constructor(step, view, label, options) {
    this.step = step;
    this.view = view;
    this.options = options;  // messages: draw all
    this.row = ROW_HEIGHTS.find(([most]) => step.ranks <= most)[1];
    this.strip = this.row >= 20 ? 3 : 2;
    this.label = this.row >= 20 ? 'label' : 'label dense';
    this.bar = this.row - this.strip - (this.row >= 20 ? 7 : 3);
    this.digits = String(step.microbatches - 1).length;
    this.layers = ['ground', 'bars', 'numbers', 'lines', 'marks'].map(name => svg('g', {class: name}));
    this.picture = svg('svg', {class: 'timeline', tabindex: '0', role: 'application', 'aria-roledescription': 'timeline',
                               'aria-label': label, 'aria-describedby': 'keys'}, ...this.layers);
    this.host = html('div', {class: 'picture'}, this.picture);
    this.selected = null;
    view.onChange(() => this.draw());
  }

  top(rank) { return 2 + rank * this.row; }
  middle(rank) { return this.top(rank) + this.bar / 2; }

  draw() {
    const width = this.host.clientWidth;
    if (!width) return;
    const height = this.top(this.step.ranks) + 24;
    const scale = this.scale = new Scale(width, this.view);
    for (const [name, value] of [['viewBox', `0 0 ${width} ${height}`], ['width', width], ['height', height]])
      this.picture.setAttribute(name, value);
    const ground = [], bars = [], numbers = [];
    for (let rank = 0; rank < this.step.ranks; ++rank) {
      this.drawGround(rank, ground);
      this.drawRank(rank, bars, numbers);
    }
    const bound = scale.x(this.step.bound || 0);
    // Over the bars: no order of such stages ends earlier.
    const line = bound > scale.left && bound <= scale.right ?
        `<path class="bound" d="M${bound.toFixed(2)} 0V${this.top(this.step.ranks)}"><title>no order ends earlier</title></path>` : '';
    numbers.push(line);
    ground.push(scale.axis(this.top(this.step.ranks), 'idle'));
    // Numbers and class names only: no text of the model is in here.
    [ground, bars, numbers].forEach((parts, k) => { this.layers[k].innerHTML = parts.join(''); });
    this.drawSelection();
  }

  drawGround(rank, out) {
    const {scale, step} = this, y = this.top(rank);
    const end = scale.clamped(step.end);
    out.push(`<rect class="idle" data-rank="${rank}" x="${scale.left}" y="${y}" width="${(end - scale.left).toFixed(2)}" height="${this.bar}"/>`);
    const text = scale.left > 40 ? `rank ${rank}` : rank;
    const line = y + this.bar / 2 + 4;
    out.push(`<text class="${this.label}" x="${scale.left - 8}" y="${line}" text-anchor="end">${text}</text>`,
             `<text class="${this.label}" x="${scale.column}" y="${line}">${Math.round(step.idleShare(rank) * 100)}\u00a0%</text>`);
  }

  // Index of the first action that ends in the window or later; ends ascend.
  firstVisible(list) {
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle].end >= this.view.from) high = middle; else low = middle + 1;
    }
    return low;
  }

  drawRank(rank, bars, numbers) {
    const {scale, view} = this, list = this.step.lists[rank], y = this.top(rank);
    const paths = new Map(), phases = new Map();
    let marks = [];
    for (let k = this.firstVisible(list); k < list.length && list[k].start <= view.to; ++k) {
      const action = list[k];
      if (!isCompute(action.kind) && action.end === action.start) {
        marks = marks.filter(mark => mark.start === action.start).concat(action);
        this.addMark(action, marks.length - 1, paths);
        continue;
      }
      const x = scale.clamped(action.start), width = scale.clamped(action.end) - x;
      const drawn = Math.max(width - Math.min(1, width * 0.15), 0.5).toFixed(2);
      // While ranks wait for each other's norms the bubble stays in sight.
      const height = 'NT'.includes(action.kind) ? Math.max(2, 0.15 * this.bar) : this.bar;
      const top = y + (this.bar - height) / 2;
      paths.set(action.style, `${paths.get(action.style) || ''}M${x.toFixed(2)} ${top.toFixed(1)}h${drawn}v${height.toFixed(1)}h-${drawn}z`);
      if (isCompute(action.kind)) this.addNumber(action, x, width, numbers);
      const phase = phases.get(action.phase) || {from: x, to: x};
      phases.set(action.phase, {from: Math.min(phase.from, x), to: Math.max(phase.to, x + width)});
    }
    for (const [style, d] of paths) bars.push(`<path class="${style}" data-rank="${rank}" d="${d}"/>`);
    for (const [phase, {from, to}] of phases) {
      if (!['warm-up', 'steady', 'cool-down'].includes(phase)) continue;
      bars.push(`<rect class="phase ${phase}" x="${from.toFixed(2)}" y="${y + this.bar + 1.5}" ` +
                `width="${Math.max(0, to - from - 1).toFixed(2)}" height="${this.strip}"/>`);
    }
  }

  // What takes no modelled time: a thin mark, side by side if there are several.
  addMark(action, count, paths) {
    const x = this.scale.x(action.start) + 2 + 4 * count;
    if (x < this.scale.left || x > this.scale.right + 20) return;
    paths.set(action.style, `${paths.get(action.style) || ''}M${x.toFixed(2)} ${this.top(action.rank)}h2.5v${this.bar}h-2.5z`);
  }

  addNumber(action, x, width, numbers) {
    const size = NUMBER_SIZES.find(s => s <= this.bar - 1 && this.digits * s * 0.6 + 1.5 <= width);
    if (!size) return;
    numbers.push(`<text class="${action.style}" x="${(x + width / 2 - 0.5).toFixed(2)}" y="${(this.middle(action.rank) + size * 0.36).toFixed(1)}" ` +
                 `font-size="${size}" text-anchor="middle">${action.microbatch}</text>`);
  }

  // The ring around the selected action, thin ones around the rest of its microbatch, its messages.
  drawSelection() {
    const lines = [], marks = [];
    if (this.options.messages) {
      const all = this.step.sent.filter(m => m.arrived >= this.view.from && m.sent <= this.view.to);
      lines.push(`<path class="message all" data-count="${all.length}" d="${all.map(m => this.lineOf(m)).join('')}"/>`);
    }
    if (this.selected && this.scale) {
      const action = this.selected;
      for (const other of this.step.ofMicrobatch[action.microbatch] || []) {
        if (other !== action) marks.push(this.ring(other, 'same'));
      }
      for (const message of [...action.received, ...action.sent]) {
        const line = this.lineOf(message);
        lines.push(`<path class="halo" d="${line}"/><path class="message" data-from="${message.from}" data-to="${message.to}" ` +
                   `data-microbatch="${message.microbatch}" d="${line}"/>`);
        const at = this.scale.x(message.arrived);
        if (at >= this.scale.left && at <= this.scale.right)
          lines.push(`<circle class="arrival" cx="${at.toFixed(2)}" cy="${this.middle(message.receiver.rank)}" r="3"/>`);
      }
      marks.push(this.ring(action, 'selected'));
    }
    this.layers[3].innerHTML = lines.join('');
    this.layers[4].innerHTML = marks.join('');
  }

  ring(action, style) {
    if (action.end < this.view.from || action.start > this.view.to) return '';
    const x = this.scale.clamped(action.start), width = Math.max(3, this.scale.clamped(action.end) - x);
    return `<rect class="${style}" x="${x.toFixed(2)}" y="${this.top(action.rank)}" width="${width.toFixed(2)}" height="${this.bar}"/>`;
  }

  // From the end of the action that sends to the start of the one that waits for it.
  lineOf({sender, receiver}) {
    const down = receiver.rank > sender.rank;
    const x = this.scale.clamped(sender.end), to = this.scale.clamped(receiver.start);
    const y = this.top(sender.rank) + (down ? this.bar : 0), end = this.top(receiver.rank) + (down ? 0 : this.bar);
    const bend = (end - y) / 2;
    return `M${x.toFixed(2)} ${y}C${x.toFixed(2)} ${y + bend} ${to.toFixed(2)} ${end - bend} ${to.toFixed(2)} ${end}`;
  }

  // The action under a point of the screen, or null.
  at(clientX, clientY) {
    const box = this.picture.getBoundingClientRect();
    const rank = Math.floor((clientY - box.top - this.top(0)) / this.row);
    const list = this.step.lists[rank];
    if (!list || !this.scale) return null;
    const x = clientX - box.left, time = this.scale.time(x);
    if (x < this.scale.left || x > this.scale.right + 20) return null;
    return list.find(action => action.start <= time && time < action.end) ||
        list.find(action => action.start === action.end && Math.abs(this.scale.x(action.start) + 4 - x) < 5) || null;
  }

  // Where the selected action is on the screen.
  boxOf(action) {
    const box = this.picture.getBoundingClientRect();
    const left = this.scale.clamped(action.start), right = this.scale.clamped(action.end);
    return {left: box.left + left, right: box.left + right, top: box.top + this.top(action.rank),
            bottom: box.top + this.top(action.rank) + this.bar};
  }
}
