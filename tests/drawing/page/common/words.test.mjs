import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { ending, stepSentences } from "../../../../src/unisono/drawing/page/common/sentences.mjs";
import { nextSpeed, State } from "../../../../src/unisono/drawing/page/common/state.mjs";
import { bandwidthText, bytesText, secondsText } from "../../../../src/unisono/drawing/page/common/units.mjs";
import { viewAtLevel } from "../../../../src/unisono/drawing/page/common/views.mjs";
import { browserLanguage, WORDS } from "../../../../src/unisono/drawing/page/common/words.mjs";
import { ring, scene, star } from "../scenes.mjs";

const shapeOf = (value) =>
  value !== null && typeof value === "object"
    ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shapeOf(inner)]))
    : typeof value;

test("every text exists in both languages", () => {
  assert.deepEqual(shapeOf(WORDS.zh), shapeOf(WORDS.en));
});

test("every text is used", () => {
  const folder = new URL("../../../../src/unisono/drawing/page/", import.meta.url);
  const files = readdirSync(folder, { recursive: true }).filter(
    (name) => name.endsWith(".mjs") && name !== "common/words.mjs",
  );
  const code = files.map((name) => readFileSync(new URL(name, folder), "utf-8")).join("");
  const unused = Object.keys(WORDS.en).filter((name) => !new RegExp(`\\b(${name})\\b`).test(code));
  assert.deepEqual(unused, []);
});

test("Chinese texts are in Chinese", () => {
  const texts = Object.entries(WORDS.zh).filter(([, value]) => typeof value === "string");
  for (const [name, text] of texts) assert.match(text, /[\u4e00-\u9fff]/, name);
});

test("a step is described message by message", () => {
  const made = ring(5);
  const english = stepSentences(made, viewAtLevel(made, 2), "en");
  assert.ok(english.includes("Rank 2 sends a1+a2 to rank 3, which adds it to a3."));
  assert.equal(english.length, 5);
  const chinese = stepSentences(made, viewAtLevel(made, 2), "zh");
  assert.ok(chinese.includes("rank 2 把 a1+a2 发给 rank 3，与后者的 a3 相加。"));
});

test("a finished sum is described as such", () => {
  const made = ring(5);
  const sentences = stepSentences(made, viewAtLevel(made, 5), "en");
  assert.ok(sentences.includes("Rank 2 sends c0+c1+c2+c3+c4 to rank 3, which stores it."));
});

test("for a selected rank, only the messages that it sends and receives are described", () => {
  const made = ring(5);
  const sentences = stepSentences(made, viewAtLevel(made, 1), "en", 3);
  assert.equal(sentences.length, 2);
  for (const sentence of sentences) assert.match(sentence, /[Rr]ank 3/);
});

test("a message in flight is described as in flight", () => {
  const made = star(4);
  const sentences = stepSentences(made, viewAtLevel(made, 1), "en");
  assert.ok(sentences.includes("Rank 3 sends a3 to rank 0; the message is in transit."));
});

test("the sentences of a barrier name the ranks that have arrived", () => {
  const made = scene({
    size: 3,
    chunks: 1,
    carries_data: false,
    messages: [{ src: 0, dst: 1, sent: 1, got: 1, chunks: [0], reduce: true }],
    steps: [[1], [1], []],
  });
  assert.deepEqual(stepSentences(made, viewAtLevel(made, 1), "en"), ["Rank 0 tells rank 1 that rank 0 has arrived."]);
});

test("the last sentence says which ranks have the result", () => {
  const collectives = {
    every: { carries_data: true, result_on_root: false },
    root: { carries_data: true, result_on_root: true },
    barrier: { carries_data: false, result_on_root: false },
  };
  const said = Object.values(collectives).map((collective) => ending({ collective, root: 2 }, "en"));
  assert.deepEqual(said, [
    "Finished: every rank has its result.",
    "Finished: the root, rank 2, has the result.",
    "Finished: every rank knows that all ranks have arrived.",
  ]);
  assert.equal(ending({ collective: collectives.root, root: 2 }, "zh"), "完成：根 rank（rank 2）得到了结果。");
  assert.equal(ending({ collective: collectives.barrier }, "zh"), "完成：每个 rank 都知道所有 rank 已到达。");
});

test("a Chinese summary names the effect of the messages once", () => {
  assert.equal(WORDS.zh.summary(4, 0, 4, 0), "4 条消息，到达后直接存入。");
  assert.equal(WORDS.zh.summary(4, 4, 0, 0), "4 条消息，到达后相加。");
  assert.equal(WORDS.zh.summary(4, 1, 3, 0), "4 条消息，其中 1 条到达后相加，3 条到达后直接存入。");
});

test("a Chinese sentence separates chunks with the Chinese comma", () => {
  const made = scene({
    size: 2,
    chunks: 3,
    messages: [{ src: 0, dst: 1, sent: 1, got: 1, chunks: [0, 2], reduce: true }],
    steps: [[1], [1]],
  });
  assert.match(stepSentences(made, viewAtLevel(made, 1), "zh")[0], /把 a0、c0 发给/);
});

test("a link reproduces the view, and invalid values in it are ignored", () => {
  const accepts = (name, value) => name !== "rank" || value < 5;
  const state = new State({ lang: "en", layout: "ring", numbers: false }, accepts);
  state.follow("#step=3&rank=2&numbers=1&lang=zh");
  assert.deepEqual(
    ["step", "rank", "numbers", "lang"].map((name) => state.get(name)),
    [3, 2, true, "zh"],
  );
  assert.equal(state.link(), "#step=3&rank=2&numbers=1&lang=zh");
  state.follow("#step=x&rank=9&colour=red&layout=%3Cscript%3E");
  assert.equal(state.link(), "#step=3&rank=2&numbers=1&lang=zh");
});

test("listeners are called once, with the values that have changed", () => {
  const state = new State({ lang: "en" });
  const heard = [];
  state.onChange((changed) => heard.push([...changed]));
  state.set({ step: 1, rank: null });
  state.set({ step: 1 });
  assert.deepEqual(heard, [["step"]]);
});

test("the speed goes up and down and stops at the ends", () => {
  assert.equal(nextSpeed(1, 1), 2);
  assert.equal(nextSpeed(8, 1), 8);
  assert.equal(nextSpeed(0.25, -1), 0.25);
});

test("the language is the first supported one of the browser's", () => {
  assert.equal(browserLanguage(["fr-CH", "zh-TW", "en"]), "zh");
  assert.equal(browserLanguage(["en-GB", "zh"]), "en");
  assert.equal(browserLanguage(["de"]), "en");
});

test("numbers have the usual units", () => {
  assert.equal(bytesText(65536), "64 KiB");
  assert.equal(bytesText(1.5 * 2 ** 20), "1.5 MiB");
  assert.equal(secondsText(4.2e-5), "42 µs");
  assert.equal(secondsText(0.0031), "3.1 ms");
  assert.equal(bandwidthText(1e-10), "10 GB/s");
});
