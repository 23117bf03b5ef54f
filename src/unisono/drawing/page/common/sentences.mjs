// Sentences about the messages and operations of a step.

import { expression, ranges } from "./expressions.mjs";
import { ranksIn } from "./replay.mjs";
import { WORDS } from "./words.mjs";

const LONGEST = 5; // the most addends that a sentence spells out

/** The sentence for a message; `arrived` is false if it has not arrived at the end of the step. */
export function messageSentence(scene, message, language, arrived = true) {
  const write = SENTENCES[language];
  if (!scene.collective.carries_data) {
    const heard = ranksIn(message.cells[0]?.ranks ?? 0n);
    return write.tell(
      message.src,
      message.dst,
      heard.length === scene.size ? null : ranges(heard, write.comma),
      heard.length,
      arrived,
    );
  }
  const what = write.chunks(part(scene, message.chunks), numbers(scene, message.chunks));
  const holds = contents(scene, message, language);
  return write.send(message.src, message.dst, what, holds, message.chunks.length > 1, message.reduce, arrived);
}

/** The sentence for a copy or combine on one rank. */
function localSentence(scene, local, language) {
  const write = SENTENCES[language];
  const from = write.chunks(part(scene, local.chunks), numbers(scene, local.chunks));
  const to = write.chunks(part(scene, local.into), numbers(scene, local.into));
  return write.local(local.rank, from, to, local.reduce);
}

/** All sentences for a step; only those of `rank` if it is given. */
export function stepSentences(scene, view, language, rank = null) {
  const about = (...ranks) => rank === null || ranks.includes(rank);
  const sentences = [];
  for (const local of view.locals) if (about(local.rank)) sentences.push(localSentence(scene, local, language));
  for (const message of view.arrived) {
    if (about(message.src, message.dst)) sentences.push(messageSentence(scene, message, language));
  }
  for (const { message } of view.flying) {
    if (about(message.src, message.dst)) sentences.push(messageSentence(scene, message, language, false));
  }
  return sentences;
}

/** The sentence about the data before the first step. */
export function beginning(scene, language) {
  const { holds } = WORDS[language];
  const { collective } = scene;
  if (!collective.carries_data) return holds.barrier;
  if (collective.reduces) return holds.reduces;
  if (scene.parts[0].name === "input") return holds.letters;
  return scene.columns.input_count.filter((count) => count > 0).length === 1 ? holds.rooted(scene.root) : holds.own;
}

/** The sentence about the result after the last step. */
export function ending(scene, language) {
  const { afterWords } = WORDS[language];
  if (!scene.collective.carries_data) return afterWords.barrier;
  return scene.collective.result_on_root ? afterWords.root(scene.root) : afterWords.every;
}

function part(scene, slots) {
  return scene.parts.find(({ first, count }) => slots[0] >= first && slots[0] < first + count);
}

function numbers(scene, slots) {
  const { first } = part(scene, slots);
  return Array.from(slots, (slot) => slot - first);
}

function contents(scene, message, language) {
  const write = SENTENCES[language];
  const [first] = message.cells;
  if (!first) return null;
  const same = message.cells.every((cell) => cell?.ranks === first.ranks);
  const ranks = ranksIn(first.ranks);
  if (!scene.collective.reduces) return same && ranks[0] !== message.src ? write.from(ranks[0]) : null;
  if (!same) return null;
  if (ranks.length === scene.size && scene.size > 2) return write.all(scene.size);
  return ranks.length <= LONGEST
    ? expression(scene, { ...first, origin: message.chunks[0] }, message.chunks[0])
    : write.some(ranks.length);
}

/** A Chinese sentence without blanks before punctuation. */
function spaced(sentence) {
  return sentence.replace(/ (?=[，。（])/g, "");
}

const SENTENCES = {
  en: {
    comma: ", ",
    chunks: ({ name }, indices) => {
      const several = indices.length > 1 ? "s" : "";
      const which = indices.length > 24 ? `${indices.length} chunks` : `chunk${several} ${ranges(indices)}`;
      const kept = { data: "", input: " of its input", output: " of its output", scratch: "" }[name];
      return name === "scratch" ? `scratch ${ranges(indices)}` : `${which}${kept}`;
    },
    from: (rank) => `came from rank ${rank}`,
    all: (size) => `the sum of all ${size}`,
    some: (count) => `the sum of ${count} ranks`,
    send: (src, dst, what, holds, several, reduce, arrived) => {
      const came = holds?.startsWith("came");
      const inside = holds ? `, which ${came ? "" : several ? "hold " : "holds "}${holds},` : "";
      const effect = arrived
        ? reduce
          ? ", which adds it to its own data"
          : ", which stores it"
        : "; the message is in transit";
      return `Rank ${src} sends ${what}${inside} to rank ${dst}${effect}.`;
    },
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
    chunks: ({ name }, indices) => {
      const which = indices.length > 24 ? ` ${indices.length} 块数据` : `第 ${ranges(indices, "、")} 块`;
      return {
        data: which,
        input: `输入的${which}`,
        output: `输出的${which}`,
        scratch: `暂存块 ${ranges(indices, "、")} `,
      }[name];
    },
    from: (rank) => `来自 rank ${rank}`,
    all: (size) => `全部 ${size} 个 rank 之和`,
    some: (count) => `${count} 个 rank 之和`,
    send: (src, dst, what, holds, _several, reduce, arrived) => {
      const inside = holds ? `（${holds}）` : "";
      const effect = arrived ? (reduce ? "，与后者的数据相加" : "，由后者存入") : "，消息还在传输中";
      return spaced(`rank ${src} 把${what}${inside}发给 rank ${dst}${effect}。`);
    },
    local: (rank, from, to, reduce) =>
      spaced(reduce ? `rank ${rank} 把${from}加到${to}上。` : `rank ${rank} 把${from}复制到${to}。`),
    tell: (src, dst, heard, _count, arrived) => {
      const who = heard === null ? "所有 rank " : `rank ${heard} `;
      return `rank ${src} 告诉 rank ${dst}：${who}已经到达${arrived ? "" : "（消息还在传输中）"}。`;
    },
  },
};
