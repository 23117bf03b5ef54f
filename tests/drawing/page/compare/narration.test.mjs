import assert from "node:assert/strict";
import test from "node:test";
import { clockTimes, prepareClock } from "../../../../src/unisono/drawing/page/common/clock.mjs";
import { viewAtLevel } from "../../../../src/unisono/drawing/page/common/views.mjs";
import {
  currentPhase,
  deliveredPart,
  stepSentences,
  timeSentences,
} from "../../../../src/unisono/drawing/page/compare/narration.mjs";
import { doubling, ring } from "../scenes.mjs";

const scenes = [ring(4), doubling(4)];
const names = ["ring", "doubling"];
const times = scenes.map((scene) => clockTimes(prepareClock(scene), 1, 0)); // a step takes a second
const said = (moment, language = "en") => timeSentences(scenes, names, times, moment, language);

test("the part of the data that has been delivered grows from nothing to everything", () => {
  const parts = [0, 1, 3, 6].map((moment) => deliveredPart(scenes[0], times[0], moment));
  assert.deepEqual(parts, [0, 1 / 6, 0.5, 1]);
});

test("the algorithm with the largest part of its data delivered leads", () => {
  assert.equal(said(0), "All algorithms start at the same time with the same data.");
  assert.equal(said(1.5), "doubling leads: 50 % of its data has been delivered. ring has delivered 17 %.");
  assert.equal(said(1.5, "zh"), "doubling 领先：数据已送达 50 %。ring 已送达 17 %。");
  assert.match(said(0.5), /^doubling and ring lead: 0 % of their data|^ring and doubling lead/);
});

test("after the first finish, the others are compared with it", () => {
  assert.equal(said(3), "doubling finished first, after 2 s. ring has delivered 50 %.");
  assert.equal(said(6), "doubling finished first, after 2 s. ring took 3 times as long.");
  assert.equal(said(6, "zh"), "doubling 最先完成，用时 2 s。ring 用时是它的 3 倍。");
});

test("by step, the steps that are left are counted", () => {
  const by = (step) => stepSentences(scenes, names, step, "en");
  assert.equal(by(1.5), "doubling has 1 step left, ring 5.");
  assert.equal(by(4), "doubling has finished (2 steps). ring has 2 steps left.");
  assert.equal(by(6), "doubling needs the fewest steps, 2. Fewer steps do not always mean less time. ring needs 6.");
});

test("an algorithm is in the phase of the messages that are in transit", () => {
  const made = {
    ...ring(4),
    phases: [
      { first: 1, last: 3 },
      { first: 4, last: 6 },
    ],
  };
  for (const [position, first] of [
    [0, 1],
    [2.5, 1],
    [3, 1],
    [3.5, 4],
    [6, 4],
  ]) {
    assert.equal(currentPhase(made, viewAtLevel(made, position)).first, first);
  }
});
