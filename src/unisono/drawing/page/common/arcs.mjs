// The paths of messages: from the side of one card to the side of another, in an arc that bends to the left of its
// direction, so that messages in opposite directions do not overlap. Where cards are in between, it goes around them.

import { cellBox } from "./layouts.mjs";
import { gapOf, routeAround } from "./routes.mjs";

const ROAD_END = 5; // pixels between the names of a ring and the ends of its roads
const ROAD_SHIFT = 0.12; // the distance of a road from the middle of a side, in parts of that side
const CLEAR = 4; // pixels between an arc and the cards that it passes
const SAMPLE = 3; // pixels between the points at which an arc is checked
const BESIDE = 10; // pixels between the arcs of a circle and the straight way
const LIFT = 0.12; // the fraction of the time spent leaving a cell, and likewise entering another

/** The path of a message on this stage: { start, pieces, end }, between the middles of two cells. Its arc is a chain of
 * curves, [{ from, bend, to }], from the edge of one card to the edge of another, which crosses no card. */
export function pathOf(plan, message) {
  const start = middleOf(plan, message.src, message.chunks);
  const end = middleOf(plan, message.dst, message.into);
  if (plan.radial) {
    const leave = onStage(plan, message.src, plan.form.width * 0.3, 0);
    const enter = onStage(plan, message.dst, plan.form.width * 0.7, 0);
    return { start, ...arc(leave, inwards(plan, leave, enter), enter), end };
  }
  if (plan.circle) return { start, ...chosen(plan, message, insideArcs(plan, message), () => []), end };
  const found = chosen(plan, message, sideArcs(plan, message, start, end), () => arcsBelow(plan, message));
  return { start, ...found, end };
}

/** The road from one rank to another, which messages of all chunks take: { pieces }. It begins and ends beside the
 * cards, where no name is, and roads in opposite directions do not overlap. */
export function roadBetween(plan, src, dst) {
  const { width, height } = plan.form;
  if (plan.radial) {
    const leave = onStage(plan, src, width * 0.25, -ROAD_END);
    const enter = onStage(plan, dst, width * 0.75, -ROAD_END);
    return arc(leave, inwards(plan, leave, enter), enter);
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
  const arcs = ends(src).flatMap((leave) => ends(dst).flatMap((enter) => bothWays(leave, enter)));
  return chosen(plan, { src, dst }, arcs, () => arcsBelow(plan, { src, dst }));
}

/** The first arc that crosses no card, the cheapest first; if there is none, a route through the gaps between cards. */
function chosen(plan, { src, dst }, arcs, others) {
  for (const ways of [arcs, others()]) {
    ways.sort((one, other) => one.cost - other.cost);
    const free = ways.find((way) => isFree(plan, way, src, dst));
    if (free) return free;
  }
  return routeAround(plan, src, dst, arcs[0]) ?? arcs[0];
}

/** Arcs inside a circle of upright cards, from where the way to the middle leaves one card to where it enters another.
 * They lie to the left of their direction, so that messages in opposite directions do not meet. */
function insideArcs(plan, { src, dst }) {
  const [leave, enter] = [inmost(plan, src), inmost(plan, dst)];
  const far = Math.hypot(enter.x - leave.x, enter.y - leave.y) || 1;
  const left = { x: (enter.y - leave.y) / far, y: (leave.x - enter.x) / far };
  const shifted = ({ x, y }, by) => ({ x: x + left.x * by, y: y + left.y * by });
  const middle = { x: (leave.x + enter.x) / 2, y: (leave.y + enter.y) / 2 };
  const curves = [inwards(plan, leave, enter), ...[0.8, 0.5, 0.2].map((pull) => between(plan.middle, middle, pull))];
  return curves.map((bend, cost) => ({
    ...arc(shifted(leave, BESIDE / 2), shifted(bend, BESIDE), shifted(enter, BESIDE / 2)),
    cost,
  }));
}

/** The point at which the way from a card to the middle of the stage leaves the card. */
function inmost(plan, rank) {
  const place = plan.places[rank];
  const across = plan.middle.x - place.x;
  const down = plan.middle.y - place.y;
  const part = Math.min(plan.form.width / 2 / Math.abs(across), plan.form.height / 2 / Math.abs(down));
  return { x: place.x + across * part, y: place.y + down * part };
}

/** Arcs from the left or right edge of one card, at the height of the cell, to that of another. */
function sideArcs(plan, { src, dst }, start, end) {
  const half = plan.form.width / 2;
  const sides = (rank, y) => [half, -half].map((across) => ({ x: plan.places[rank].x + across, y }));
  return sides(src, start.y).flatMap((leave) => sides(dst, end.y).flatMap((enter) => bothWays(leave, enter)));
}

/** Arcs from the lower edge of one card to that of another, or from the upper edge, where the names are. */
function arcsBelow(plan, { src, dst }) {
  const from = plan.places[src];
  const to = plan.places[dst];
  if (Math.abs(from.y - to.y) > 1) return [];
  const forward = Math.sign(to.x - from.x) || 1;
  const made = [];
  for (const side of [1, -1]) {
    // Arcs to the right and to the left do not overlap.
    const shift = (forward > 0 ? 0.3 : 0.15) * plan.form.width;
    const leave = { x: from.x + forward * shift, y: from.y + (side * plan.form.height) / 2 };
    const enter = { x: to.x - forward * shift, y: to.y + (side * plan.form.height) / 2 };
    const far = Math.abs(enter.x - leave.x);
    for (const depth of [far * 0.16 + (forward > 0 ? 0 : 8), far * 0.08, 9, 6]) {
      const bend = { x: (leave.x + enter.x) / 2, y: (leave.y + enter.y) / 2 + side * 2 * depth };
      made.push({ ...arc(leave, bend, enter), cost: (side < 0 ? 1000 : 0) - depth });
    }
  }
  return made;
}

/** The arcs that bend to the left and to the right: short ones are cheap, those to the right are expensive. */
function bothWays(leave, enter) {
  return [1, -1].map((turn) => ({
    ...arc(leave, bentBetween(leave, enter, turn), enter),
    cost: Math.hypot(enter.x - leave.x, enter.y - leave.y) + (turn < 0 ? 60 : 0),
  }));
}

function arc(from, bend, to) {
  return { pieces: [{ from, bend, to }] };
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

/** The room for messages between two ranks: the box of their node, or the whole stage. */
function roomOf(plan, src, dst) {
  const isIn = ({ x, y }, box) => x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height;
  const box = plan.boxes?.find((one) => [src, dst].every((rank) => isIn(plan.places[rank], one)));
  return box ?? { x: 0, y: 0, ...plan.room };
}

/** Whether an arc stays in its room, crosses no card, and keeps away from all but the two at its ends. */
function isFree(plan, way, src, dst) {
  const { width, height } = plan.form;
  const margin = Math.min(CLEAR, gapOf(plan) / 3);
  const boxes = plan.boxes ?? [];
  const room = roomOf(plan, src, dst);
  for (let part = 0; part <= 1; part += Math.min(0.05, SAMPLE / lengthOf(way.pieces[0]))) {
    const { x, y } = onArc(way, part);
    if (x < room.x + 2 || y < room.y + 2 || x > room.x + room.width - 2 || y > room.y + room.height - 2) return false;
    for (let rank = 0; rank < plan.places.length; rank++) {
      const spare = rank === src || rank === dst ? -0.3 : margin;
      const place = plan.places[rank];
      if (Math.abs(x - place.x) < width / 2 + spare && Math.abs(y - place.y) < height / 2 + spare) return false;
    }
    // The name of a node is in the upper left corner of its box.
    for (const box of boxes) if (x > box.x && x < box.x + 64 && y > box.y + 3 && y < box.y + 21) return false;
  }
  return true;
}

/** The point of a path that a message has reached after this fraction of its time. */
export function pointOn(way, progress) {
  if (progress <= LIFT) return between(way.start, onArc(way, 0), smooth(progress / LIFT));
  if (progress >= 1 - LIFT) return between(onArc(way, 1), way.end, smooth((progress - 1 + LIFT) / LIFT));
  return onArc(way, smooth((progress - LIFT) / (1 - 2 * LIFT)));
}

/** A point of the arc itself, from 0 (its start) to 1. */
export function onArc({ pieces }, part) {
  if (pieces.length === 1) return onCurve(pieces[0], part);
  const lengths = pieces.map(lengthOf);
  let rest = Math.min(1, Math.max(0, part)) * lengths.reduce((sum, length) => sum + length, 0);
  let at = 0;
  while (at < pieces.length - 1 && rest > lengths[at]) rest -= lengths[at++];
  return onCurve(pieces[at], lengths[at] ? Math.min(1, rest / lengths[at]) : 1);
}

/** The end of an arc, and the direction in which it arrives there, as an angle. */
export function headOf({ pieces }) {
  const last = pieces[pieces.length - 1];
  const before = onCurve(last, Math.max(0, 1 - Math.max(0.07, 6 / (lengthOf(last) || 1))));
  return { ...last.to, angle: Math.atan2(last.to.y - before.y, last.to.x - before.x) };
}

/** Add the arc to the path of a pen. */
export function traceArc(pen, { pieces }) {
  pen.moveTo(pieces[0].from.x, pieces[0].from.y);
  for (const { bend, to } of pieces) pen.quadraticCurveTo(bend.x, bend.y, to.x, to.y);
}

function onCurve({ from, bend, to }, part) {
  return between(between(from, bend, part), between(bend, to, part), part);
}

/** The approximate length of a curve: between that of its chord and that of its two legs. */
function lengthOf({ from, bend, to }) {
  const far = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);
  return (2 * far(from, to) + far(from, bend) + far(bend, to)) / 3;
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
function onStage(plan, rank, x, y) {
  const place = plan.places[rank];
  const across = x - plan.form.width / 2;
  const down = y - plan.form.height / 2;
  const cos = Math.cos(place.turn);
  const sin = Math.sin(place.turn);
  return { x: place.x + across * cos - down * sin, y: place.y + across * sin + down * cos };
}

/** The arc of a copy or combine inside a card: it passes beside the cells of a column, and below those of a row, where it
 * crosses no number of a slot. */
export function localArc(plan, rank, chunk, into) {
  const [from, to] = [cellBox(plan.form, chunk), cellBox(plan.form, into)];
  const point = (x, y) => onStage(plan, rank, x, y);
  const right = to.x >= from.x;
  if (from.x !== to.x && from.y === to.y) {
    const bottom = from.y + from.height;
    const inside = Math.min(10, from.width / 4);
    const [begin, end] = right
      ? [from.x + from.width - inside, to.x + inside]
      : [from.x + inside, to.x + to.width - inside];
    const low = bottom + Math.min(10, 0.4 * from.height);
    return { begin: point(begin, bottom), bend: point((begin + end) / 2, low), end: point(end, bottom) };
  }
  const begin = point(from.x + (right ? from.width : 0), from.y + from.height / 2);
  const end = point(to.x + (right === (from.x === to.x) ? to.width : 0), to.y + to.height / 2);
  const bow = from.x === to.x ? 14 : 0;
  return { begin, bend: { x: (begin.x + end.x) / 2 + bow, y: (begin.y + end.y) / 2 }, end };
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

function between(one, other, part) {
  return { x: one.x + (other.x - one.x) * part, y: one.y + (other.y - one.y) * part };
}

function smooth(part) {
  return part * part * (3 - 2 * part);
}
