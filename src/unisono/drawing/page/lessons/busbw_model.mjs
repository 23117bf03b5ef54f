// The numbers of the page about bus bandwidth. Nothing here draws.

/** The chunks that a rank has sent up to a level, counted from the messages of the schedule. */
export function chunksSent(columns, level, rank) {
  let chunks = 0;
  columns.message_src.forEach((src, id) => {
    if (src === rank && columns.message_sent[id] <= level) chunks += columns.message_amount[id];
  });
  return chunks;
}

/** The ratio of bus bandwidth to algorithm bandwidth: a(p−1)/p + b. */
export function factorOf([perPeer, constant], ranks) {
  return (perPeer * (ranks - 1)) / ranks + constant;
}

/** The numbers of an all-reduce that uses its links fully; `link` in bytes per second. */
export function allReduceOn({ ranks, bytes, link }) {
  const factor = factorOf([2, 0], ranks);
  const sent = factor * bytes;
  const time = sent / link;
  const algbw = bytes / time;
  return { factor, sent, time, algbw, busbw: algbw * factor };
}
