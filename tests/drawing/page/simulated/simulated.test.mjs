import assert from "node:assert/strict";
import test from "node:test";
import { loadColour } from "../../../../src/unisono/drawing/page/common/palette.mjs";
import { nearestSize } from "../../../../src/unisono/drawing/page/compare/race_clock.mjs";
import { linkLoads } from "../../../../src/unisono/drawing/page/simulated/link_loads.mjs";
import { SIMULATED_WORDS } from "../../../../src/unisono/drawing/page/simulated/simulated_words.mjs";

const SIMULATED = { links: [{}, {}], parts: 100, load_parts: 10, has_use: true, prediction: { time_s: 2 } };
const COLUMNS = { use_link: [0, 0, 0, 1, 1], use_time: [10, 20, 50, 0, 100], use_load: [10, 5, 0, 2, 0] };

test("the load of a link is that of the last change before the moment", () => {
  const loads = linkLoads(SIMULATED, COLUMNS);
  assert.deepEqual(
    [0, 0.2, 0.39, 0.4, 0.99, 1].map((moment) => loads.at(0, moment)),
    [0, 1, 1, 0.5, 0.5, 0],
  );
  assert.equal(loads.ofRoute([0, 1], 0.3), 1);
  assert.equal(loads.ofRoute([0, 1], 1.5), 0.2);
  assert.equal(loads.ofRoute([], 0.3), 0);
});

test("the average load counts the time for which a link is in use", () => {
  const loads = linkLoads(SIMULATED, COLUMNS);
  assert.ok(Math.abs(loads.average(0) - (1 * 0.2 + 0.5 * 0.6) / 2) < 1e-12);
  assert.deepEqual(loads.intervals(1), [{ from: 0, to: 2, load: 0.2 }]);
});

test("more load is a stronger colour, in both themes", () => {
  const paint = { line: "#dfdcd4", "load-low": "247 219 132", "load-middle": "226 116 44", "load-high": "132 14 58" };
  const green = (part) => Number(loadColour(part, paint).match(/[0-9]+/g)[1]);
  assert.equal(loadColour(0, paint), paint.line);
  const parts = [0.05, 0.25, 0.5, 0.75, 1];
  for (let at = 1; at < parts.length; at++) assert.ok(green(parts[at]) < green(parts[at - 1]));
  assert.equal(loadColour(1, paint), "rgb(132 14 58)");
});

test("the nearest size is found on a logarithmic scale", () => {
  const sizes = [8, 64, 512];
  assert.deepEqual(
    [1, 8, 20, 30, 200, 1e9].map((bytes) => nearestSize(sizes, bytes)),
    [0, 0, 0, 1, 2, 2],
  );
  assert.equal(nearestSize([0], 8), 0);
});

test("both languages have the same words", () => {
  assert.deepEqual(Object.keys(SIMULATED_WORDS.zh).sort(), Object.keys(SIMULATED_WORDS.en).sort());
});
