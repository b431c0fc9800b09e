// The window of time that all pictures of the page show. One for all: what is above each other happens at the same time.
class View {
  constructor(end) {
    this.end = end;          // of the longest step, ns
    this.from = 0;
    this.to = end;
    this.smallest = Math.max(1, Math.min(end, end / 5000));
    this.drawers = [];
    this.frame = 0;
  }

  // Called whenever the window changed, at most once a frame.
  onChange(draw) { this.drawers.push(draw); }

  get zoom() { return this.end / (this.to - this.from); }

  // Goes to a window, kept within the step; gliding unless the reader asked for less motion.
  show(from, to, glide = true) {
    const length = Math.min(this.end, Math.max(this.smallest, to - from));
    const middle = (from + to) / 2;
    const start = Math.min(Math.max(0, middle - length / 2), this.end - length);
    this.target = {from: start, to: start + length};
    if (!glide || matchMedia('(prefers-reduced-motion: reduce)').matches) {
      this.glide = null;
    } else {
      this.glide = {from: this.from, to: this.to, since: performance.now()};
    }
    this.request();
  }

  // Factor above 1: closer. `at` (ns) stays where it is.
  zoomBy(factor, at = (this.from + this.to) / 2, glide = true) {
    const {from, to} = this.target || this;
    this.show(at - (at - from) / factor, at + (to - at) / factor, glide);
  }

  // A share of the window.
  panBy(share, glide = true) {
    const {from, to} = this.target || this;
    const step = share * (to - from);
    this.show(from + step, to + step, glide);
  }

  fit() { this.show(0, this.end); }

  // Moves just so far that this span can be seen.
  reveal(start, end) {
    const {from, to} = this.target || this;
    const margin = (to - from) * 0.05;
    if (start < from) this.show(start - margin, start - margin + (to - from));
    else if (end > to) this.show(end + margin - (to - from), end + margin);
  }

  request() {
    if (!this.frame) this.frame = requestAnimationFrame(now => this.advance(now));
  }

  advance(now) {
    this.frame = 0;
    if (this.target) {
      const share = this.glide ? Math.min(1, Math.max(0, (now - this.glide.since) / 160)) : 1;
      const eased = share * (2 - share);
      const between = end => this.glide ? this.glide[end] + (this.target[end] - this.glide[end]) * eased : this.target[end];
      this.from = between('from');
      this.to = between('to');
      if (share === 1) {
        Object.assign(this, this.target);
        this.target = this.glide = null;
      } else {
        this.request();
      }
    }
    for (const draw of this.drawers) draw();
  }
}
