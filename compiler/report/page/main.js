const data = JSON.parse(document.getElementById('data').textContent);
const own = new Step(data.step);
const measured = data.measured ? new Step(data.measured) : null;
const others = data.compared.filter(other => !other.refusal).map(other => new Step(other));
own.bound = Math.round((data.report.candidates_bound_s || 0) * 1e9);
const steps = [own, ...(measured ? [measured] : []), ...others];

const held = data.report.virtual_stages;
const loadStyles = ['F', 'B', 'once'].flatMap(kind => Array.from({length: held}, (_, local) => shadeClass(kind, local, held)));
addPalette(new Set([...loadStyles, ...steps.flatMap(step => step.lists.flat().map(action => action.style))]));

const view = new View(Math.max(1, ...steps.map(step => step.end)));
const options = {
  messages: false,
  toggleMessages() {
    this.messages = !this.messages;
    this.showState();
    view.request();
  },
};
const navigator = new Navigator(view, options);
function timelineOf(step) {
  const timeline = new Timeline(step, view, `step of ${step.schedule}, ${step.times}: ${plural(step.ranks, 'rank')}, ` +
                                `${plural(step.microbatches, 'microbatch').replace(/chs$/, 'ches')}`, options);
  navigator.add(timeline);
  return timeline;
}

const page = document.getElementById('page');
const parts = [
  headerOf(data),
  section('timeline', 'One step', null, html('div', {class: 'bar'}, timelineKey(steps), toolbar(view, options)), timelineOf(own).host,
          html('p', {class: 'note', id: 'keys'}, HELP)),
  listSection('advice', 'Advice', '', data.report.advice),
  measured ? measuredSection(measured, own, timelineOf(measured), data.report) : null,
  data.compared.length ? compareSection(others, data.compared.filter(other => other.refusal), own, timelineOf) : null,
  candidatesSection(data.report),
  memorySection(own, view, data.report),
  loadsSection(data.report, view),
  stageTable(data.report),
  listSection('notes', 'Assumed', 'Each with the flag that changes it.', data.report.notes),
];
page.append(...parts.filter(part => part), navigator.card);
// Drawn at once, so that a page that is only printed is whole; again whenever there is more or less room.
view.advance(0);
new ResizeObserver(() => view.request()).observe(page);
