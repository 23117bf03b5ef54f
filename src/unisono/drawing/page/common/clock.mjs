// A simple clock: a message costs alpha + bytes · beta, and a rank sends one at a time and receives one at a time.
//
// With alpha 1 and beta 0 it counts the rounds of the verifier. The duration of a schedule follows from its messages
// alone; nothing is assumed about the algorithm.

/** Sort the messages once for the clock. Uses only columns, and so works for a thousand ranks too. */
export function prepareClock(scene) {
  const { columns } = scene;
  // Messages by the level on which they are sent; within a level, in the order of their step.
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

/** Sort by a small number; the order of equal entries is kept. */
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

/** Return the times at which every message is sent and received, every step finishes, and the schedule finishes, in the
 * unit of alpha. `perChunk` is the cost that a chunk adds to a message. */
export function clockTimes(clock, alpha, perChunk) {
  const { scene, bySending, steps, rankOf, firstOf } = clock;
  const { columns, size } = scene;
  const count = bySending.length;
  const now = new Float64Array(size);
  const left = new Float64Array(size); // when the last message so far was sent
  const arrived = new Float64Array(size); // when the last message so far was received
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
      // The messages of a step are received in the order of their arrival.
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

/** The duration of a schedule for a vector of this many bytes. */
export function duration(clock, alpha, beta, bytes) {
  return clockTimes(clock, alpha, costPerChunk(clock.scene, beta, bytes)).finish;
}

/** The cost that a chunk adds to a message. */
export function costPerChunk(scene, beta, bytes) {
  return scene.collective.carries_data ? (beta * bytes) / scene.chunks : 0;
}

/** The sizes at which the fastest schedule changes: [{ bytes, before, after }], the shortest vectors first. */
export function crossovers(clocks, alpha, beta, sizes) {
  const fastest = (bytes) => {
    let best = 0;
    const times = clocks.map((clock) => duration(clock, alpha, beta, bytes));
    times.forEach((time, index) => {
      if (time < times[best] * (1 - 1e-12)) best = index;
    });
    return best;
  };
  const found = [];
  let before = fastest(sizes[0]);
  for (let at = 1; at < sizes.length; at++) {
    const after = fastest(sizes[at]);
    if (after !== before) found.push({ bytes: boundary(fastest, sizes[at - 1], sizes[at], before), before, after });
    before = after;
  }
  return found;
}

/** The largest size, to the precision of a number, at which `before` is still the fastest. */
function boundary(fastest, low, high, before) {
  for (let round = 0; round < 60 && high / low > 1 + 1e-12; round++) {
    const middle = Math.sqrt(low * high);
    if (fastest(middle) === before) low = middle;
    else high = middle;
  }
  return high;
}

/** Sizes from one to another, evenly on a logarithmic scale. */
export function logarithmic(first, last, count) {
  const step = (last / first) ** (1 / (count - 1));
  return Array.from({ length: count }, (_, at) => first * step ** at);
}
