// Sentences about the messages and operations of a step.

import { contentName, partOf, slotName } from "./data_names.mjs";
import { ranges } from "./expressions.mjs";
import { ranksIn, stepsBefore } from "./replay.mjs";
import { WORDS } from "./words.mjs";

/** The sentence for a message; `arrived` is false if it has not arrived at the end of the step. */
export function messageSentence(scene, message, language, arrived = true) {
  const write = SENTENCES[language];
  const { src, dst } = message;
  if (!scene.collective.carries_data) {
    const heard = ranksIn(message.cells[0]?.ranks ?? 0n);
    const all = heard.length === scene.size;
    return write.tell(src, dst, all ? null : ranges(heard, write.comma), heard.length, arrived);
  }
  const full = message.cells.every(Boolean);
  const what = full ? contentName(scene, message.cells, language) : slotName(scene, message.chunks, language);
  if (!arrived) return write.send(src, dst, what, write.transit);
  const several = message.into.length > 1;
  if (!message.reduce)
    return write.send(src, dst, what, write.store(several, separateSlots(scene, message, language)));
  const own = several ? null : contentBefore(scene, dst, message.got, message.into, language);
  return write.send(src, dst, what, write.add(several, own));
}

/** The sentence for a copy or combine on one rank. */
function localSentence(scene, local, language) {
  const write = SENTENCES[language];
  const { rank, level, chunks, into, reduce } = local;
  const from = contentBefore(scene, rank, level, chunks, language) ?? slotName(scene, chunks, language);
  const own = reduce && into.length === 1 ? contentBefore(scene, rank, level, into, language) : null;
  return write.local(rank, from, own ?? slotName(scene, into, language), reduce);
}

/** All sentences for a step, rank 0 first; only those of `rank` if it is given. */
export function stepSentences(scene, view, language, rank = null) {
  const about = (...ranks) => rank === null || ranks.includes(rank);
  const found = [];
  for (const local of view.locals) {
    if (about(local.rank)) found.push({ from: local.rank, to: -1, text: localSentence(scene, local, language) });
  }
  const messages = [...view.arrived, ...view.flying.map(({ message }) => message)];
  messages.forEach((message, at) => {
    const { src, dst } = message;
    const text = () => messageSentence(scene, message, language, at < view.arrived.length);
    if (about(src, dst)) found.push({ from: src, to: dst, text: text() });
  });
  found.sort((one, other) => one.from - other.from || one.to - other.to);
  return found.map(({ text }) => text);
}

/** The sentence about the data before the first step. */
export function beginning(scene, language) {
  const { holds } = WORDS[language];
  const { collective } = scene;
  if (!collective.carries_data) return holds.barrier;
  if (collective.reduces) return holds.reduces(scene.size);
  if (scene.parts[0].name === "input") return holds.letters;
  return scene.columns.input_count.filter((count) => count > 0).length === 1 ? holds.rooted(scene.root) : holds.own;
}

/** The sentence about the result after the last step. */
export function ending(scene, language) {
  const { afterWords } = WORDS[language];
  if (!scene.collective.carries_data) return afterWords.barrier;
  return scene.collective.result_on_root ? afterWords.root(scene.root) : afterWords.every;
}

/** What a rank holds in some slots before a level; null if one of them is empty. */
function contentBefore(scene, rank, level, slots, language) {
  const row = scene.rows[rank][stepsBefore(scene.steps[rank], level)];
  const cells = Array.from(slots, (slot) => row[slot]);
  return cells.every(Boolean) ? contentName(scene, cells, language) : null;
}

/** The slots in which a message is stored, if they are not those of the chunks themselves. */
function separateSlots(scene, { into }, language) {
  const { name } = partOf(scene, into[0]);
  return name === "output" || name === "scratch" ? slotName(scene, into, language) : null;
}

/** A Chinese sentence without blanks before punctuation. */
function spaced(sentence) {
  return sentence.replace(/ (?=[，。（])/g, "").replaceAll("  ", " ");
}

const SENTENCES = {
  en: {
    comma: ", ",
    transit: "; the message is in transit",
    add: (several, own) => `, which adds ${several ? "them" : "it"} to ${own ?? "its own data"}`,
    store: (several, slots) => `, which stores ${several ? "them" : "it"}${slots ? ` in ${slots}` : ""}`,
    send: (src, dst, what, effect) => `Rank ${src} sends ${what} to rank ${dst}${effect}.`,
    local: (rank, from, to, reduce) =>
      reduce ? `Rank ${rank} adds ${from} to ${to}.` : `Rank ${rank} copies ${from} to ${to}.`,
    tell: (src, dst, heard, count, arrived) => {
      const who =
        heard === null ? "all ranks have" : `rank${count === 1 ? "" : "s"} ${heard} ${count === 1 ? "has" : "have"}`;
      return `Rank ${src} tells rank ${dst} that ${who} arrived${arrived ? "" : "; the message is in transit"}.`;
    },
  },
  zh: {
    comma: "、",
    transit: "，消息还在传输中",
    add: (_several, own) => (own ? `，与后者的 ${own} 相加` : "，与后者的数据相加"),
    store: (_several, slots) => (slots ? `，由后者存入${slots}` : "，由后者存入"),
    send: (src, dst, what, effect) => spaced(`rank ${src} 把 ${what} 发给 rank ${dst}${effect}。`),
    local: (rank, from, to, reduce) =>
      spaced(reduce ? `rank ${rank} 把 ${from} 加到 ${to} 上。` : `rank ${rank} 把 ${from} 复制到 ${to}。`),
    tell: (src, dst, heard, _count, arrived) => {
      const who = heard === null ? "所有 rank " : `rank ${heard} `;
      return `rank ${src} 告诉 rank ${dst}：${who}已经到达${arrived ? "" : "（消息还在传输中）"}。`;
    },
  },
};
