// The room that the texts of a stage take, which messages in transit should not cover: names of ranks always, and all
// texts while nothing moves.

import { pointOn } from "./arcs.mjs";
import { cellBox } from "./layouts.mjs";

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

/** The boxes of all texts of the cards in a view. */
export function textBoxes(stage, view) {
  const { form, places } = stage.plan;
  const boxes = [];
  places.forEach((place, rank) => {
    boxes.push(nameBox(form, place));
    const [left, top] = [place.x - form.width / 2, place.y - form.height / 2];
    const add = (x, y, width, height) =>
      boxes.push({ left: left + x, right: left + x + width, top: top + y, bottom: top + y + height });
    for (const column of form.columns) {
      const width = Math.ceil(column.count / column.high) * form.cell.width;
      if (form.captions) add(column.left - form.index, form.header, width, form.captions);
    }
    stage.scene.rows[rank][view.states[rank]].forEach((cell, slot) => {
      const box = cellBox(form, slot);
      if (form.index) add(box.x - form.index, box.y, form.index, box.height);
      if (cell) add(box.x, box.y, box.width, box.height);
    });
  });
  return boxes;
}

/** The progress at which to paint a message that rests on its way: the nearest one at which it covers the fewest texts. */
export function clearProgress(stage, pen, { message, progress }, look, roomy, texts) {
  const radius = badgeRadius(stage);
  const corner = stage.cornerOf(pen, message, look, radius, roomy);
  let best = { covered: Number.POSITIVE_INFINITY };
  placesOnWay(stage, pen, message, look, radius, roomy).forEach((place, at) => {
    const covered = texts.filter((text) => overlap(text, place.chip) || overlap(text, place[corner])).length;
    const far = Math.abs(at / SAMPLES - progress);
    if (covered < best.covered || (covered === best.covered && far < best.far))
      best = { covered, far, progress: at / SAMPLES };
  });
  return best.progress;
}

/** The radius of the badge of a message. */
export function badgeRadius(stage) {
  return stage.plan.form.small ? 4.6 : 7;
}
