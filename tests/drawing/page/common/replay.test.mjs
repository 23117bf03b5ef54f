import assert from "node:assert/strict";
import test from "node:test";
import { deflateSync } from "node:zlib";
import { expression } from "../../../../src/unisono/drawing/page/common/expressions.mjs";
import { isDone, ranksIn } from "../../../../src/unisono/drawing/page/common/replay.mjs";
import { unpack } from "../../../../src/unisono/drawing/page/common/unpack.mjs";
import { viewAtLevel } from "../../../../src/unisono/drawing/page/common/views.mjs";
import { ring, scene, star } from "../scenes.mjs";

const lastRow = (made, rank) => made.rows[rank][made.rows[rank].length - 1];

test("four ranks on a ring end with 6, 10, 14, 18", () => {
  const made = ring(4);
  for (let rank = 0; rank < 4; rank++) {
    assert.deepEqual(
      lastRow(made, rank).map(({ value }) => value),
      [6, 10, 14, 18],
    );
  }
});

test("in a ring of five a chunk gains one rank per hop, and all chunks are complete at the end", () => {
  const made = ring(5);
  const most = (level) => {
    const { states } = viewAtLevel(made, level);
    const sizes = states.flatMap((state, rank) => made.rows[rank][state].map(({ ranks }) => ranksIn(ranks).length));
    return Math.max(...sizes);
  };
  assert.deepEqual([0, 1, 2, 3, 4, 5, 8].map(most), [1, 2, 3, 4, 5, 5, 5]);
  for (let rank = 0; rank < 5; rank++) {
    lastRow(made, rank).forEach((cell, slot) => {
      assert.ok(isDone(made, rank, slot, cell));
    });
    assert.ok(!isDone(made, rank, 0, made.rows[rank][0][0]));
  }
});

test("a message carries the contents from before its step", () => {
  const made = ring(3);
  const first = made.messages.find(({ src, sent }) => src === 0 && sent === 1);
  assert.equal(expression(made, first.cells[0]), "c0");
  const second = made.messages.find(({ src, sent }) => src === 0 && sent === 2);
  assert.equal(expression(made, second.cells[0]), "b0+b2");
});

test("halfway through a step the view shows the old state and messages halfway along their paths", () => {
  const made = ring(4);
  const view = viewAtLevel(made, 1.5);
  assert.deepEqual(view.states, [1, 1, 1, 1]);
  assert.equal(view.flying.length, 4);
  for (const { progress } of view.flying) assert.equal(progress, 0.5);
  assert.equal(view.arrived.length, 0);
});

test("at rest after a step, its messages have arrived", () => {
  const view = viewAtLevel(ring(4), 2);
  assert.deepEqual(view.states, [2, 2, 2, 2]);
  assert.equal(view.arrived.length, 4);
  assert.equal(view.flying.length, 0);
});

test("a message that is received levels later is in flight until then", () => {
  const made = star(4);
  const view = viewAtLevel(made, 1);
  assert.deepEqual(
    view.flying.map(({ message, progress }) => [message.src, progress]),
    [
      [2, 1 / 2],
      [3, 1 / 3],
    ],
  );
});

test("a message that is never received stays in flight", () => {
  const made = scene({
    size: 2,
    chunks: 1,
    messages: [{ src: 0, dst: 1, sent: 1, got: -1, chunks: [0] }],
    steps: [[1], []],
  });
  const view = viewAtLevel({ ...made, levels: 1 }, 1);
  assert.equal(view.flying.length, 1);
  assert.ok(view.flying[0].stuck);
  assert.ok(view.flying[0].progress < 1);
});

test("a cell with a rank counted twice is not complete, and its expression shows the rank twice", () => {
  const twice = { sent: 1, got: 1, src: 1, dst: 0, chunks: [0], reduce: true };
  const made = scene({
    size: 2,
    chunks: 1,
    messages: [twice, { ...twice, sent: 2, got: 2 }],
    steps: [
      [1, 2],
      [1, 2],
    ],
  });
  const cell = lastRow(made, 0)[0];
  assert.equal(expression(made, cell), "a0+2·a1");
  assert.ok(!isDone(made, 0, 0, cell));
});

test("in a barrier the receiver of a message learns of every rank that its sender had learned of", () => {
  const made = scene({
    size: 3,
    chunks: 1,
    carries_data: false,
    messages: [
      { src: 0, dst: 1, sent: 1, got: 1, chunks: [0], reduce: true },
      { src: 1, dst: 2, sent: 2, got: 2, chunks: [0], reduce: false },
    ],
    steps: [[1], [1, 2], [2]],
  });
  assert.equal(expression(made, lastRow(made, 2)[0]), "{0, 1, 2}");
});

test("unpacked columns equal the packed ones", async () => {
  const columns = { a: [3, 3, -2, 70000], b: [], c: [1] };
  const differences = Object.values(columns).flatMap((column) =>
    column.map((value, at) => value - (at ? column[at - 1] : 0)),
  );
  const data = deflateSync(Buffer.from(Int32Array.from(differences).buffer)).toString("base64");
  const packed = { names: Object.keys(columns), lengths: [4, 0, 1], data };
  const back = await unpack(packed);
  for (const [name, column] of Object.entries(columns)) assert.deepEqual([...back[name]], column);
});
