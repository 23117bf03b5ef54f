// The clock of a comparison: the times of the simulator, for each network, algorithm and size of the vector.

import { inChannelOrder } from "../common/replay.mjs";

/** Return { timesAt, finishAt, nearest }; `columns` are the unpacked times. Indices: of the network, the scene and the
 * size. */
export function raceClock(race, columns, scenes) {
  const { networks, sizes, parts } = race;
  const orders = race.animated ? scenes.map(({ messages }) => inChannelOrder(messages).map(({ id }) => id)) : [];
  const messages = orders.map((order) => order.length);
  const steps = scenes.map(({ steps: own }) => own?.reduce((sum, { length }) => sum + length, 0) ?? 0);
  const known = new Map();

  const finishAt = (network, scene, size) => networks[network].finish[scene][size];

  /** The times of a race, as viewAtTime takes them, in seconds. */
  const timesAt = (network, scene, size) => {
    const finish = finishAt(network, scene, size);
    if (!race.animated) return { finish };
    const key = `${network} ${scene} ${size}`;
    if (!known.has(key)) {
      const unit = finish / parts;
      const sent = new Float64Array(messages[scene]);
      const got = new Float64Array(messages[scene]);
      const first = startOf(messages, network, scene, size);
      orders[scene].forEach((id, at) => {
        sent[id] = columns.sent[first + at] * unit;
        got[id] = columns.got[first + at] * unit;
      });
      let start = startOf(steps, network, scene, size);
      const finished = scenes[scene].steps.map(({ length }) => {
        start += length;
        return Float64Array.from(columns.step.subarray(start - length, start), (time) => time * unit);
      });
      known.set(key, { sent, got, finished, finish });
    }
    return known.get(key);
  };

  /** The times of one network after another; of each, one scene after another; of each, one size after another. */
  const startOf = (counts, network, scene, size) => {
    const before = counts.slice(0, scene).reduce((sum, count) => sum + count, 0);
    const all = counts.reduce((sum, count) => sum + count, 0);
    return sizes.length * (network * all + before) + size * counts[scene];
  };

  return { timesAt, finishAt };
}

/** The index of the size that is nearest to a number of bytes, on a logarithmic scale. */
export function nearestSize(sizes, bytes) {
  const distance = (size) => Math.abs(Math.log((size || 1) / (bytes || 1)));
  return sizes.reduce((best, size, at) => (distance(size) < distance(sizes[best]) ? at : best), 0);
}
