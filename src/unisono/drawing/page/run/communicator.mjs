// One communicator of a recorded run: its calls, and the activity of every rank over time, indexed for lookup.
//
// Times are nanoseconds since the first event of the communicator. Ops, waits and so on are referred to by their index
// in the columns; `rows` has, for each rank, its own indices in the order of time.

const SPANS = ["entered", "op", "wait", "transfer"]; // events with a beginning, an end and a rank

/** Return the group; of the `scenes` of the page, only the numbers of messages and steps are used. */
export function openGroup(data, columns, scenes) {
  const group = { ...data, columns, calls: callsOf(data, columns) };
  const count = group.calls.length;
  group.rows = Array.from({ length: data.size }, () => ({}));
  for (const name of SPANS) {
    listsBy(columns[`${name}_rank`], data.size).forEach((list, rank) => {
      const begins = columns[`${name}_begin`];
      group.rows[rank][name] = list.sort((one, other) => begins[one] - begins[other]);
    });
  }
  for (const name of ["op", "wait", "message", "path", "entered"]) {
    group[`${name}sOf`] = listsBy(columns[`${name}_call`], count);
  }
  group.transferPairs = pairsOf(columns);
  let [message, step] = [0, 0];
  for (const call of group.calls) {
    Object.assign(call, { firstMessage: message, firstStep: step });
    if (call.scene < 0) continue;
    message += lengthOf(scenes[call.scene], "message_src");
    step += lengthOf(scenes[call.scene], "step_level");
  }
  const ends = [
    ...group.calls.map(({ end }) => end),
    ...Array.from(columns.transfer_begin, (_, at) => endOf(group, "transfer", at)),
  ];
  group.end = Math.max(1, ...(ends.length > 1e5 ? [ends.reduce((one, other) => Math.max(one, other))] : ends));
  return group;
}

/** The time at which an event ends. */
export function endOf({ columns }, name, at) {
  return columns[`${name}_begin`][at] + columns[`${name}_end`][at];
}

/** The index of the first entry of a list that begins after a moment. */
function firstAfter(list, begins, moment) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (begins[list[middle]] <= moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The events of one kind of a rank between two moments: a range of indices into its list. */
export function between(group, rank, name, from, to) {
  const list = group.rows[rank][name];
  const begins = group.columns[`${name}_begin`];
  let first = firstAfter(list, begins, from);
  while (first > 0 && endOf(group, name, list[first - 1]) >= from) first -= 1; // it began earlier and continues
  return [first, firstAfter(list, begins, to)];
}

/** The event of a rank at a moment, or at most `slack` away from it: { name, at }; ops before waits before calls. */
export function doing(group, rank, moment, slack) {
  for (const name of ["op", "wait", "transfer", "entered"]) {
    const [first, last] = between(group, rank, name, moment - slack, moment + slack);
    const list = group.rows[rank][name];
    let best = null;
    for (let place = first; place < last; place++) {
      const at = list[place];
      const away = Math.max(group.columns[`${name}_begin`][at] - moment, moment - endOf(group, name, at), 0);
      if (best === null || away < best.away) best = { name, at, away };
    }
    if (best) return best;
  }
  return null;
}

/** The times at which each rank began and ended a call; null for ranks that did not record it. */
export function visitsOf(group, call) {
  const visits = new Array(group.size).fill(null);
  for (const at of group.enteredsOf[call.at]) {
    visits[group.columns.entered_rank[at]] = {
      begin: group.columns.entered_begin[at],
      end: endOf(group, "entered", at),
    };
  }
  return visits;
}

/** The index of the call at a moment, or of the nearest one. */
export function callAt(group, moment) {
  let best = 0;
  let nearest = Number.POSITIVE_INFINITY;
  for (const { at, begin, end } of group.calls) {
    const away = Math.max(begin - moment, moment - end, 0);
    if (away < nearest) [best, nearest] = [at, away];
  }
  return best;
}

/** Pairs of sends and the receives of their messages, as indices: both ends of a message record its number. */
function pairsOf({ transfer_rank: rank, transfer_peer: peer, transfer_sending: sending, ...columns }) {
  const sent = new Map();
  const key = (from, to, at) => `${from} ${to} ${columns.transfer_number[at]} ${columns.transfer_tag[at]}`;
  rank.forEach((mine, at) => {
    if (sending[at]) sent.set(key(mine, peer[at], at), at);
  });
  const pairs = [];
  rank.forEach((mine, at) => {
    const other = sending[at] ? undefined : sent.get(key(peer[at], mine, at));
    if (other !== undefined && peer[at] !== mine) pairs.push([other, at]);
  });
  return pairs;
}

function callsOf(data, columns) {
  return Array.from(columns.call_number, (number, at) => ({
    ...data.abouts[columns.call_about[at]],
    at,
    number,
    begin: columns.call_begin[at],
    end: columns.call_end[at],
    lost: columns.call_lost[at],
    culprit: columns.call_culprit[at],
    scene: columns.call_scene[at],
    why: columns.call_why[at],
  }));
}

/** For each value of a column, the indices at which it occurs. */
function listsBy(column, count) {
  const sizes = new Uint32Array(count);
  for (const value of column) sizes[value] += 1;
  const lists = Array.from(sizes, (size) => new Uint32Array(size));
  sizes.fill(0);
  column.forEach((value, at) => {
    lists[value][sizes[value]++] = at;
  });
  return lists;
}

function lengthOf({ packed }, name) {
  return packed.lengths[packed.names.indexOf(name)];
}
