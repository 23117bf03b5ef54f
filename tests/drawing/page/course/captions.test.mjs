import assert from "node:assert/strict";
import test from "node:test";
import { State } from "../../../../src/unisono/drawing/page/common/state.mjs";
import { currentCaption } from "../../../../src/unisono/drawing/page/course/captions.mjs";

const at = (position, view = {}) => ({ at: position, view });

test("a caption is shown while the messages of its step move, until the next caption", () => {
  const captions = [at(0), at(1), at(4)];
  const shown = [0, 0.2, 1, 1.5, 3, 3.1, 4, 8].map((step) => {
    const state = new State({ step });
    return currentCaption(captions, state, true);
  });
  assert.deepEqual(shown, [0, 1, 1, 1, 1, 2, 2, 2]);
});

test("in a replay a caption starts at its moment, not before", () => {
  const captions = [at(0), at(5.05), at(10)];
  const shown = [0, 5, 5.05, 9.99, 10].map((step) => currentCaption(captions, new State({ step }), false));
  assert.deepEqual(shown, [0, 0, 1, 1, 2]);
});

test("a caption about other choices of the reader is not shown", () => {
  const captions = [at(0, { bytes: 8 }), at(10, { bytes: 8 }), at(0, { bytes: 64 })];
  const shown = [8, 64, 512].map((bytes) => currentCaption(captions, new State({ step: 3, bytes }), false));
  assert.deepEqual(shown, [0, 2, -1]);
});
