// Memory over time, a row a rank, on the scale of the timeline above: what is always there, on it what microbatches keep, the
// plan's reservation and its device's limit as lines, the peak as a dot.

class MemoryPicture {
  // `limits`: by rank, 0: none.
  constructor(step, view, limits) {
    this.step = step;
    this.view = view;
    this.row = Math.max(16, ROW_HEIGHTS.find(([most]) => step.ranks <= most)[1] * 1.3);
    this.layer = svg('g');
    this.picture = svg('svg', {class: 'memory', role: 'img', 'aria-label': this.inWords()}, this.layer);
    this.host = html('div', {class: 'picture'}, this.picture);
    const most = Math.max(...step.memory.map(curve => curve.reserved_bytes), 1);
    // A limit far above what is used would leave nothing to see.
    this.limits = limits.map(limit => limit <= 2 * most ? limit : 0);
    this.most = Math.max(most, ...this.limits) * 1.05;
    view.onChange(() => this.draw());
  }

  // The rank that needs most; all of them where that is no litany.
  inWords() {
    const peaks = this.step.memory.map((curve, rank) => ({rank, bytes: MemoryPicture.peak(curve).bytes}));
    const told = peaks.length <= 8 ? peaks : [peaks.reduce((most, next) => next.bytes > most.bytes ? next : most)];
    return 'memory over time: ' + told.map(({rank, bytes}) => `rank ${rank} peaks at ${formatBytes(bytes)}`).join(', ');
  }

  static peak({points}) {
    let best = 1;
    for (let k = 3; k < points.length; k += 2) if (points[k] > points[best]) best = k;
    return {ns: points[best - 1], bytes: points[best]};
  }

  draw() {
    const width = this.host.clientWidth;
    if (!width) return;
    const height = this.step.ranks * this.row + 24;
    this.scale = new Scale(width, this.view);
    for (const [name, value] of [['viewBox', `0 0 ${width} ${height}`], ['width', width], ['height', height]])
      this.picture.setAttribute(name, value);
    const rows = this.step.memory.map((curve, rank) => this.drawRank(curve, rank));
    this.layer.innerHTML = rows.join('') + this.scale.axis(this.step.ranks * this.row + 1, 'peak');
  }

  drawRank(curve, rank) {
    const {scale} = this, base = (rank + 1) * this.row - 3, room = this.row - 6;
    const y = bytes => (base - room * bytes / this.most).toFixed(2);
    const {left} = scale, end = scale.clamped(this.step.end);
    const across = (bytes, style) => `<path class="${style}" data-rank="${rank}" d="M${left} ${y(bytes)}H${end.toFixed(2)}"/>`;
    let area = `M${left} ${base}`;
    const {points} = curve;
    for (let k = 0; k < points.length; k += 2) {
      const from = scale.x(points[k]), to = k + 2 < points.length ? scale.x(points[k + 2]) : end;
      if (to < left) continue;
      if (from > scale.right) break;
      area += `L${Math.max(left, from).toFixed(2)} ${y(points[k + 1])}H${Math.min(end, to).toFixed(2)}`;
    }
    area += `V${base}z`;
    const peak = MemoryPicture.peak(curve), x = scale.x(peak.ns);
    const shown = x >= left - 1 && x <= scale.right + 1;
    const title = `rank ${rank}: ${formatBytes(curve.always_bytes)} always, peak ${formatBytes(peak.bytes)} at ${formatTime(peak.ns)}, ` +
        `${formatBytes(curve.reserved_bytes)} reserved`;
    const label = left > 40 ? `rank ${rank}` : rank;
    return `<g><title>${title}</title>` +
        `<rect class="idle" x="${left}" y="${base - room}" width="${(end - left).toFixed(2)}" height="${room}"/>` +
        `<path class="kept" data-rank="${rank}" d="${area}"/>` +
        `<path class="always" data-rank="${rank}" d="M${left} ${base}V${y(curve.always_bytes)}H${end.toFixed(2)}V${base}z"/>` +
        across(curve.reserved_bytes, 'reserved') + (this.limits[rank] ? across(this.limits[rank], 'limit') : '') +
        (shown ? `<circle class="peak" data-rank="${rank}" data-bytes="${peak.bytes}" cx="${x.toFixed(2)}" cy="${y(peak.bytes)}" r="3"/>` : '') +
        `<text class="label" x="${left - 8}" y="${base - room / 2 + 4}" text-anchor="end">${label}</text>` +
        `<text class="label" x="${scale.column}" y="${base - room / 2 + 4}">${formatBytes(peak.bytes)}</text></g>`;
  }
}

function memorySection(step, view, {stages, memory_limit: least, mode}) {
  const limits = step.memory.map((_, rank) => stages.find(row => row.rank === rank).memory_limit);
  const picture = new MemoryPicture(step, view, limits), shown = picture.limits.some(limit => limit > 0);
  const equal = limits.every(limit => limit === least);
  const always = formatBytes(Math.max(...step.memory.map(curve => curve.always_bytes)));
  const above = least > 0 && !shown ? ` The limit of a device, ${formatBytes(least)}${equal ? '' : ' or more'}, lies above the picture.` : '';
  const key = html('p', {class: 'key'}, swatch('always', `parameters${mode === 'train' ? ', gradients, optimizer state' : ''} (${always} at most)`),
                   swatch('kept', 'kept by microbatches: activations, messages, inputs'),
                   swatch('line reserved', 'reserved by the plan'), shown ? swatch('line limit', equal ? `limit, ${formatBytes(least)}` : 'limit of its device') : null,
                   swatch('dot peak', 'peak'));
  return section('memory', 'Memory over time', 'What the plan reserves also holds what single actions work in, and the gaps of ' +
                 'its layout. Times are ' + step.times + ', bytes are exact.' + above, key, picture.host);
}

const swatch = (style, text) => html('span', {}, html('i', {class: style, 'aria-hidden': 'true'}), text);
