// Replays the messages of a scene, starting from the inputs, to find the contents of every slot after every step of
// every rank.
//
// Cell: the contents of a slot: chunk `origin` of the inputs of `ranks` (a set, one bit for each), added up to `value`.
// In an incorrect program a rank may be added more than once: such ranks are in the set `again`.
// rows[rank][k]: the cells of a rank after k of its steps; null if a slot is empty.

const NEVER = -1;
const EVERYONE = -1;

/** Return the scene with its messages and steps as objects and, if it has a stage, with rows and goals. */
export function replayed(data, columns) {
  const scene = { ...data, columns };
  scene.steps = stepsOf(data, columns);
  if (!data.on_stage) return scene;
  scene.messages = messagesOf(columns);
  scene.locals = localsOf(columns);
  scene.goals = goalsOf(data, columns);
  for (const message of scene.messages) {
    if (message.got === NEVER) continue;
    stepAt(scene.steps[message.dst], message.got).gets.push(message);
  }
  for (const message of scene.messages) {
    const step = scene.steps[message.src][stepsBefore(scene.steps[message.src], message.sent)];
    if (step) step.sends.push(message);
  }
  for (const local of scene.locals) {
    if (local.level !== NEVER) stepAt(scene.steps[local.rank], local.level).locals.push(local);
  }
  scene.rows = play(scene, firstRows(data, columns));
  return scene;
}

/** The number of steps of a rank that are done before a level begins. */
export function stepsBefore(steps, level) {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle].level < level) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Whether a cell holds what its slot must hold at the end; false for slots without a goal. */
export function isDone(scene, rank, slot, cell) {
  const goal = scene.goals[rank].get(slot);
  return Boolean(cell && goal && !cell.again && cell.origin === goal.origin && cell.ranks === goal.ranks);
}

/** The numbers of the ranks in a set. */
export function ranksIn(set) {
  const ranks = [];
  for (let rank = 0, rest = set; rest > 0n; rank++, rest >>= 1n) if (rest & 1n) ranks.push(rank);
  return ranks;
}

/** Sort messages by sender, receiver and number: the order in which their times are stored. */
export function inChannelOrder(messages) {
  return messages.slice().sort((one, other) => one.src - other.src || one.dst - other.dst || one.id - other.id);
}

function stepAt(steps, level) {
  return steps[stepsBefore(steps, level)];
}

/** The steps of each rank. Without a stage there may be millions of them, and they have only a level. */
function stepsOf(data, columns) {
  const steps = [];
  let at = 0;
  for (let rank = 0; rank < data.size; rank++) {
    steps.push([]);
    for (let index = 0; index < columns.step_count[rank]; index++, at++) {
      const step = { level: columns.step_level[at], stack: columns.step_stack[at] };
      steps[rank].push(data.on_stage ? { ...step, sends: [], gets: [], locals: [] } : step);
    }
  }
  return steps;
}

function messagesOf(columns) {
  const messages = [];
  let start = 0;
  for (let id = 0; id < columns.message_src.length; id++) {
    const end = start + columns.message_amount[id];
    messages.push({
      id,
      src: columns.message_src[id],
      dst: columns.message_dst[id],
      sent: columns.message_sent[id],
      got: columns.message_got[id],
      reduce: columns.message_reduce[id] === 1,
      chunks: columns.message_sent_chunks.subarray(start, end),
      into: columns.message_got_chunks.subarray(start, end),
      cells: [],
    });
    start = end;
  }
  return messages;
}

function localsOf(columns) {
  const locals = [];
  let start = 0;
  for (let id = 0; id < columns.local_rank.length; id++) {
    const end = start + columns.local_amount[id];
    locals.push({
      rank: columns.local_rank[id],
      level: columns.local_level[id],
      reduce: columns.local_reduce[id] === 1,
      chunks: columns.local_sent_chunks.subarray(start, end),
      into: columns.local_got_chunks.subarray(start, end),
    });
    start = end;
  }
  return locals;
}

function goalsOf(data, columns) {
  const everyone = (1n << BigInt(data.size)) - 1n;
  const goals = [];
  let at = 0;
  for (let rank = 0; rank < data.size; rank++) {
    const goal = new Map();
    for (let index = 0; index < columns.goal_count[rank]; index++, at++) {
      const source = columns.goal_rank[at];
      const ranks = source === EVERYONE ? everyone : 1n << BigInt(source);
      goal.set(columns.goal_slot[at], { origin: columns.goal_origin[at], ranks });
    }
    goals.push(goal);
  }
  return goals;
}

function firstRows(data, columns) {
  const rows = [];
  let at = 0;
  for (let rank = 0; rank < data.size; rank++) {
    const row = new Array(data.slots).fill(null);
    for (let index = 0; index < columns.input_count[rank]; index++, at++) {
      const slot = columns.input_slot[at];
      const value = data.collective.carries_data ? columns.input_value[at] : 1;
      row[slot] = { origin: slot, ranks: 1n << BigInt(rank), again: 0n, value };
    }
    rows.push(row);
  }
  return rows;
}

function play(scene, first) {
  const rows = first.map((row) => [row]);
  const order = [];
  scene.steps.forEach((steps, rank) => {
    steps.forEach((step, index) => {
      order.push({ step, rank, index });
    });
  });
  order.sort((one, other) => one.step.level - other.step.level);
  const read = (message) => {
    const row = rows[message.src][stepsBefore(scene.steps[message.src], message.sent)];
    return Array.from(message.chunks, (chunk) => row[chunk]);
  };
  for (const { step, rank, index } of order) {
    const before = rows[rank][index];
    const row = before.slice();
    for (const local of step.locals) {
      local.into.forEach((slot, at) => {
        row[slot] = combined(scene, local.reduce, row[slot], before[local.chunks[at]]);
      });
    }
    for (const message of step.gets) {
      message.cells = read(message);
      message.into.forEach((slot, at) => {
        row[slot] = combined(scene, message.reduce, row[slot], message.cells[at]);
      });
    }
    rows[rank].push(row);
  }
  for (const message of scene.messages) if (message.got === NEVER) message.cells = read(message);
  return rows;
}

function combined(scene, reduce, here, coming) {
  if (!scene.collective.carries_data) {
    // A barrier: the receiver of a message learns of every rank that its sender had learned of.
    const ranks = (here?.ranks ?? 0n) | (coming?.ranks ?? 0n);
    return { origin: 0, ranks, again: 0n, value: ranksIn(ranks).length };
  }
  if (!reduce || !here) return coming;
  if (!coming) return here;
  return {
    origin: here.origin,
    ranks: here.ranks | coming.ranks,
    again: (here.ranks & coming.ranks) | here.again | coming.again,
    value: here.value + coming.value,
  };
}
