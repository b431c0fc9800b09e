// A step of the data, indexed: actions as objects, by rank, by name and by microbatch; who sent what to whom.
class Step {
  constructor(data) {
    Object.assign(this, data);
    this.measured = data.times === 'measured';
    this.length = Math.round(data.step_time_s * 1e9);
    this.stagesOfRank = Array.from({length: this.ranks}, () => []);
    data.rank_of_stage.forEach((rank, stage) => this.stagesOfRank[rank].push(stage));
    this.lists = data.actions.map((columns, rank) => this.readRank(columns, rank));
    this.work = Math.max(0, ...this.lists.map(list => list.findLast(action => isCompute(action.kind))?.end ?? 0));
    // The last of a step that is validated in the next comes when that has begun.
    this.end = Math.max(this.length, ...this.lists.map(list => list.at(-1)?.end ?? 0));
    this.byName = new Map();
    this.ofMicrobatch = Array.from({length: this.microbatches}, () => []);
    for (const action of this.lists.flat()) {
      this.byName.set(action.name, action);
      if (action.microbatch >= 0) this.ofMicrobatch[action.microbatch].push(action);
    }
    this.sent = [];
    this.addMessages(data);
  }

  readRank(columns, rank) {
    const held = this.stagesOfRank[rank];
    const list = [...columns.kinds].map((kind, k) => {
      const stage = columns.stages[k], microbatch = columns.microbatches[k];
      return {kind, rank, stage, microbatch, index: k, start: columns.starts[k], end: columns.starts[k] + columns.durations[k],
              style: shadeClass(kind, held.indexOf(stage), held.length), name: Step.nameOf(kind, stage, microbatch, rank),
              received: [], sent: []};
    });
    this.markPhases(list);
    return list;
  }

  // As pipec writes actions; what has no stage is told apart by its rank.
  static nameOf(kind, stage, microbatch, rank) {
    if (isCompute(kind)) return `${stage}${kind}${microbatch}`;
    return {U: `${stage}UPDATE${microbatch < 0 ? '' : microbatch}`, N: `NORM of rank ${rank}`, T: `REDUCE_TIED of rank ${rank}`}[kind];
  }

  // Until a rank's first backward it warms up, after its last forward it cools down.
  markPhases(list) {
    const first = list.findIndex(action => 'BIW'.includes(action.kind));
    const last = list.findLastIndex(action => action.kind === 'F');
    for (const action of list) {
      action.phase = !isCompute(action.kind) ? 'update' : first < 0 ? 'forward only' : action.index < first ? 'warm-up' :
          action.index > last ? 'cool-down' : 'steady';
    }
  }

  addMessages(data) {
    for (const [link, microbatch, sent, arrived] of data.messages) {
      const {from, to, bytes} = data.links[link];
      const find = (stage, kinds) => kinds.map(kind => this.byName.get(`${stage}${kind}${microbatch}`)).find(action => action);
      const kinds = from < to ? ['F'] : ['B', 'I'];
      const message = {from, to, microbatch, bytes, sent, arrived, sender: find(from, kinds), receiver: find(to, kinds)};
      if (!message.sender || !message.receiver) continue;
      this.sent.push(message);
      message.sender.sent.push(message);
      message.receiver.received.push(message);
    }
  }

  // Share of the time of F, B, I and W in which a rank computes nothing.
  idleShare(rank) {
    const busy = this.lists[rank].filter(action => isCompute(action.kind)).reduce((sum, {start, end}) => sum + end - start, 0);
    return this.work > 0 ? 1 - busy / this.work : 0;
  }

  // Mean time of a stage's actions of these kinds, per microbatch; ns.
  meanTime(stage, kinds) {
    const list = this.lists[this.rank_of_stage[stage]].filter(action => action.stage === stage && kinds.includes(action.kind));
    return list.reduce((sum, {start, end}) => sum + end - start, 0) / this.microbatches;
  }
}
