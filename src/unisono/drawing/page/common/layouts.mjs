// The positions of ranks on the stage, and the size of their cards.
//
// Rings are in rings.mjs. Card: the drawing of one rank: its name, and its slots in columns. A layout gives the centre of each card for a given
// room and card size; the largest cards that do not overlap are found by trial.

import { circlePlaces, ROUNDNESS, radialCell, radialForm, radialPlaces, ringPoints } from "./rings.mjs";

const PAD = 10; // between the cards and the edge of the stage
const HEIGHTS = [40, 36, 32, 29, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2.5, 2, 1.5, 1, 0.7, 0.5];
const RADIAL_BELOW = 9; // lower cells than this make the columns of a ring point outwards instead

export const LAYOUTS = ["ring", "line", "tree", "grid", "nodes"];

/** Return the positions of all cards ({x, y, turn}), the form of the card, and boxes around nodes. Of a ring of many
 * ranks, `margin` is the room around it, and `inner` the part of its radius that is at least inside. If `round`, a ring
 * is a circle. The names of the ranks on a circle are outside (rings.mjs). */
export function arrange(scene, layout, room, { margin = 0, inner = 0.48, round = false } = {}) {
  if (layout === "ring" && round && scene.size > 1) return roundRing(scene, room, margin, inner);
  let best = null;
  const wraps = layout === "ring" ? [1] : [1, 2, 4, 8, 16];
  for (const place of variants(scene, layout, room)) {
    for (const wrap of wraps) {
      if (wrap > 1 && (wrap > scene.slots || (best && best.form.cell.height >= 10))) break;
      const found = largest(scene, place, room, wrap);
      if (found && (!best || better(found.form, best.form))) best = found;
    }
  }
  if (layout === "ring" && scene.size > 8 && best.form.cell.height < RADIAL_BELOW) {
    return rays(scene, room, margin, inner);
  }
  const boxes = layout === "nodes" ? nodeBoxes(scene, best.places, best.form) : [];
  return { ...best, boxes, radial: false };
}

/** A circle: of upright cards if their cells are larger, else of rays. */
function roundRing(scene, room, margin, inner) {
  const place = (form) => circlePlaces(scene.size, room, form);
  const upright = largest(scene, place, room, 1, true);
  const turned = rays(scene, room, margin, inner);
  const area = ({ form: { cell } }) => cell.width * cell.height;
  return area(upright) < area(turned) ? turned : { ...upright, boxes: [], radial: false, circle: true };
}

/** Many ranks on a ring: the columns point outwards like rays. */
function rays(scene, room, margin, inner) {
  const { cell, inside } = radialCell(scene, room, margin, inner);
  const form = radialForm(cardForm(scene, cell, 1), cell);
  return { places: radialPlaces(scene.size, room, form, inside), form, boxes: [], radial: true };
}

/** Whether cells are clearly larger; size beyond what text needs is ignored. */
function better(one, other) {
  const size = ({ cell }) => Math.min(cell.height, 26) ** 2 * Math.min(cell.width, 60);
  return size(one) > size(other) * 1.3;
}

/** The size of a card with cells of this size; `bare`: its name is outside. */
function cardForm(scene, cell, wrap, bare = false) {
  const small = cell.height < 12 || cell.width < 34;
  const header = bare ? 4 : cell.width < 13 ? 11 : small ? 15 : 24;
  const columns = scene.parts.map((row) => {
    const parts = Math.min(wrap, row.count);
    return { ...row, parts, high: Math.ceil(row.count / parts) };
  });
  const index = cell.height >= 14 && cell.width >= 40 ? 14 : 0; // room for the name of the chunk
  const captions = (columns.length > 1 || index) && !small && !bare ? 13 : 0;
  const between = columns.length > 1 ? Math.min(8, cell.width / 5) : 0;
  const side = small ? Math.min(4, cell.width / 6) : 8;
  let left = side;
  for (const column of columns) {
    column.left = left + index;
    left += index + column.parts * cell.width + between;
  }
  const high = Math.max(...columns.map((column) => column.high));
  return {
    cell,
    columns,
    header,
    captions,
    index,
    side,
    small,
    width: left - between + side,
    height: header + captions + high * cell.height + side,
  };
}

/** The cell of a slot, inside its card. */
export function cellBox(form, slot) {
  const column = form.columns.find(({ first, count }) => slot >= first && slot < first + count);
  const at = slot - column.first;
  const across = Math.floor(at / column.high);
  return {
    x: column.left + across * form.cell.width,
    y: form.header + form.captions + (at % column.high) * form.cell.height,
    width: form.cell.width,
    height: form.cell.height,
    column,
  };
}

function largest(scene, place, room, wrap, bare = false) {
  for (const height of HEIGHTS) {
    if (height > Math.max(26, room.height / 14)) continue;
    // High cells show text: they should be wide enough for the longest one, such as a0+a1+a2.
    const wordy = scene.collective?.reduces ? Math.min(104, 24 + 15 * scene.size) : 54;
    const narrow = height >= 22 ? wordy : height >= 14 ? 44 : Math.max(2, height * 1.5);
    const widest = Math.min(150, Math.max(100, height * 4));
    let found = fitting(scene, place, room, wrap, { width: narrow, height }, { bare });
    if (!found) continue;
    for (let width = narrow * 1.08; width <= widest; width *= 1.08) {
      const wider = fitting(scene, place, room, wrap, { width, height }, { bare });
      if (!wider) break;
      found = wider;
    }
    return found;
  }
  return fitting(scene, place, room, wrap, { width: 1, height: 0.4 }, { bare, anyway: true });
}

function fitting(scene, place, room, wrap, cell, { bare, anyway = false }) {
  const form = cardForm(scene, cell, wrap, bare);
  const places = place(form);
  // Messages need room between cards: with more room, more text fits on them.
  const gap = form.small ? 2 + form.width / 5 : Math.min(40, 10 + form.width / 7);
  const fits = places.every(
    (one, at) =>
      isInside(
        one,
        form,
        one.within ?? { x: PAD, y: PAD, width: room.width - 2 * PAD, height: room.height - 2 * PAD },
      ) &&
      places
        .slice(at + 1)
        .every(
          (other) =>
            Math.abs(one.x - other.x) >= form.width + gap - 0.5 ||
            Math.abs(one.y - other.y) >= form.height + gap / 2 - 0.5,
        ),
  );
  return fits || anyway ? { places, form } : null;
}

function isInside(place, form, box) {
  return (
    place.x - form.width / 2 >= box.x - 0.5 &&
    place.x + form.width / 2 <= box.x + box.width + 0.5 &&
    place.y - form.height / 2 >= box.y - 0.5 &&
    place.y + form.height / 2 <= box.y + box.height + 0.5
  );
}

/** The variants of a layout to try: most have one; nodes can be boxed in several ways. */
function variants(scene, layout, room) {
  const { size } = scene;
  const { line, columns, nodes } = scene.layout;
  const upright = (points) => points.map(([x, y]) => ({ x, y, turn: 0 }));
  if (layout === "line") {
    return [
      (form) => {
        const step = size > 1 ? Math.min((room.width - 2 * PAD - form.width) / (size - 1), form.width * 2.2) : 0;
        const first = room.width / 2 - (step * (size - 1)) / 2;
        const at = new Array(size);
        line.forEach((rank, index) => {
          at[rank] = [first + step * index, room.height / 2];
        });
        return upright(at);
      },
    ];
  }
  if (layout === "tree") return [(form) => upright(treePoints(scene, room, form))];
  if (layout === "grid") return [(form) => upright(gridPoints(size, columns, room, form))];
  if (layout === "nodes") {
    const largestNode = Math.max(...nodes.map((ranks) => ranks.length));
    const ways = [];
    for (const outer of divisions(nodes.length)) {
      for (const inner of divisions(largestNode)) {
        ways.push((form) => nodePlaces(nodes, outer, inner, largestNode, room, form));
      }
    }
    return ways;
  }
  return ROUNDNESS.map((power) => (form) => upright(ringPoints(size, power, room, form, PAD)));
}

function divisions(count) {
  const found = [];
  for (let columns = 1; columns <= count; columns++) {
    const rows = Math.ceil(count / columns);
    if (columns === Math.ceil(count / rows)) found.push(columns);
  }
  return found;
}

function gridPoints(size, columns, room, form) {
  const rows = Math.ceil(size / columns);
  const across = spread(columns, room.width, form.width, 2);
  const down = spread(rows, room.height, form.height, 1.6);
  return Array.from({ length: size }, (_, rank) => [across(rank % columns), down(Math.floor(rank / columns))]);
}

/** Positions for `count` items of a length: even, but no further apart than `furthest` times the length. */
function spread(count, room, length, furthest, pad = PAD) {
  if (count === 1) return () => room / 2;
  const step = Math.min((room - 2 * pad - length) / (count - 1), length * furthest + 30);
  const first = room / 2 - (step * (count - 1)) / 2;
  return (index) => first + step * index;
}

function treePoints(scene, room, form) {
  const { parents } = scene.layout;
  const children = parents.map(() => []);
  const roots = [];
  parents.forEach((parent, rank) => {
    if (parent >= 0) children[parent].push(rank);
    else roots.push(rank);
  });
  const points = new Array(parents.length);
  let leaves = 0;
  let deepest = 0;
  const visit = (rank, depth) => {
    deepest = Math.max(deepest, depth);
    const below = children[rank].map((child) => visit(child, depth + 1));
    const x = below.length ? (below[0] + below[below.length - 1]) / 2 : leaves++;
    points[rank] = [x, depth];
    return x;
  };
  for (const root of roots) visit(root, 0);
  const across = spread(leaves, room.width, form.width, 3);
  const down = spread(deepest + 1, room.height, form.height, 2);
  const first = across(0);
  const step = leaves > 1 ? across(1) - first : 0;
  return points.map(([x, depth]) => [first + step * x, down(depth)]);
}

function nodePlaces(nodes, outer, inner, largestNode, room, form) {
  const rows = Math.ceil(nodes.length / outer);
  const down = Math.ceil(largestNode / inner);
  const box = { width: (room.width - PAD) / outer, height: (room.height - PAD) / rows };
  const places = [];
  nodes.forEach((ranks, node) => {
    // The room for cards: beside that of the other boxes, and below the name of the node.
    const within = {
      x: PAD / 2 + (node % outer) * box.width + 17,
      y: PAD / 2 + Math.floor(node / outer) * box.height + 32,
      width: box.width - 34,
      height: box.height - 50,
    };
    const x = spread(inner, within.width, form.width, 1.6, 0);
    const y = spread(down, within.height, form.height, 1.4, 0);
    ranks.forEach((rank, at) => {
      places[rank] = { x: within.x + x(at % inner), y: within.y + y(Math.floor(at / inner)), turn: 0, within };
    });
  });
  return places;
}

function nodeBoxes(scene, places, form) {
  return scene.layout.nodes.map((ranks) => {
    const inside = ranks.map((rank) => places[rank]);
    const left = Math.min(...inside.map(({ x }) => x)) - form.width / 2 - 12;
    const right = Math.max(...inside.map(({ x }) => x)) + form.width / 2 + 12;
    const top = Math.min(...inside.map(({ y }) => y)) - form.height / 2 - 26;
    const bottom = Math.max(...inside.map(({ y }) => y)) + form.height / 2 + 12;
    return { x: left, y: top, width: right - left, height: bottom - top };
  });
}
