import assert from "node:assert/strict";
import test from "node:test";
import {
  clockTimes,
  crossovers,
  duration,
  logarithmic,
  prepareClock,
} from "../../../../src/unisono/drawing/page/common/clock.mjs";
import { viewAtTime } from "../../../../src/unisono/drawing/page/common/views.mjs";
import { doubling, ring, star } from "../scenes.mjs";

const close = (one, other) => assert.ok(Math.abs(one - other) <= 1e-9 * Math.abs(other), `${one} is not ${other}`);
const COSTS = [
  [5e-6, 1e-10],
  [1e-6, 4e-9],
  [3e-4, 2e-12],
];

test("a ring takes the time of 2(p-1) consecutive messages of 1/p of the vector", () => {
  for (const size of [2, 3, 5, 8, 13]) {
    const clock = prepareClock(ring(size));
    for (const [alpha, beta] of COSTS) {
      for (const bytes of [8, 12345, 2 ** 26]) {
        close(duration(clock, alpha, beta, bytes), 2 * (size - 1) * (alpha + (bytes / size) * beta));
      }
    }
  }
});

test("recursive doubling takes the time of log p messages of the whole vector", () => {
  for (const size of [2, 4, 8, 16]) {
    const clock = prepareClock(doubling(size));
    for (const [alpha, beta] of COSTS) {
      for (const bytes of [8, 12345, 2 ** 26]) {
        close(duration(clock, alpha, beta, bytes), Math.log2(size) * (alpha + bytes * beta));
      }
    }
  }
});

test("a rank receives one message at a time, even if all were sent at once", () => {
  for (const size of [2, 3, 5, 9]) close(duration(prepareClock(star(size)), 1, 0, 100), size - 1);
});

test("ring and recursive doubling cross over at the size given by the formula", () => {
  for (const size of [4, 8, 16]) {
    for (const [alpha, beta] of COSTS) {
      const rounds = Math.log2(size);
      const formula = (alpha * (2 * (size - 1) - rounds)) / (beta * (rounds - (2 * (size - 1)) / size));
      const found = crossovers(
        [prepareClock(ring(size)), prepareClock(doubling(size))],
        alpha,
        beta,
        logarithmic(1, 1e12, 50),
      );
      assert.equal(found.length, 1);
      close(found[0].bytes, formula);
      assert.deepEqual([found[0].before, found[0].after], [1, 0]);
    }
  }
});

test("an algorithm that is never the fastest has no crossover", () => {
  const clocks = [prepareClock(ring(8)), prepareClock(ring(8))];
  assert.deepEqual(crossovers(clocks, 1e-6, 1e-9, logarithmic(1, 1e9, 20)), []);
});

test("a message is visible between its sending and its arrival", () => {
  const made = ring(4);
  const times = clockTimes(prepareClock(made), 1, 0);
  assert.equal(times.finish, 6);
  const view = viewAtTime(made, times, 2.25);
  assert.deepEqual(view.states, [2, 2, 2, 2]);
  assert.deepEqual(
    view.flying.map(({ progress }) => progress),
    [0.25, 0.25, 0.25, 0.25],
  );
  assert.deepEqual(viewAtTime(made, times, 6).states, [6, 6, 6, 6]);
});
