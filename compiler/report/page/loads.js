// How evenly the ranks are loaded: forward, backward and messages of their stages, per microbatch, over the least that any cut
// could leave to the slowest.

class LoadsPicture {
  constructor(report, view) {
    this.report = report;
    this.view = view;
    this.stagesOf = Array.from({length: report.ranks}, () => []);
    for (const row of report.stages) this.stagesOf[row.rank].push(row);
    this.parts = [['F', 'forward_s', 'forward'], ...(report.mode === 'train' ? [['B', 'backward_s', 'backward']] : []),
                  ['once', 'messages_s', 'messages']];
    this.loads = this.stagesOf.map(rows => rows.reduce((sum, row) => sum + row.forward_s + row.backward_s + row.messages_s, 0));
    this.layer = svg('g');
    const slowest = this.loads.indexOf(Math.max(...this.loads));
    const label = `load of ${plural(report.ranks, 'rank')}; the slowest is rank ${slowest}` +
        (report.bound_ratio > 0 ? `, ${report.bound_ratio.toFixed(3)} times the lower bound` : '');
    this.picture = svg('svg', {class: 'loads', role: 'img', 'aria-label': label}, this.layer);
    this.host = html('div', {class: 'picture'}, this.picture);
    view.onChange(() => this.draw());
  }

  draw() {
    const width = this.host.clientWidth, bound = this.report.bound_s;
    if (!width || width === this.drawn) return;
    this.drawn = width;
    const height = 190, top = 24, base = height - 22, {left, right, column} = new Scale(width, this.view);
    const most = Math.max(...this.loads, bound, 1e-12) * 1.02;
    const y = seconds => base - (base - top) * seconds / most;
    const pitch = (right - left) / this.report.ranks, bar = Math.min(160, pitch * (pitch > 8 ? 0.72 : 0.9));
    const every = Math.ceil(22 / pitch);
    const parts = this.stagesOf.map((rows, rank) => {
      const x = left + pitch * (rank + 0.5) - bar / 2, middle = (x + bar / 2).toFixed(2);
      let below = 0;
      const pieces = rows.flatMap((row, local) =>
          this.parts.map(([kind, field, name]) => {
            const from = below;
            below += row[field];
            return `<rect class="${shadeClass(kind, local, rows.length)}" data-rank="${rank}" data-stage="${row.stage}" x="${x.toFixed(2)}" ` +
                `y="${y(below).toFixed(2)}" width="${bar.toFixed(2)}" height="${(y(from) - y(below)).toFixed(2)}">` +
                `<title>stage ${row.stage}, ${name}: ${formatTime(row[field] * 1e9)}</title></rect>`;
          }));
      const ratio = bound > 0 ? `${(this.loads[rank] / bound).toFixed(2)}×` : formatTime(this.loads[rank] * 1e9);
      return pieces.join('') +
          (pitch >= 44 ? `<text class="small" x="${middle}" y="${(Math.min(y(this.loads[rank]), y(bound)) - 6).toFixed(2)}" ` +
                         `text-anchor="middle">${ratio}</text>` : '') +
          (rank % every === 0 ? `<text class="small" x="${middle}" y="${base + 15}" text-anchor="middle">${rank}</text>` : '');
    });
    const line = bound > 0 ? `<path class="bound" d="M${left} ${y(bound).toFixed(2)}H${right}"/>` +
        `<text class="label" x="${column}" y="${(y(bound) + 4).toFixed(2)}">bound</text>` : '';
    this.layer.innerHTML = `<path class="axis" d="M${left} ${base}H${right}"/>` +
        `<text class="label" x="${left - 8}" y="${base + 15}" text-anchor="end">${left > 40 ? 'rank' : ''}</text>${parts.join('')}${line}`;
    for (const [name, value] of [['viewBox', `0 0 ${width} ${height}`], ['width', width], ['height', height]])
      this.picture.setAttribute(name, value);
  }
}

function loadsSection(report, view) {
  const several = report.virtual_stages > 1;
  const bound = report.bound_s > 0 ? ` The line is the lower bound: no cut leaves the slowest ${several ? 'rank' : 'stage'} less than ` +
      `${formatTime(report.bound_s * 1e9)}.` : '';
  const key = html('p', {class: 'key'}, swatch('F-0', 'forward'), report.mode === 'train' ? swatch('B-0', 'backward') : null, swatch('once', 'messages'),
                   report.bound_s > 0 ? swatch('line bound', 'lower bound') : null);
  const bars = several ? 'the stages of a rank on top of each other' : 'a stage a rank';
  return section('loads', 'Stage loads', `Times are ${report.times}, of messages ${report.message_times}, per microbatch; ` +
                 `${bars}.${bound}`, key, new LoadsPicture(report, view).host);
}
