// What a recorded training step says, and the formulas for models that nobody has recorded. Nothing here draws.
//
// A moment is something that happens in the step; `held[rank][layer]` are the bytes that a rank then holds, by kind.

/** What memory is for, in the order in which it is recorded and stacked. */
export const KINDS = ["parameters", "gradients", "optimizer", "gathered", "activations"];
export const EMPTY = "empty"; // memory that is kept ready and holds nothing now

/** Bytes for each parameter: itself, its gradient, what Adam keeps. */
export const PRECISIONS = {
  mixed: { parameters: 2, gradients: 2, optimizer: 12 },
  float32: { parameters: 4, gradients: 4, optimizer: 8 },
};
const STATES = ["parameters", "gradients", "optimizer"];

/** The bytes of a rank at a moment: { parameters, ..., empty, total }. */
export function memoryAt(data, level, rank) {
  const moment = data.moments[level];
  const found = Object.fromEntries(
    KINDS.map((kind, at) => [kind, moment.held[rank].reduce((sum, layer) => sum + layer[at], 0)]),
  );
  found[EMPTY] = moment.empty[rank];
  found.total = Object.values(found).reduce((sum, bytes) => sum + bytes, 0);
  return found;
}

/** The most bytes that a rank holds up to a moment. */
export function mostUpTo(data, level, rank) {
  return Math.max(...data.moments.slice(0, level + 1).map((_, at) => memoryAt(data, at, rank).total));
}

/** The bytes that a rank has sent when a moment is over; every collective counts from where it sets out. */
export function sentUpTo(data, level) {
  const begun = data.moments.slice(0, level + 1).filter(({ collective }) => collective !== null);
  return begun.reduce((sum, { collective }) => sum + data.collectives[collective].sent_bytes, 0);
}

/** When every collective runs: [{ first, last }], moments. */
export function spans(data) {
  return data.collectives.map((_, number) => {
    const running = data.moments.flatMap(({ open }, level) => (open.includes(number) ? [level] : []));
    return { first: Math.min(...running), last: Math.max(...running) };
  });
}

/** The phases as the bar wants them: first and last moment of each. */
export function phasesOf(data, names) {
  const found = [];
  data.moments.forEach(({ phase }, level) => {
    if (level === 0) return;
    const last = found[found.length - 1];
    if (last?.phase === phase) last.last = level;
    else found.push({ phase, words: names(phase), first: level, last: level });
  });
  return found;
}

/** How many numbers a layer has on all ranks together, each counted once. */
function numbersOf(data, layer) {
  return layer.parameters.reduce((sum, [name, shape]) => {
    return sum + product(data.whole?.[`${layer.name}.${name}`] ?? shape);
  }, 0);
}

/** How many parameters the recorded model has, and how many of them every rank has, split or not. */
export function countParameters(data) {
  const every = data.layers.reduce((sum, layer) => sum + numbersOf(data, layer), 0);
  const shared = data.layers.flatMap((layer) =>
    layer.parameters
      .filter(([name, shape]) => same(data.whole?.[`${layer.name}.${name}`], shape))
      .map(([, shape]) => product(shape)),
  );
  return { parameters: every, whole: shared.reduce((sum, count) => sum + count, 0) };
}

/** What a cell shows of a layer on a rank: which parts of p are there, and whether gradients are final. */
export function cellAt(data, level, rank, at) {
  const layer = data.layers[at];
  const [parameters, gradients, optimizer, gathered, activations] = data.moments[level].held[rank][at];
  const whole = numbersOf(data, layer) * 4;
  const parts = (bytes, all) => {
    if (!bytes) return [];
    return bytes > all * 0.9 ? Array.from({ length: data.ranks }, (_, part) => part) : [rank];
  };
  return {
    parameters: parts(parameters, whole),
    gathered: gathered > 0,
    gradients: parts(gradients, whole),
    final: isFinal(data, level, at),
    optimizer: parts(optimizer, 2 * whole),
    activations: activations > 0,
  };
}

/** Whether the gradients of a layer are what the optimiser needs: averaged, where they are to be averaged. */
function isFinal(data, level, at) {
  const mine = data.layers[at].parameters.map(([name]) => `${data.layers[at].name}.${name}`);
  const begun = data.moments.slice(0, level + 1).map(({ collective }) => collective);
  const numbers = data.collectives.flatMap(({ phase, collective, members }, number) => {
    const sums = phase === "backward" && collective !== "all_gather";
    return sums && members.some(([name]) => mine.includes(name)) ? [number] : [];
  });
  return numbers.every((number) => begun.includes(number) && !data.moments[level].open.includes(number));
}

/** By formula: what a rank holds of parameters, gradients and optimiser, in bytes. */
export function memoryFormula(strategy, { parameters, whole = 0, ranks, precision }) {
  const shares = {
    data_parallel: parameters,
    zero3: parameters / ranks,
    tensor_parallel: (parameters - whole) / ranks + whole,
  };
  const bytes = PRECISIONS[precision];
  const found = Object.fromEntries(STATES.map((kind) => [kind, bytes[kind] * shares[strategy]]));
  found.total = STATES.reduce((sum, kind) => sum + found[kind], 0);
  return found;
}

/** By formula: what a rank sends in a step, in bytes. Of tensor parallel: `reduces` all-reduces of an activation. */
export function sentFormula(strategy, { parameters, ranks, precision, reduces = 0, activation = 0 }) {
  const part = (ranks - 1) / ranks;
  const bytes = PRECISIONS[precision];
  if (strategy === "data_parallel") return 2 * part * bytes.gradients * parameters;
  if (strategy === "zero3") return part * (2 * bytes.parameters + bytes.gradients) * parameters;
  return reduces * 2 * part * activation * bytes.parameters;
}

/** The width of a transformer of so many layers that has so many parameters: 12 · width² for each layer. */
export function widthOf(parameters, depth) {
  return Math.sqrt(parameters / (12 * depth));
}

export function product(shape) {
  return shape.reduce((all, one) => all * one, 1);
}

function same(one, other) {
  return one !== undefined && one.length === other.length && one.every((value, at) => value === other[at]);
}
