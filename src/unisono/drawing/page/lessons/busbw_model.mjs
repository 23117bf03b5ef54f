// What is counted and computed on the page about bus bandwidth. Nothing here draws.

/** Chunks that a rank has sent up to a level, counted on the messages of the schedule. */
export function chunksSent(columns, level, rank) {
  let chunks = 0;
  columns.message_src.forEach((src, id) => {
    if (src === rank && columns.message_sent[id] <= level) chunks += columns.message_amount[id];
  });
  return chunks;
}

/** By how much bus bandwidth is more than algorithm bandwidth: a(p−1)/p + b. */
export function factorOf([perPeer, constant], ranks) {
  return (perPeer * (ranks - 1)) / ranks + constant;
}

/** What an all-reduce comes to on links that are fully used; `link` in bytes per second. */
export function allReduceOn({ ranks, bytes, link }) {
  const factor = factorOf([2, 0], ranks);
  const sent = factor * bytes;
  const time = sent / link;
  const algbw = bytes / time;
  return { factor, sent, time, algbw, busbw: algbw * factor };
}
