// Hand-made scenes for tests, in the form in which unisono/drawing/scene.py writes them.

import { replayed } from "../../../src/unisono/drawing/page/common/replay.mjs";

/** A scene from its messages: [{ sent, got, src, dst, chunks, reduce }], levels from 1. */
export function scene({ size, chunks, messages, steps, reduces = true, inputs, carries_data = true }) {
  const sorted = [...messages].sort((one, other) => one.got - other.got || one.dst - other.dst);
  const column = (name) => Int32Array.from(sorted, (message) => Number(message[name] ?? 0));
  const levels = Math.max(0, ...sorted.map(({ got }) => got));
  const all = Array.from({ length: chunks }, (_, chunk) => chunk);
  const ranks = Array.from({ length: size }, (_, rank) => rank);
  const flat = (lists) => Int32Array.from(lists.flat());
  const data = {
    label: "all_reduce/by_hand",
    collective: { name: "all_reduce", title: "all-reduce", reduces, carries_data, rooted: false },
    algorithm: { name: "by_hand", idea: { en: "", zh: "" }, options: {} },
    size,
    chunks,
    slots: chunks,
    root: null,
    on_stage: true,
    parts: [{ name: "data", first: 0, count: chunks }],
    levels,
    phases: [],
    layout: {
      best: "ring",
      parents: ranks.map((rank) => (rank === 0 ? -1 : (rank - 1) >> 1)),
      line: ranks,
      nodes: ranks.filter((rank) => rank % 4 === 0).map((first) => ranks.slice(first, first + 4)),
      columns: Math.ceil(Math.sqrt(size)),
    },
    failure: null,
  };
  const columns = {
    message_src: column("src"),
    message_dst: column("dst"),
    message_sent: column("sent"),
    message_out: column("out"),
    message_got: column("got"),
    message_reduce: column("reduce"),
    message_amount: Int32Array.from(sorted, (message) => message.chunks.length),
    message_sent_chunks: flat(sorted.map((message) => message.chunks)),
    message_got_chunks: flat(sorted.map((message) => message.chunks)),
    local_rank: new Int32Array(),
    local_level: new Int32Array(),
    local_reduce: new Int32Array(),
    local_amount: new Int32Array(),
    local_sent_chunks: new Int32Array(),
    local_got_chunks: new Int32Array(),
    step_count: Int32Array.from(ranks, (rank) => steps[rank].length),
    step_level: flat(ranks.map((rank) => steps[rank])),
    step_stack: flat(ranks.map((rank) => steps[rank].map(() => -1))),
    input_count: Int32Array.from(ranks, () => chunks),
    input_slot: flat(ranks.map(() => all)),
    input_value: flat(ranks.map((rank) => inputs?.[rank] ?? all.map((chunk) => rank + chunk))),
    goal_count: Int32Array.from(ranks, () => chunks),
    goal_slot: flat(ranks.map(() => all)),
    goal_origin: flat(ranks.map(() => all)),
    goal_rank: flat(ranks.map(() => all.map(() => -1))),
  };
  return replayed(data, columns);
}

/** A ring all-reduce. */
export function ring(size) {
  const messages = [];
  for (let hop = 1; hop < size; hop++) {
    for (let rank = 0; rank < size; rank++) {
      const dst = (rank + 1) % size;
      const chunk = (rank - hop + 2 * size) % size;
      messages.push({ src: rank, dst, sent: hop, got: hop, chunks: [chunk], reduce: true });
      const done = (rank - hop + 1 + 2 * size) % size;
      messages.push({ src: rank, dst, sent: size - 1 + hop, got: size - 1 + hop, chunks: [done], reduce: false });
    }
  }
  const every = Array.from({ length: 2 * (size - 1) }, (_, step) => step + 1);
  return scene({ size, chunks: size, messages, steps: Array.from({ length: size }, () => every) });
}

/** Recursive doubling, for a power of two: partners at distance 1, 2, 4 and so on swap the whole vector. */
export function doubling(size) {
  const messages = [];
  const rounds = Math.log2(size);
  for (let round = 1; round <= rounds; round++) {
    for (let rank = 0; rank < size; rank++) {
      messages.push({
        src: rank,
        dst: rank ^ (1 << (round - 1)),
        sent: round,
        got: round,
        chunks: [0],
        reduce: true,
      });
    }
  }
  const every = Array.from({ length: rounds }, (_, step) => step + 1);
  return scene({ size, chunks: 1, messages, steps: Array.from({ length: size }, () => every) });
}

/** Every rank sends its vector to rank 0, one after the other. */
export function star(size) {
  const messages = [];
  for (let rank = 1; rank < size; rank++) {
    messages.push({ src: rank, dst: 0, sent: 1, got: rank, chunks: [0], reduce: true });
  }
  const steps = Array.from({ length: size }, (_, rank) =>
    rank === 0 ? Array.from({ length: size - 1 }, (_, step) => step + 1) : [1],
  );
  return scene({ size, chunks: 1, messages, steps });
}
