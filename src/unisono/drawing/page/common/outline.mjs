// Sentences for schedules whose chunks are not listed one by one, because there are too many ranks.

import { chunkName } from "./expressions.mjs";
import { WORDS } from "./words.mjs";

/** Describe what a rank does on a level, or what all ranks do if no rank is chosen. */
export function outlineSentences(scene, { level }, language, rank = null) {
  const w = WORDS[language];
  const got = received(scene, level);
  const sent = sentOn(scene, level);
  if (rank === null) {
    const added = got.filter((id) => scene.columns.message_reduce[id]).length;
    return [w.summary(got.length, added, got.length - added, 0)].filter(Boolean);
  }
  const { columns } = scene;
  const sentences = [];
  for (const id of sent) {
    if (columns.message_src[id] === rank) {
      sentences.push(w.outlineSent(rank, columns.message_dst[id], chunks(scene, id, w)));
    }
  }
  for (const id of got) {
    if (columns.message_dst[id] !== rank) continue;
    const adds = columns.message_reduce[id] === 1;
    sentences.push(w.outlineGot(rank, columns.message_src[id], chunks(scene, id, w), adds));
  }
  for (let id = 0; id < columns.local_rank.length; id++) {
    if (columns.local_rank[id] === rank && columns.local_level[id] === level) {
      sentences.push(w.outlineLocal(rank, columns.local_amount[id]));
    }
  }
  return sentences;
}

function chunks(scene, id, w) {
  if (!scene.collective.carries_data) return w.aMessage;
  const amount = scene.columns.message_amount[id];
  return amount === 1 ? w.slot("data", chunkName(firstChunk(scene.columns, id))) : w.someChunks(amount);
}

function firstChunk(columns, id) {
  let start = 0;
  for (let before = 0; before < id; before++) start += columns.message_amount[before];
  return columns.message_sent_chunks[start];
}

/** The messages received on a level: they are adjacent, because the columns are sorted by it. */
function received(scene, level) {
  const column = scene.columns.message_got;
  const known = column.length - countNever(scene);
  let low = 0;
  let high = known;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] < level) low = middle + 1;
    else high = middle;
  }
  const found = [];
  for (let id = low; id < known && column[id] === level; id++) found.push(id);
  return found;
}

function countNever(scene) {
  const column = scene.columns.message_got;
  let count = 0;
  while (count < column.length && column[column.length - 1 - count] < 0) count++;
  return count;
}

function sentOn(scene, level) {
  const found = [];
  scene.columns.message_sent.forEach((sent, id) => {
    if (sent === level) found.push(id);
  });
  return found;
}
