// What --schedule=auto chose from, and how near the choice comes to what no order can beat.
function candidatesSection(report) {
  const {candidates, candidates_bound_s: bound} = report;
  if (!candidates) return null;
  const left = text => ({text, attributes: {class: 'left'}});
  const rows = candidates.map(row => row.refusal ?
      [left(row.schedule), String(row.virtual_stages), {text: row.refusal, attributes: {class: 'left', colspan: 4}}] :
      [left(row.schedule), String(row.virtual_stages), formatTime(row.step_time_s * 1e9),
       row === candidates[0] ? 'this plan' : against(row.step_time_s, candidates[0].step_time_s),
       formatPercent(row.bubble_ratio), formatBytes(row.peak_bytes)]);
  const end = candidates[0].order_s;
  const gap = bound > 0 ? `: its last F, I or W ends at ${formatTime(end * 1e9)}, ` +
      `${formatPercent(Math.max(0, end / bound - 1))} above what no order of such stages can beat` : '';
  return section('candidates', 'What it was chosen from', `The fastest was taken${gap}. Times are ${report.times}.`,
                 table('candidates', ['schedule', 'V', 'step time', 'against the plan', 'bubble ratio', 'peak memory'], rows));
}
