// The meaning of the lines and colours below the stage.

import { element } from "./dom.mjs";
import { rankColour } from "./palette.mjs";

const MOST_SWATCHES = 8;

/** The items of the legend; `tiny`: cells show only the number of ranks summed in. */
export function legendItems(scene, w, layout, tiny) {
  const { columns, collective } = scene;
  const adds = columns.message_reduce.some((reduce) => reduce === 1);
  const stores = columns.message_reduce.some((reduce) => reduce === 0);
  const items = [];
  if (layout === "matrix") return matrixItems(scene, w);
  if (adds) items.push(item("reduce", collective.carries_data ? w.legendReduce : w.legendTells));
  if (stores) items.push(item("copy", collective.carries_data ? w.legendCopy : w.legendTells));
  if (tiny) {
    items.push(
      element("span", { class: "key" }, element("i", { class: "heat", "aria-hidden": "true" }), w.legendHeat),
    );
  } else {
    const meanings = { heard: w.legendHeard, summed: w.legendSegments, whose: w.legendWhose };
    const meaning = meaningOf(collective);
    items.push(element("span", { class: "key" }, swatches(scene.size), meanings[meaning]));
    items.push(element("span", { class: "key names" }, w.legendNames[meaning](scene.size)));
  }
  items.push(item("done", w.legendDone));
  return items;
}

/** In the matrix: how many ranks are summed, or known; or the rank that data come from. */
function matrixItems({ size, collective, on_stage: onStage }, w) {
  const meaning = meaningOf(collective);
  const scale = [element("i", { class: "heat", "aria-hidden": "true" }), `${size} ${w.legendCounts[meaning]}`];
  const items = [
    meaning === "whose"
      ? element("span", { class: "key" }, swatches(size), w.legendWhose)
      : element("span", { class: "key" }, "1", ...scale),
    ...(meaning === "whose" ? [] : [item("complete", w.legendAll[meaning])]),
    item("written", w.legendWritten),
    element("span", {}, onStage ? w.matrixRows : `${w.matrixNote} ${w.matrixRows}`),
  ];
  return items;
}

/** The meaning of the colours of a cell: the ranks summed in, the owner of the data, or the ranks known to have arrived.
 * */
export function meaningOf(collective) {
  if (!collective.carries_data) return "heard";
  return collective.reduces ? "summed" : "whose";
}

function item(kind, text) {
  return element("span", { class: "key" }, element("i", { class: kind, "aria-hidden": "true" }), text);
}

function swatches(size) {
  const made = element("i", { class: "swatches", "aria-hidden": "true" });
  for (let rank = 0; rank < Math.min(size, MOST_SWATCHES); rank++) {
    const swatch = element("b");
    swatch.style.background = rankColour(rank, size);
    made.append(swatch);
  }
  return made;
}
