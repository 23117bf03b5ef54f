import assert from "node:assert/strict";
import test from "node:test";
import {
  crossovers,
  duration,
  logarithmic,
  tell,
  windUp,
} from "../../../../src/unisono/drawing/page/common/clock.mjs";
import { viewAtTime } from "../../../../src/unisono/drawing/page/common/views.mjs";
import { doubling, ring, star } from "../scenes.mjs";

const close = (one, other) => assert.ok(Math.abs(one - other) <= 1e-9 * Math.abs(other), `${one} is not ${other}`);
const COSTS = [
  [5e-6, 1e-10],
  [1e-6, 4e-9],
  [3e-4, 2e-12],
];

test("a ring takes 2(p-1) messages of a p-th of the vector, one after the other", () => {
  for (const size of [2, 3, 5, 8, 13]) {
    const clock = windUp(ring(size));
    for (const [alpha, beta] of COSTS) {
      for (const bytes of [8, 12345, 2 ** 26]) {
        close(duration(clock, alpha, beta, bytes), 2 * (size - 1) * (alpha + (bytes / size) * beta));
      }
    }
  }
});

test("recursive doubling takes log p messages of the whole vector", () => {
  for (const size of [2, 4, 8, 16]) {
    const clock = windUp(doubling(size));
    for (const [alpha, beta] of COSTS) {
      for (const bytes of [8, 12345, 2 ** 26]) {
        close(duration(clock, alpha, beta, bytes), Math.log2(size) * (alpha + bytes * beta));
      }
    }
  }
});

test("a rank receives one message at a time, though all were sent at once", () => {
  for (const size of [2, 3, 5, 9]) close(duration(windUp(star(size)), 1, 0, 100), size - 1);
});

test("ring and recursive doubling change places where the formula says", () => {
  for (const size of [4, 8, 16]) {
    for (const [alpha, beta] of COSTS) {
      const rounds = Math.log2(size);
      const formula = (alpha * (2 * (size - 1) - rounds)) / (beta * (rounds - (2 * (size - 1)) / size));
      const found = crossovers([windUp(ring(size)), windUp(doubling(size))], alpha, beta, logarithmic(1, 1e12, 50));
      assert.equal(found.length, 1);
      close(found[0].bytes, formula);
      assert.deepEqual([found[0].before, found[0].after], [1, 0]);
    }
  }
});

test("who is never the quickest has no crossover", () => {
  const clocks = [windUp(ring(8)), windUp(ring(8))];
  assert.deepEqual(crossovers(clocks, 1e-6, 1e-9, logarithmic(1, 1e9, 20)), []);
});

test("a message is seen between its sending and its arrival", () => {
  const made = ring(4);
  const times = tell(windUp(made), 1, 0);
  assert.equal(times.finish, 6);
  const view = viewAtTime(made, times, 2.25);
  assert.deepEqual(view.states, [2, 2, 2, 2]);
  assert.deepEqual(
    view.flying.map(({ progress }) => progress),
    [0.25, 0.25, 0.25, 0.25],
  );
  assert.deepEqual(viewAtTime(made, times, 6).states, [6, 6, 6, 6]);
});
