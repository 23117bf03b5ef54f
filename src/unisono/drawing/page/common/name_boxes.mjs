// The room that the names of ranks take on a stage, which messages in transit should not cover.

import { pointOn } from "./arcs.mjs";

const SAMPLES = 40; // points of the way of a message that are checked
export const MOST_IN_A_BUNDLE = 8; // chunks that are drawn of a message that carries more

/** The room of the name of a rank at this place (layouts.mjs). */
export function nameBox(form, { x, y, name }) {
  if (name) return { left: name.x - 8, right: name.x + 8, top: name.y - 6, bottom: name.y + 6 };
  const [left, top] = [x - form.width / 2, y - form.height / 2];
  if (form.small) return { left: x - 9, right: x + 9, top: top + 1, bottom: top + form.header - 1 };
  return { left: left + 4, right: left + Math.min(form.width, 66), top: top + 5, bottom: top + form.header - 2 };
}

export function overlap(one, other) {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

/** The contents of a message and the badge on one of their upper corners, at some points of its way: [{ chip, left,
 * right }]. */
export function placesOnWay(stage, pen, message, look, radius, roomy) {
  const way = stage.pathOf(message);
  const count = Math.min(message.cells.length, MOST_IN_A_BUNDLE);
  return Array.from({ length: SAMPLES + 1 }, (_, at) => {
    const { left, top, width, height } = stage.chipBox(pen, message, pointOn(way, at / SAMPLES), look, roomy);
    const chip = { left: left - 2, right: left + width + 2, top: top - 2, bottom: top + height * count + 2 };
    const badge = (x) => ({ left: x - radius, right: x + radius, top: chip.top - radius, bottom: chip.top + radius });
    return { chip, left: badge(chip.left), right: badge(chip.right) };
  });
}

/** The upper corner of a message, left or right, on which its badge covers fewer names on the way. */
export function badgeCorner(stage, pen, message, look, radius, roomy) {
  const names = stage.plan.places.map((place) => nameBox(stage.plan.form, place));
  const places = placesOnWay(stage, pen, message, look, radius, roomy);
  const covered = (corner) => places.filter((one) => names.some((name) => overlap(name, one[corner]))).length;
  return covered("right") < covered("left") ? "right" : "left";
}
