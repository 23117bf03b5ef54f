import assert from "node:assert/strict";
import test from "node:test";
import { onArc, pathOf, pointOn } from "../../../../src/unisono/drawing/page/common/arcs.mjs";
import { arrange, LAYOUTS } from "../../../../src/unisono/drawing/page/common/layouts.mjs";
import { doubling, ring } from "../scenes.mjs";

const ROOMS = [
  { width: 850, height: 540 },
  { width: 358, height: 440 },
  { width: 1400, height: 900 },
];

test("cards are on the stage and do not overlap, in every layout, on every screen", () => {
  for (const room of ROOMS) {
    for (const layout of LAYOUTS) {
      for (const made of [ring(1), ring(2), ring(3), ring(5), ring(8), ring(13), doubling(16)]) {
        const { places, form, radial } = arrange(made, layout, room);
        assert.equal(places.length, made.size);
        if (radial) continue;
        const where = `${layout} of ${made.size} in ${room.width}`;
        places.forEach(({ x, y }, at) => {
          assert.ok(x - form.width / 2 >= 0 && x + form.width / 2 <= room.width, where);
          assert.ok(y - form.height / 2 >= 0 && y + form.height / 2 <= room.height, where);
          for (const other of places.slice(at + 1)) {
            const apart = Math.abs(x - other.x) >= form.width || Math.abs(y - other.y) >= form.height;
            assert.ok(apart, where);
          }
        });
      }
    }
  }
});

test("the columns of many ranks on a ring point outwards and stay on the stage", () => {
  const room = ROOMS[0];
  const { places, form, radial } = arrange(ring(40), "ring", room);
  assert.ok(radial);
  for (const { x, y } of places) {
    const far = Math.hypot(x - room.width / 2, y - room.height / 2) + form.height / 2;
    assert.ok(far <= room.height / 2);
  }
});

test("the cells of few ranks have room for text, even on a phone", () => {
  const { form } = arrange(ring(4), "ring", ROOMS[1]);
  assert.ok(form.cell.height >= 15 && form.cell.width >= 40);
});

test("a message travels from cell to cell along an arc between cards", () => {
  const made = ring(5);
  const plan = { ...arrange(made, "ring", ROOMS[0]), room: ROOMS[0] };
  const same = (one, other) => assert.ok(Math.hypot(one.x - other.x, one.y - other.y) < 1e-6);
  const onSide = (point, place) => assert.ok(Math.abs(Math.abs(point.x - place.x) - plan.form.width / 2) < 1e-6);
  for (const message of made.messages) {
    const way = pathOf(plan, message);
    same(pointOn(way, 0), way.start);
    same(pointOn(way, 1), way.end);
    same(onArc(way, 0), way.pieces[0].from);
    onSide(onArc(way, 0), plan.places[message.src]);
    onSide(onArc(way, 1), plan.places[message.dst]);
  }
});

const LEAST = 1; // pixels inside a card that count as crossing it

/** The ranks whose cards an arc crosses; it only touches those at its ends. */
function crossed(plan, message) {
  const way = pathOf(plan, message);
  const found = new Set();
  for (let part = 0; part <= 1; part += 1 / 100) {
    const { x, y } = onArc(way, part);
    plan.places.forEach((place, rank) => {
      const across = plan.form.width / 2 - Math.abs(x - place.x);
      const down = plan.form.height / 2 - Math.abs(y - place.y);
      if (Math.min(across, down) > LEAST) found.add(rank);
    });
  }
  return [...found];
}

test("no arc crosses a card, in every layout, between all pairs of ranks", () => {
  for (const room of ROOMS) {
    for (const layout of LAYOUTS) {
      for (const made of room.width < 1000 ? [doubling(8), ring(8), ring(13)] : [ring(8)]) {
        const plan = { ...arrange(made, layout, room), room };
        if (plan.radial) continue;
        for (let src = 0; src < made.size; src++) {
          for (let dst = 0; dst < made.size; dst++) {
            if (src === dst) continue;
            const message = { src, dst, chunks: [0], into: [made.chunks - 1] };
            assert.deepEqual(crossed(plan, message), [], `${layout} of ${made.size} in ${room.width}: ${src} ${dst}`);
          }
        }
      }
    }
  }
});
