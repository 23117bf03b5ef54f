// Routes around cards, for messages between ranks that no simple arc connects.
//
// A route passes the corners of cards at a small distance. The shortest one is found by Dijkstra's algorithm among the
// pairs of corners that see each other; its own corners are rounded.

const FURTHEST = 7; // pixels between a route and the corners that it passes

/** Half the distance of the cards that are nearest to each other: a route keeps to the middle of that gap. */
export function gapOf(plan) {
  if (plan.gap === undefined) {
    const { places, form } = plan;
    let least = 2 * FURTHEST;
    places.forEach((one, at) => {
      for (const other of places.slice(at + 1)) {
        const across = Math.abs(one.x - other.x) - form.width;
        const down = Math.abs(one.y - other.y) - form.height;
        least = Math.min(least, Math.max(across, down));
      }
    });
    plan.gap = Math.max(0.5, least / 2);
  }
  return plan.gap;
}

/** The shortest route from one card to another: { pieces } as arcs.mjs has them; null if there is none. It leaves and
 * enters the cards where the arc `wanted` would. */
export function routeAround(plan, src, dst, wanted) {
  const graph = graphOf(plan);
  const found = nearestCorner(graph, src, dst);
  if (!found) return null;
  const { corners } = graph;
  const way = [];
  for (let at = found.last; at >= 0; at = found.before[at]) way.unshift(corners[at]);
  const leave = portOf(plan, src, way[0], wanted.pieces[0].from.y);
  const enter = portOf(plan, dst, way[way.length - 1], wanted.pieces[0].to.y);
  const passed = straightened(graph, way, src, dst, leave, enter);
  return { pieces: rounded([leave, ...passed, enter], 1.6 * gapOf(plan)) };
}

/** The point of a card where a route to this corner leaves it: on the left or right edge. */
function portOf(plan, rank, corner, y) {
  const { x } = plan.places[rank];
  return { x: x + (Math.sign(corner.x - x) * plan.form.width) / 2, y };
}

/** Leave out the corners at the ends of a route that it need not pass. */
function straightened({ walls, cards }, way, src, dst, leave, enter) {
  const except = (rank) => walls.map((wall, at) => (at === rank ? cards[at] : wall)); // an end is on the edge of a card
  let first = 0;
  while (first + 1 < way.length && sees(except(src), leave, way[first + 1])) first++;
  let last = way.length - 1;
  while (last > first && sees(except(dst), way[last - 1], enter)) last--;
  return way.slice(first, last + 1);
}

/** The corners of all cards, at a distance; `near[at]` are those that a corner sees: [{ at, far }]. */
function graphOf(plan) {
  if (plan.graph) return plan.graph;
  const gap = gapOf(plan);
  const { width, height } = plan.form;
  const corners = plan.places.flatMap((place, rank) =>
    [
      [-1, -1],
      [1, -1],
      [-1, 1],
      [1, 1],
    ].map(([right, down]) => ({
      rank,
      x: place.x + right * (width / 2 + gap),
      y: place.y + down * (height / 2 + gap),
    })),
  );
  const boxes = (spare) =>
    plan.places.map(({ x, y }) => ({
      left: x - width / 2 - spare,
      right: x + width / 2 + spare,
      top: y - height / 2 - spare,
      bottom: y + height / 2 + spare,
    }));
  const walls = boxes(gap * 0.8);
  const near = corners.map(() => []);
  corners.forEach((one, at) => {
    for (let other = at + 1; other < corners.length; other++) {
      if (!sees(walls, one, corners[other])) continue;
      const far = Math.hypot(one.x - corners[other].x, one.y - corners[other].y);
      near[at].push({ at: other, far });
      near[other].push({ at, far });
    }
  });
  plan.graph = { corners, walls, cards: boxes(-0.2), near, found: new Map() };
  return plan.graph;
}

/** The shortest way from the corners of one card to those of another: { last, before }; null if there is none. */
function nearestCorner(graph, src, dst) {
  if (!graph.found.has(src)) graph.found.set(src, waysFrom(graph, src));
  const { far, before } = graph.found.get(src);
  let last = -1;
  for (let at = 4 * dst; at < 4 * dst + 4; at++) if (last < 0 || far[at] < far[last]) last = at;
  return far[last] < Number.POSITIVE_INFINITY ? { last, before } : null;
}

function waysFrom({ corners, near }, src) {
  const far = new Float64Array(corners.length).fill(Number.POSITIVE_INFINITY);
  const before = new Int32Array(corners.length).fill(-1);
  const open = new Set();
  for (let at = 4 * src; at < 4 * src + 4; at++) {
    far[at] = 0;
    open.add(at);
  }
  while (open.size) {
    let at = -1;
    for (const one of open) if (at < 0 || far[one] < far[at]) at = one;
    open.delete(at);
    for (const next of near[at]) {
      const length = far[at] + next.far;
      if (length >= far[next.at]) continue;
      far[next.at] = length;
      before[next.at] = at;
      open.add(next.at);
    }
  }
  return { far, before };
}

/** Whether the line between two points passes no wall. */
function sees(walls, one, other) {
  return walls.every((wall) => !crosses(wall, one, other));
}

/** Whether a line enters a rectangle: the part of it between two edges, then between the other two (Liang and Barsky). */
function crosses({ left, right, top, bottom }, one, other) {
  const across = other.x - one.x;
  const down = other.y - one.y;
  let from = 0;
  let to = 1;
  for (const [step, room] of [
    [-across, one.x - left],
    [across, right - one.x],
    [-down, one.y - top],
    [down, bottom - one.y],
  ]) {
    if (step === 0) {
      if (room <= 0) return false;
    } else if (step < 0) from = Math.max(from, room / step);
    else to = Math.min(to, room / step);
  }
  return from < to;
}

/** Curves along a chain of points, with corners rounded to this radius. */
function rounded(points, radius) {
  const pieces = [];
  let at = points[0];
  const line = (to) => pieces.push({ from: at, bend: { x: (at.x + to.x) / 2, y: (at.y + to.y) / 2 }, to });
  for (let turn = 1; turn < points.length - 1; turn++) {
    const corner = points[turn];
    const before = towards(corner, points[turn - 1], radius);
    const after = towards(corner, points[turn + 1], radius);
    line(before);
    pieces.push({ from: before, bend: corner, to: after });
    at = after;
  }
  line(points[points.length - 1]);
  return pieces;
}

/** The point at this distance on the way to another, but no further than halfway. */
function towards(from, to, distance) {
  const far = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const part = Math.min(0.5, distance / far);
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
}
