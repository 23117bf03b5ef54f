import assert from "node:assert/strict";
import test from "node:test";
import { contentName, slotName } from "../../../../src/unisono/drawing/page/common/data_names.mjs";
import { stepSentences } from "../../../../src/unisono/drawing/page/common/sentences.mjs";
import { stepSummary } from "../../../../src/unisono/drawing/page/common/step_summary.mjs";
import { viewAtLevel } from "../../../../src/unisono/drawing/page/common/views.mjs";
import { doubling, ring, scene, star } from "../scenes.mjs";

const summary = (made, level, language) => stepSummary(made, viewAtLevel(made, level), language);

test("a step in which all ranks do the same is described in one sentence", () => {
  const made = ring(5);
  assert.equal(
    summary(made, 1, "en"),
    "Every rank sends one chunk to its right neighbour, which adds it to its own data.",
  );
  assert.equal(summary(made, 5, "en"), "Every rank sends one chunk to its right neighbour, which stores it.");
  assert.equal(summary(made, 1, "zh"), "每个 rank 把 1 块发给右邻，与对方的数据相加。");
});

test("an exchange in pairs is described as such, with its distance", () => {
  const made = doubling(8);
  assert.equal(
    summary(made, 3, "en"),
    "Ranks at distance 4 swap in pairs: each sends one chunk to its partner, which adds it to its own data.",
  );
  assert.equal(summary(made, 3, "zh"), "距离为 4 的 rank 两两交换：各把 1 块发给对方，与对方的数据相加。");
});

test("a step in which every rank sends to all others is described in one sentence", () => {
  const ranks = [0, 1, 2];
  const messages = ranks.flatMap((src) =>
    ranks.filter((dst) => dst !== src).map((dst) => ({ src, dst, sent: 1, got: 1, chunks: [dst], reduce: true })),
  );
  const made = scene({ size: 3, chunks: 3, messages, steps: [[1], [1], [1]] });
  assert.equal(
    summary(made, 1, "en"),
    "Every rank sends one chunk to each other rank, which adds it to its own data.",
  );
});

test("other steps are counted", () => {
  assert.equal(summary(star(4), 1, "en"), "1 message: 1 added on arrival.");
});

test("what happens in a step is told from rank 0 on", () => {
  const made = ring(5);
  for (const language of ["en", "zh"]) {
    const senders = stepSentences(made, viewAtLevel(made, 3), language).map((text) => text.match(/rank (\d)/i)[1]);
    assert.deepEqual(senders, ["0", "1", "2", "3", "4"]);
  }
});

test("the contents of several slots have a short name that names every chunk", () => {
  const made = ring(8);
  const cells = (ranks, ...chunks) =>
    chunks.map((origin) => ({
      origin,
      ranks: ranks.reduce((set, rank) => set | (1n << BigInt(rank)), 0n),
      again: 0n,
    }));
  assert.equal(contentName(made, cells([0], 0, 1), "en"), "a0, b0");
  assert.equal(contentName(made, cells([0, 4], 2, 3), "en"), "c0+c4, d0+d4");
  assert.equal(contentName(made, cells([0, 1, 2, 3, 4, 5], 2), "en"), "Σc0–5");
  assert.equal(
    contentName(made, cells([0, 1, 2, 3, 4, 5, 6, 7], 0, 1, 2), "en"),
    "the finished sums of chunks a–c (3 chunks)",
  );
  assert.equal(
    contentName(made, cells([0, 4], 0, 1, 2, 3), "en"),
    "chunks a–d (4 chunks), each summed over ranks 0, 4,",
  );
  assert.equal(contentName(made, cells([0], 0, 1), "zh"), "a0、b0");
  assert.equal(slotName(made, [0, 1, 2, 5], "en"), "chunks a–c, f");
});
