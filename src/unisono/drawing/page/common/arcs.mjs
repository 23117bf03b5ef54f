// The paths of messages: from the side of one card to the side of another, in an arc that bends to the left of its
// direction, so that messages in opposite directions do not overlap.

import { cellBox } from "./layouts.mjs";

const ROAD_END = 5; // pixels between the names of a ring and the ends of its roads
const ROAD_SHIFT = 0.12; // the distance of a road from the middle of a side, in parts of that side
const LIFT = 0.12; // the fraction of the time spent leaving a cell, and likewise entering another

/** The path of a message on this stage. */
export function pathOf(plan, message) {
  const from = plan.places[message.src];
  const to = plan.places[message.dst];
  const start = middleOf(plan, message.src, message.chunks);
  const end = middleOf(plan, message.dst, message.into);
  if (plan.radial) {
    const leave = inside(plan, message.src, 0);
    const enter = inside(plan, message.dst, 0);
    return { start, leave, bend: inwards(plan, leave, enter), enter, end };
  }
  let best = null;
  for (const out of [1, -1]) {
    for (const into of [1, -1]) {
      for (const turn of [1, -1]) {
        const leave = { x: from.x + (out * plan.form.width) / 2, y: start.y };
        const enter = { x: to.x + (into * plan.form.width) / 2, y: end.y };
        const way = { start, leave, bend: bentBetween(leave, enter, turn), enter, end };
        const cost = costOf(plan, way, turn);
        if (!best || cost < best.cost) best = { way, cost };
      }
    }
  }
  return best.way;
}

/** The road from one rank to another, which messages of all chunks take: { leave, bend, enter }. It begins and ends
 * beside the cards, where no name is, and roads in opposite directions do not overlap. */
export function roadBetween(plan, src, dst) {
  const { width, height } = plan.form;
  if (plan.radial) {
    const leave = onStage(plan, src, width * 0.25, -ROAD_END);
    const enter = onStage(plan, dst, width * 0.75, -ROAD_END);
    return { leave, bend: inwards(plan, leave, enter), enter };
  }
  // To the left of its direction, as arcs bend.
  const across = ROAD_SHIFT * width * Math.sign(plan.places[dst].y - plan.places[src].y);
  const down = -ROAD_SHIFT * height * Math.sign(plan.places[dst].x - plan.places[src].x);
  const ends = (rank) =>
    [
      [-width / 2, down],
      [width / 2, down],
      [across, -height / 2],
      [across, height / 2],
    ].map(([x, y]) => ({ x: plan.places[rank].x + x, y: plan.places[rank].y + y }));
  let best = null;
  for (const leave of ends(src)) {
    for (const enter of ends(dst)) {
      for (const turn of [1, -1]) {
        const way = { leave, bend: bentBetween(leave, enter, turn), enter };
        const cost = costOf(plan, way, turn);
        if (!best || cost < best.cost) best = { way, cost };
      }
    }
  }
  return best.way;
}

/** The bend of an arc inside a ring: the further apart its ends are, the closer it comes to the middle. */
function inwards(plan, leave, enter) {
  const near = Math.hypot(leave.x - enter.x, leave.y - enter.y) / (2 * plan.inner);
  const pull = 0.25 + 0.5 * (1 - Math.min(1, near));
  return {
    x: plan.middle.x + ((leave.x + enter.x) / 2 - plan.middle.x) * pull,
    y: plan.middle.y + ((leave.y + enter.y) / 2 - plan.middle.y) * pull,
  };
}

function bentBetween(leave, enter, turn) {
  const far = Math.hypot(enter.x - leave.x, enter.y - leave.y) || 1;
  const bent = turn * Math.min(90, Math.max(16, far * 0.22));
  return {
    x: (leave.x + enter.x) / 2 + ((enter.y - leave.y) / far) * bent,
    y: (leave.y + enter.y) / 2 - ((enter.x - leave.x) / far) * bent,
  };
}

/** The cost of a path: short paths are cheap; paths across cards, to the right or off the stage are expensive. */
function costOf(plan, way, turn) {
  const { width, height } = plan.form;
  let cost = Math.hypot(way.enter.x - way.leave.x, way.enter.y - way.leave.y) + (turn < 0 ? 60 : 0);
  for (let part = 0.05; part < 1; part += 0.1) {
    const { x, y } = onArc(way, part);
    if (x < 2 || y < 2 || x > plan.room.width - 2 || y > plan.room.height - 2) cost += 80;
    for (const place of plan.places) {
      if (Math.abs(x - place.x) < width / 2 - 2 && Math.abs(y - place.y) < height / 2 - 2) cost += 45;
    }
  }
  return cost;
}

/** The point of a path that a message has reached after this fraction of its time. */
export function pointOn(way, progress) {
  if (progress <= LIFT) return between(way.start, way.leave, smooth(progress / LIFT));
  if (progress >= 1 - LIFT) return between(way.enter, way.end, smooth((progress - 1 + LIFT) / LIFT));
  return onArc(way, smooth((progress - LIFT) / (1 - 2 * LIFT)));
}

/** A point of the arc itself, from 0 (its start) to 1. */
export function onArc({ leave, bend, enter }, part) {
  return between(between(leave, bend, part), between(bend, enter, part), part);
}

/** The centre of some cells of a rank, in stage coordinates. */
export function middleOf(plan, rank, slots) {
  let x = 0;
  let y = 0;
  for (const slot of slots) {
    const box = cellBox(plan.form, slot);
    x += box.x + box.width / 2;
    y += box.y + box.height / 2;
  }
  return onStage(plan, rank, x / slots.length, y / slots.length);
}

/** Convert a point of a card to stage coordinates. */
export function onStage(plan, rank, x, y) {
  const place = plan.places[rank];
  const across = x - plan.form.width / 2;
  const down = y - plan.form.height / 2;
  const cos = Math.cos(place.turn);
  const sin = Math.sin(place.turn);
  return { x: place.x + across * cos - down * sin, y: place.y + across * sin + down * cos };
}

/** Convert a point of the stage to card coordinates. */
export function inCard(plan, rank, point) {
  const place = plan.places[rank];
  const cos = Math.cos(place.turn);
  const sin = Math.sin(place.turn);
  const across = point.x - place.x;
  const down = point.y - place.y;
  return {
    x: across * cos + down * sin + plan.form.width / 2,
    y: -across * sin + down * cos + plan.form.height / 2,
  };
}

function inside(plan, rank, y) {
  return onStage(plan, rank, plan.form.width / 2, y);
}

function between(one, other, part) {
  return { x: one.x + (other.x - one.x) * part, y: one.y + (other.y - one.y) * part };
}

function smooth(part) {
  return part * part * (3 - 2 * part);
}
