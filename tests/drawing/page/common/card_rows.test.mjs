import assert from "node:assert/strict";
import test from "node:test";
import { rowSizes } from "../../../../src/unisono/drawing/page/common/card_rows.mjs";

test("rows are full and differ by at most one card", () => {
  assert.deepEqual(rowSizes(13, 4), [4, 3, 3, 3]);
  assert.deepEqual(rowSizes(5, 4), [3, 2]);
  assert.deepEqual(rowSizes(3, 4), [3]);
  assert.deepEqual(rowSizes(8, 4), [4, 4]);
  assert.deepEqual(rowSizes(3, 1), [1, 1, 1]);
  assert.deepEqual(rowSizes(0, 4), []);
});
