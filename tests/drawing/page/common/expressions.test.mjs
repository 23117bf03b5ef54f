import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import {
  chunkName,
  chunkRanges,
  expression,
  ranges,
  shortExpressions,
} from "../../../../src/unisono/drawing/page/common/expressions.mjs";

// tests/test_notation.py reads the same cases.
const CASES = JSON.parse(readFileSync(new URL("../../../notation_cases.json", import.meta.url), "utf-8"));

const set = (ranks) => ranks.reduce((bits, rank) => bits | (1n << BigInt(rank)), 0n);

test("chunks are called a, b, c, ..., z, aa, ab, ...", () => {
  for (const [chunk, name] of Object.entries(CASES.chunk_names)) assert.equal(chunkName(Number(chunk)), name);
});

test("an expression and its short forms are those that Python writes", () => {
  for (const { chunk, ranks, again, size, ...expected } of CASES.cells) {
    const scene = { size, collective: { carries_data: true } };
    const cell = { origin: chunk, ranks: set(ranks), again: set(again), value: 0 };
    assert.equal(expression(scene, cell), expected.expression);
    assert.deepEqual(shortExpressions(scene, cell), expected.short);
  }
});

test("in a barrier, a cell lists the ranks that are known to have arrived", () => {
  const scene = { size: 8, collective: { carries_data: false } };
  const cell = (...ranks) => ({ origin: 0, ranks: set(ranks), again: 0n, value: ranks.length });
  assert.equal(expression(scene, cell(0, 1, 4)), "{0, 1, 4}");
  assert.deepEqual(shortExpressions(scene, cell(0, 1, 4)), ["{0–1,4}", "3/8"]);
  assert.deepEqual(shortExpressions(scene, cell(0, 1, 2, 3, 4, 5, 6, 7)), ["✓"]);
});

test("numbers and chunks are listed in the shortest form", () => {
  assert.equal(ranges([0, 1, 2, 5, 7, 8]), "0–2, 5, 7–8");
  assert.equal(chunkRanges([0, 1, 2, 5]), "a–c, f");
});
