// One sentence about all messages of a step: what every rank does, if all do the same, or else how many there are.

import { WORDS } from "./words.mjs";

/** The sentence, empty if there is nothing to say. */
export function stepSummary(scene, view, language) {
  const w = { ...WORDS[language], ...SENTENCES[language] };
  const local = new Set(view.locals.map(({ rank }) => rank)).size;
  const general = generalSentence(scene, view.arrived, w);
  if (general) return local ? `${general}${w.between}${w.summary(0, 0, 0, local)}` : general;
  const added = view.arrived.filter(({ reduce }) => reduce).length;
  return w.summary(view.arrived.length, added, view.arrived.length - added, local);
}

function generalSentence({ size, collective }, messages, w) {
  if (size < 3 || messages.length < size) return "";
  const [{ reduce, chunks, sent, got }] = messages;
  const alike = messages.every((one) => one.reduce === reduce && one.sent === sent && one.got === got);
  if (!alike) return "";
  const amount = messages.every((one) => one.chunks.length === chunks.length) ? chunks.length : 0;
  const effect = collective.carries_data ? w.effect(reduce, amount) : "";
  const what = collective.carries_data ? w.amount(amount) : w.arrivals;
  const pairs = new Set(messages.map(({ src, dst }) => src * size + dst));
  if (pairs.size === messages.length && pairs.size === size * (size - 1)) return w.allToAll(what, effect);
  const senders = new Set(messages.map(({ src }) => src));
  if (messages.length !== size || senders.size !== size) return "";
  const distances = new Set(messages.map(({ src, dst }) => (dst - src + size) % size));
  if (distances.size === 1) {
    const [right] = distances;
    if (2 * right !== size)
      return 2 * right < size ? w.allTo(what, right, w.right, effect) : w.allTo(what, size - right, w.left, effect);
  }
  if (!messages.every(({ src, dst }) => pairs.has(dst * size + src))) return "";
  const [apart, ...others] = new Set(messages.map(({ src, dst }) => Math.abs(dst - src)));
  return w.allSwap(what, others.length ? 0 : apart, effect);
}

const SENTENCES = {
  en: {
    between: " ",
    right: "right",
    left: "left",
    amount: (chunks) => (chunks === 0 ? "chunks" : chunks === 1 ? "one chunk" : `${chunks} chunks`),
    arrivals: "the arrivals that it knows of",
    effect: (reduce, chunks) =>
      `, which ${reduce ? "adds" : "stores"} ${chunks === 1 ? "it" : "them"}${reduce ? " to its own data" : ""}`,
    allTo: (what, distance, side, effect) =>
      distance === 1
        ? `Every rank sends ${what} to its ${side} neighbour${effect}.`
        : `Every rank sends ${what} to the rank ${distance} to its ${side}${effect}.`,
    allSwap: (what, distance, effect) =>
      `Ranks ${distance ? `at distance ${distance} ` : ""}swap in pairs: each sends ${what} to its partner${effect}.`,
    allToAll: (what, effect) => `Every rank sends ${what} to each other rank${effect}.`,
  },
  zh: {
    between: "",
    right: "右",
    left: "左",
    amount: (chunks) => (chunks === 0 ? "若干块" : `${chunks} 块`),
    arrivals: "自己已知的到达情况",
    effect: (reduce) => (reduce ? "，与对方的数据相加" : "，由对方存入"),
    allTo: (what, distance, side, effect) =>
      distance === 1
        ? `每个 rank 把${spaced(what)}发给${side}邻${effect}。`
        : `每个 rank 把${spaced(what)}发给${side}边距离为 ${distance} 的 rank${effect}。`,
    allSwap: (what, distance, effect) =>
      `${distance ? `距离为 ${distance} 的 ` : ""}rank 两两交换：各把${spaced(what)}发给对方${effect}。`,
    allToAll: (what, effect) => `每个 rank 把${spaced(what)}发给其他每个 rank${effect}。`,
  },
};

/** A Chinese phrase with a blank before it if it begins with a number. */
function spaced(phrase) {
  return /^\d/.test(phrase) ? ` ${phrase}` : phrase;
}
