// Names of data and of slots in sentences: a0+a1, "the sums Σa to Σh", "output slot 2".

import { chunkName, chunkRanges, expression, ranges, shortExpressions } from "./expressions.mjs";
import { ranksIn } from "./replay.mjs";

const MOST_ADDENDS = 5; // that a sentence spells out, of one chunk or of several
const MOST_NAMES = 6; // chunks of different ranks that a sentence names one by one

/** The name of the contents of some cells, all of which hold something. */
export function contentName(scene, cells, language) {
  const write = NAMES[language];
  const addends = cells.reduce((sum, { ranks }) => sum + ranksIn(ranks).length, 0);
  const single = addends === cells.length;
  if (cells.length === 1) {
    const [cell] = cells;
    if (addends <= MOST_ADDENDS || cell.again) return expression(scene, cell);
    return shortExpressions(scene, cell)[0];
  }
  if (addends <= (single ? MOST_NAMES : MOST_ADDENDS))
    return cells.map((cell) => expression(scene, cell)).join(write.comma);
  const [first] = cells;
  const origins = cells.map(({ origin }) => origin);
  const names = chunkRanges(origins, write.comma);
  if (cells.some(({ ranks, again }) => ranks !== first.ranks || again)) return write.mixed(names, cells.length);
  const ranks = ranksIn(first.ranks);
  if (ranks.length === 1) return write.own(names, cells.length, ranks[0]);
  if (ranks.length === scene.size) return write.all(names, cells.length);
  return write.some(names, cells.length, ranges(ranks, write.comma));
}

/** The name of the slots in a part (input, output, scratch) of a rank. */
export function slotName(scene, slots, language) {
  const part = partOf(scene, slots[0]);
  const numbers = Array.from(slots, (slot) => slot - part.first);
  const write = NAMES[language];
  const names = part.name === "output" || part.name === "scratch" ? ranges : chunkRanges;
  return write.slots[part.name](names(numbers, write.comma), numbers.length > 1);
}

/** The name of a slot in the margin of a card: the letter of its chunk; of output and scratch, its number. */
export function slotLabel(part, index) {
  return part.name === "output" || part.name === "scratch" ? `${index}` : chunkName(index);
}

/** The part of the slots to which a slot belongs. */
export function partOf(scene, slot) {
  return scene.parts.find(({ first, count }) => slot >= first && slot < first + count);
}

const NAMES = {
  en: {
    comma: ", ",
    own: (names, count, rank) => `its parts of chunks ${names} (${count} chunks, from rank ${rank})`,
    all: (names, count) => `the finished sums of chunks ${names} (${count} chunks)`,
    some: (names, count, ranks) => `chunks ${names} (${count} chunks), each summed over ranks ${ranks},`,
    mixed: (names, count) => `${count} chunks (${names})`,
    slots: {
      data: (names, several) => `chunk${several ? "s" : ""} ${names}`,
      input: (names, several) => `chunk${several ? "s" : ""} ${names} of the input`,
      output: (names, several) => `output slot${several ? "s" : ""} ${names}`,
      scratch: (names, several) => `scratch slot${several ? "s" : ""} ${names}`,
    },
  },
  zh: {
    comma: "、",
    own: (names, count, rank) => ` ${names} 这 ${count} 块（rank ${rank} 的部分）`,
    all: (names, count) => ` ${names} 这 ${count} 块最终的和`,
    some: (names, count, ranks) => ` ${names} 这 ${count} 块（已累加 rank ${ranks}）`,
    mixed: (names, count) => ` ${count} 块数据（${names}）`,
    slots: {
      data: (names) => `块 ${names} `,
      input: (names) => `输入的块 ${names} `,
      output: (names) => `输出槽 ${names} `,
      scratch: (names) => `暂存块 ${names} `,
    },
  },
};
