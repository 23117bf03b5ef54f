// A simple clock: a message costs alpha + bytes · beta, and a rank sends one at a time and receives one at a time.
//
// With alpha 1 and beta 0 it counts the rounds of the verifier. How long a schedule takes follows from its own messages,
// nothing is assumed about the algorithm.

/** Sort what the clock needs once; works on columns alone, so also for a thousand ranks. */
export function windUp(scene) {
  const { columns } = scene;
  // Messages by the level on which they are sent; on one level, as their step has them.
  const numbered = sortedBy(everyNumber(columns.message_sent.length), (id) => columns.message_out[id]);
  const bySending = sortedBy(numbered, (id) => columns.message_sent[id]);
  const steps = sortedBy(everyNumber(columns.step_level.length), (at) => columns.step_level[at]);
  const rankOf = new Uint16Array(steps.length);
  const firstOf = new Uint32Array(scene.size);
  let at = 0;
  columns.step_count.forEach((count, rank) => {
    firstOf[rank] = at;
    rankOf.fill(rank, at, at + count);
    at += count;
  });
  return { scene, bySending, steps, rankOf, firstOf };
}

function everyNumber(count) {
  return Uint32Array.from({ length: count }, (_, number) => number);
}

/** Sort by a small number, keeping the order of those that have the same. */
function sortedBy(order, key) {
  const counts = [0];
  for (const one of order) {
    const value = key(one) + 1;
    while (counts.length <= value) counts.push(0);
    counts[value] += 1;
  }
  for (let value = 1; value < counts.length; value++) counts[value] += counts[value - 1];
  const sorted = new Uint32Array(order.length);
  for (const one of order) sorted[counts[key(one)]++] = one;
  return sorted;
}

/** When every message is sent and received and every step finished, in the unit of alpha, and when all is over.
 *
 * `perChunk` is what a chunk adds to the cost of a message. */
export function tell(clock, alpha, perChunk) {
  const { scene, bySending, steps, rankOf, firstOf } = clock;
  const { columns, size } = scene;
  const count = bySending.length;
  const now = new Float64Array(size);
  const left = new Float64Array(size); // when its last message so far had gone out
  const arrived = new Float64Array(size); // when its last message so far had come in
  const sent = new Float64Array(count).fill(Number.POSITIVE_INFINITY);
  const got = new Float64Array(count).fill(Number.POSITIVE_INFINITY);
  const finished = scene.steps.map((own) => new Float64Array(own.length));
  const cost = (id) => alpha + columns.message_amount[id] * perChunk;
  let sending = 0;
  let receiving = 0;
  let step = 0;
  for (let level = 1; level <= scene.levels; level++) {
    for (; sending < count && columns.message_sent[bySending[sending]] === level; sending++) {
      const id = bySending[sending];
      const src = columns.message_src[id];
      sent[id] = Math.max(left[src], now[src]);
      left[src] = sent[id] + cost(id);
      got[id] = left[src];
    }
    while (receiving < count && columns.message_got[receiving] === level) {
      const dst = columns.message_dst[receiving];
      const together = [];
      while (columns.message_got[receiving] === level && columns.message_dst[receiving] === dst) {
        together.push(receiving++);
      }
      // The messages of a step come in in the order in which they get here.
      if (together.length > 1) together.sort((one, other) => got[one] - got[other]);
      for (const id of together) {
        arrived[dst] = Math.max(got[id], arrived[dst] + cost(id));
        got[id] = arrived[dst];
      }
    }
    for (; step < steps.length && columns.step_level[steps[step]] === level; step++) {
      const rank = rankOf[steps[step]];
      now[rank] = Math.max(now[rank], left[rank], arrived[rank]);
      finished[rank][steps[step] - firstOf[rank]] = now[rank];
    }
  }
  return { sent, got, finished, finish: Math.max(...now) };
}

/** How long a schedule takes for a vector of so many bytes. */
export function duration(clock, alpha, beta, bytes) {
  return tell(clock, alpha, costPerChunk(clock.scene, beta, bytes)).finish;
}

/** What a chunk adds to the cost of a message. */
export function costPerChunk(scene, beta, bytes) {
  return scene.collective.carries_data ? (beta * bytes) / scene.chunks : 0;
}

/** Where another one becomes the quickest: [{ bytes, before, after }], from short vectors to long ones. */
export function crossovers(clocks, alpha, beta, sizes) {
  const quickest = (bytes) => {
    let best = 0;
    const times = clocks.map((clock) => duration(clock, alpha, beta, bytes));
    times.forEach((time, index) => {
      if (time < times[best] * (1 - 1e-12)) best = index;
    });
    return best;
  };
  const found = [];
  let before = quickest(sizes[0]);
  for (let at = 1; at < sizes.length; at++) {
    const after = quickest(sizes[at]);
    if (after !== before) found.push({ bytes: boundary(quickest, sizes[at - 1], sizes[at], before), before, after });
    before = after;
  }
  return found;
}

/** The largest size, as near as a number can say, for which the quickest is still the one before. */
function boundary(quickest, low, high, before) {
  for (let round = 0; round < 60 && high / low > 1 + 1e-12; round++) {
    const middle = Math.sqrt(low * high);
    if (quickest(middle) === before) low = middle;
    else high = middle;
  }
  return high;
}

/** Sizes from one to another, evenly on a logarithmic scale. */
export function logarithmic(first, last, count) {
  const step = (last / first) ** (1 / (count - 1));
  return Array.from({ length: count }, (_, at) => first * step ** at);
}
