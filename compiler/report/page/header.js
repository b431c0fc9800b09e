// What was planned, and its figures.

const tag = how => html('span', {class: `tag ${how.replace(/[^a-z]+/g, '-')}`}, how);

// One figure under its name, marked with where it comes from.
function figure(name, value, how, more) {
  return html('div', {class: 'figure'}, html('dt', {}, name, ' ', tag(how)),
              html('dd', {}, html('b', {}, value), more ? html('span', {}, more) : null));
}

function headerOf({report, step}) {
  const facts = [['schedule', report.schedule], ['ranks (P)', report.ranks], ['stages a rank (V)', report.virtual_stages],
                 ...(report.replicas > 1 ? [['replicas (R)', report.replicas]] : []), ['microbatches (M)', report.microbatches], ['batch', report.batch], ['optimizer', report.optimizer],
                 ['precision', report.precision], ['planned for', report.device], ['mode', report.mode]];
  const figures = [
    figure('step time', formatTime(report.step_time_s * 1e9), report.simulated, report.step_span),
    figure('bubble ratio', formatPercent(report.bubble_ratio), report.simulated,
           report.mode === 'train' ? 'idle share before the update' : 'idle share'),
    figure('slowest stage over bound', report.bound_ratio > 0 ? report.bound_ratio.toFixed(3) : '–', report.simulated,
           '1: no other cut could be faster'),
    figure('peak memory', formatBytes(report.peak_bytes), 'planned', 'of the rank that needs most'),
  ];
  return html('header', {}, html('p', {class: 'eyebrow'}, 'pipec report'), html('h1', {}, report.model),
              html('dl', {class: 'facts'}, ...facts.filter(([, value]) => value !== undefined).map(([name, value]) =>
                html('div', {'data-fact': name}, html('dt', {}, name), html('dd', {}, String(value))))),
              html('dl', {class: 'figures'}, ...figures));
}

function stageTable(report) {
  const differ = report.stages.some(row => row.device !== report.stages[0].device);
  const trains = report.mode === 'train';
  const rows = report.stages.map(row => [
    row.stage, row.rank, row.nodes, formatCount(row.parameters), formatFlop(row.flop), formatTime(row.forward_s * 1e9),
    ...(trains ? [formatTime(row.backward_s * 1e9)] : []), formatBytes(row.sent_bytes), formatBytes(row.peak_bytes), row.times,
    ...(differ ? [row.device] : [])].map(String));
  return section('stages', 'Stages', `Times are ${report.times}; bytes and counts are exact. Work, times and sent bytes are per ` +
                 'microbatch; peak memory is the rank’s.',
                 table('stages', ['stage', 'rank', 'nodes', 'parameters', 'work', 'forward', ...(trains ? ['backward'] : []), 'sent',
                                  'peak memory', 'times', ...(differ ? ['device'] : [])], rows));
}

function listSection(id, title, note, lines) {
  return lines && lines.length ? section(id, title, note, html('ul', {class: 'list'}, ...lines.map(text => html('li', {}, text)))) : null;
}
