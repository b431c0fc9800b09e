// Where time lies in a picture, and the ticks under it. Pictures on one page have the same margins, so that their times align.
class Scale {
  constructor(width, view) {
    const narrow = width < 640;
    this.width = width;
    this.left = narrow ? 34 : 64;
    this.right = width - (narrow ? 62 : 92);
    this.column = this.right + 22;  // a figure a rank, right of what is drawn at the end of the step
    this.view = view;
    this.perNs = (this.right - this.left) / (view.to - view.from);
  }

  x(ns) { return this.left + (ns - this.view.from) * this.perNs; }
  clamped(ns) { return Math.min(this.right, Math.max(this.left, this.x(ns))); }
  time(x) { return this.view.from + (x - this.left) / this.perNs; }

  // Round times about 100 pixels apart, and a unit for all of them.
  ticks() {
    const {from, to} = this.view;
    const rough = (to - from) / Math.max(1, (this.right - this.left) / 100);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= rough);
    const unit = Math.min(3, Math.floor(Math.log10(Math.max(to, 1)) / 3 + 1e-9));
    const decimals = Math.max(0, 3 * unit - Math.floor(Math.log10(step) + 1e-9));
    const ticks = [];
    for (let k = Math.ceil(from / step); k * step <= to; ++k)
      ticks.push({ns: k * step, text: `${(k * step / 1000 ** unit).toFixed(decimals)}\u00a0${TIME_UNITS[unit]}`});
    return ticks;
  }

  // Markup of the axis at height y, and what the figures of the column are.
  axis(y, column) {
    const marks = this.ticks().map(({ns, text}) => {
      const x = this.x(ns).toFixed(1);
      return `<path class="tick" d="M${x} ${y}v5"/><text class="small" x="${x}" y="${y + 17}" text-anchor="middle">${text}</text>`;
    });
    return `<path class="axis" d="M${this.left} ${y}H${this.right}"/>` + marks.join('') +
        `<text class="small" x="${this.column}" y="${y + 17}">${column}</text>`;
  }
}
