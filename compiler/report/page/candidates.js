// What the plan was chosen from (auto), and how near the choice comes to what no order can beat.
function candidatesSection(report) {
  const {candidates, candidates_bound_s: bound, candidates_passed_over: passedOver} = report;
  if (!candidates) return null;
  const [chosen, second] = candidates;
  const ofSample = row => row.step_time_s / row.batch;
  const left = text => ({text, attributes: {class: 'left'}});
  const rows = candidates.map(row => {
    const plan = [String(row.ranks), String(row.microbatches), left(row.schedule), String(row.virtual_stages)];
    if (row.refusal) return [...plan, {text: row.refusal, attributes: {class: 'left', colspan: 5}}];
    return [...plan, formatTime(row.step_time_s * 1e9), formatTime(ofSample(row) * 1e9),
            row === chosen ? 'this plan' : against(ofSample(row), ofSample(chosen)), formatPercent(row.bubble_ratio),
            formatBytes(row.peak_bytes)];
  });
  const runnerUp = second && !second.refusal ?
      `; the runner-up takes ${formatPercent(Math.max(0, ofSample(second) / ofSample(chosen) - 1))} longer a sample` : '';
  const others = passedOver > 0 ? ` ${plural(passedOver, 'more pair')} of ranks and microbatches were not compiled: by their work ` +
      'alone they cannot be faster than the runner-up, or the same plans with more microbatches are not.' : '';
  const gap = bound > 0 ? ` The last F, I or W of the first ends at ${formatTime(chosen.order_s * 1e9)}, ` +
      `${formatPercent(Math.max(0, chosen.order_s / bound - 1))} above what no order of such stages can beat.` : '';
  return section('candidates', 'What it was chosen from',
                 `The fastest a sample was taken${runnerUp}.${others}${gap} Times are ${report.simulated}.`,
                 table('candidates', ['P', 'M', 'schedule', 'V', 'step time', 'time a sample', 'against the plan', 'bubble ratio',
                                      'peak memory'], rows));
}
