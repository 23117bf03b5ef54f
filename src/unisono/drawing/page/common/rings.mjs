// The positions of ranks on a ring: upright cards on an ellipse, where the room is not square; upright cards on a
// circle; or, for many ranks, columns that point outwards like rays. On a circle, the names of ranks are outside, where
// no message passes.

export const ROUNDNESS = [2, 2.6, 4]; // of the curve of a ring: 2 is an ellipse; larger is closer to a rectangle
const EDGE = 4; // pixels between the names on a circle and the edge of the stage
const NAME = { width: 17, height: 13 }; // the room for the number of a rank
const APART = 3; // pixels between a card and its name
const HIGHEST = 14; // pixels; in higher cells there would be text, which must not be turned

/** The angle of a rank on a ring: rank 0 is at the top, and the others follow clockwise. */
function ringAngle(rank, size) {
  return -Math.PI / 2 + (2 * Math.PI * rank) / size;
}

/** The centres of the cards of a ring that fills the room; `power` is one of ROUNDNESS. */
export function ringPoints(size, power, room, form, pad) {
  if (size === 1) return [[room.width / 2, room.height / 2]];
  const bow = room.width < 500 ? 14 : 26; // the arcs of messages run around the outside
  const across = room.width / 2 - pad - bow - form.width / 2;
  const down = room.height / 2 - pad - bow / 2 - form.height / 2;
  // Neither too flat nor too wide: it should still look like a ring.
  const wide = Math.min(across, down * 3);
  const high = Math.min(down, across * 1.3);
  return Array.from({ length: size }, (_, rank) => {
    const angle = ringAngle(rank, size);
    const squared = (value) => Math.sign(value) * Math.abs(value) ** (2 / power);
    return [room.width / 2 + wide * squared(Math.cos(angle)), room.height / 2 + high * squared(Math.sin(angle))];
  });
}

/** Upright cards on the largest circle with room for the names outside: [{ x, y, turn, name: { x, y } }]. */
export function circlePlaces(size, room, form) {
  const middle = { x: room.width / 2, y: room.height / 2 };
  const rays = Array.from({ length: size }, (_, rank) => {
    const x = Math.cos(ringAngle(rank, size));
    const y = Math.sin(ringAngle(rank, size));
    const part = (half, length) => (Math.abs(length) < 1e-6 ? Number.POSITIVE_INFINITY : half / Math.abs(length));
    const toName = Math.min(part((form.width + NAME.width) / 2, x), part((form.height + NAME.height) / 2, y)) + APART;
    const far = Math.min(
      part(middle.x - EDGE - NAME.width / 2, x),
      part(middle.y - EDGE - NAME.height / 2, y),
      part(middle.x - EDGE - form.width / 2, x) + toName,
      part(middle.y - EDGE - form.height / 2, y) + toName,
    );
    return { x, y, toName, radius: far - toName };
  });
  const radius = Math.min(...rays.map((ray) => ray.radius));
  const along = (ray, far) => ({ x: middle.x + ray.x * far, y: middle.y + ray.y * far });
  return rays.map((ray) => ({ ...along(ray, radius), turn: 0, name: along(ray, radius + ray.toName) }));
}

/** The size of the cells of a ring of rays, and the radius at which they begin: { cell, inside }. */
export function radialCell(scene, room, margin, inner) {
  const outside = Math.min(room.width, room.height) / 2 - EDGE - NAME.height - margin;
  const highest = Math.max(...scene.parts.map((row) => row.count));
  let best = null;
  for (let part = inner; part < 0.9; part += 0.02) {
    const inside = outside * part;
    const width = Math.min(30, ((2 * Math.PI * inside) / scene.size) * 0.82);
    const cell = { width: width / scene.parts.length, height: Math.min(HIGHEST, (outside - inside) / highest) };
    if (!best || cell.width * cell.height >= best.cell.width * best.cell.height) best = { inside, cell };
  }
  return { ...best, inside: outside - highest * best.cell.height };
}

/** The form of a card (layouts.mjs) as a ray. */
export function radialForm(form, cell) {
  let left = 0;
  for (const column of form.columns) {
    column.left = left;
    left += column.parts * cell.width;
  }
  const height = Math.max(...form.columns.map(({ high }) => high)) * cell.height;
  return { ...form, header: 0, captions: 0, index: 0, side: 0, small: true, width: left, height };
}

/** Rays around a circle: [{ x, y, turn, name: { x, y } }]. */
export function radialPlaces(size, room, form, inside) {
  const at = (angle, far) => ({
    x: room.width / 2 + far * Math.cos(angle),
    y: room.height / 2 + far * Math.sin(angle),
  });
  return Array.from({ length: size }, (_, rank) => {
    const angle = ringAngle(rank, size);
    const name = at(angle, inside + form.height + APART + NAME.height / 2);
    return { ...at(angle, inside + form.height / 2), turn: angle - Math.PI / 2, name };
  });
}

/** The pixels that the names of ranks take outside of a ring of rays. */
export const OUTER_NAMES = APART + NAME.height;
