// The data of a recorded training step, and the formulas for models that were not recorded. Nothing here draws.
//
// A moment is an event of the step; `held[rank][layer]` are the bytes that a rank then holds, by kind.

/** The uses of memory, in the order in which they are recorded and stacked. */
export const KINDS = ["parameters", "gradients", "optimizer", "gathered", "activations"];
export const EMPTY = "empty"; // memory that is reserved and currently holds nothing

/** Bytes per parameter: the parameter, its gradient, and the state of Adam. */
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

/** The bytes that a rank has sent by the end of a moment; a collective counts from its start. */
export function sentUpTo(data, level) {
  const begun = data.moments.slice(0, level + 1).filter(({ collective }) => collective !== null);
  return begun.reduce((sum, { collective }) => sum + data.collectives[collective].sent_bytes, 0);
}

/** The moments during which every collective runs: [{ first, last }]. */
export function spans(data) {
  return data.collectives.map((_, number) => {
    const running = data.moments.flatMap(({ open }, level) => (open.includes(number) ? [level] : []));
    return { first: Math.min(...running), last: Math.max(...running) };
  });
}

/** The phases for the bar: first and last moment of each. */
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

/** The number of elements of a layer on all ranks together, each counted once. */
function numbersOf(data, layer) {
  return layer.parameters.reduce((sum, [name, shape]) => {
    return sum + product(data.whole?.[`${layer.name}.${name}`] ?? shape);
  }, 0);
}

/** The number of parameters of the recorded model, and of those that every rank has, split or not. */
export function countParameters(data) {
  const every = data.layers.reduce((sum, layer) => sum + numbersOf(data, layer), 0);
  const shared = data.layers.flatMap((layer) =>
    layer.parameters
      .filter(([name, shape]) => same(data.whole?.[`${layer.name}.${name}`], shape))
      .map(([, shape]) => product(shape)),
  );
  return { parameters: every, whole: shared.reduce((sum, count) => sum + count, 0) };
}

/** The contents of the cell of a layer on a rank: the parts of p that are present, and whether gradients are final. */
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

/** Whether the gradients of a layer are those that the optimiser needs: averaged, if they are to be averaged. */
function isFinal(data, level, at) {
  const mine = data.layers[at].parameters.map(([name]) => `${data.layers[at].name}.${name}`);
  const begun = data.moments.slice(0, level + 1).map(({ collective }) => collective);
  const numbers = data.collectives.flatMap(({ phase, collective, members }, number) => {
    const sums = phase === "backward" && collective !== "all_gather";
    return sums && members.some(([name]) => mine.includes(name)) ? [number] : [];
  });
  return numbers.every((number) => begun.includes(number) && !data.moments[level].open.includes(number));
}

/** By formula: the bytes of parameters, gradients and optimiser that a rank holds. */
export function memoryFormula(strategy, { parameters, whole = 0, ranks, precision }) {
  const shares = {
    data_parallel: parameters,
    zero3: parameters / ranks,
    tensor_parallel: (parameters - whole) / ranks + whole,
    experts: (parameters - whole) / ranks + whole,
  };
  const bytes = PRECISIONS[precision];
  const found = Object.fromEntries(STATES.map((kind) => [kind, bytes[kind] * shares[strategy]]));
  found.total = STATES.reduce((sum, kind) => sum + found[kind], 0);
  return found;
}

/** By formula: the bytes that a rank sends in a step. For tensor parallel: `reduces` all-reduces of an activation. For
 * experts: `exchanges` all-to-alls of an activation, if every expert gets the same number of rows. */
export function sentFormula(
  strategy,
  { parameters, ranks, precision, reduces = 0, exchanges = 0, activation = 0, whole = 0 },
) {
  const part = (ranks - 1) / ranks;
  const bytes = PRECISIONS[precision];
  if (strategy === "data_parallel") return 2 * part * bytes.gradients * parameters;
  if (strategy === "zero3") return part * (2 * bytes.parameters + bytes.gradients) * parameters;
  if (strategy === "experts") return part * (exchanges * bytes.parameters * activation + 2 * bytes.gradients * whole);
  return reduces * 2 * part * activation * bytes.parameters;
}

/** The width of a transformer with this depth and this many parameters: 12 · width² for each layer. */
export function widthOf(parameters, depth) {
  return Math.sqrt(parameters / (12 * depth));
}

/** The width of a model with one expert of 8 · width² parameters on each rank, in each layer; the rest is neglected. */
export function widthWithExperts(parameters, depth, ranks) {
  return Math.sqrt(parameters / (8 * depth * ranks));
}

export function product(shape) {
  return shape.reduce((all, one) => all * one, 1);
}

function same(one, other) {
  return one !== undefined && one.length === other.length && one.every((value, at) => value === other[at]);
}
