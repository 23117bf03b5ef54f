// A table of the contents of every rank.

import { slotLabel } from "./data_names.mjs";
import { element, fill } from "./dom.mjs";
import { expression } from "./expressions.mjs";
import { isDone } from "./replay.mjs";
import { viewAtLevel } from "./views.mjs";

const MOST_IN_A_TABLE = 16; // ranks; with more, only the selected one is shown

/** Return the table of the contents of all ranks: { node, update }. `shown()` is the view; by default, the view after
 * the last whole step. */
export function contentsPanel(
  scene,
  state,
  words,
  shown = () => viewAtLevel(scene, Math.floor(state.get("step") + 1e-9)),
) {
  const summary = element("summary");
  const body = element("div", { class: "scroll", tabindex: "0" });
  const node = element("details", { class: "panel contents" }, summary, body);
  const update = () => {
    const w = words();
    summary.textContent = w.contents;
    if (!node.open) return;
    const view = shown();
    const all = Array.from({ length: scene.size }, (_, rank) => rank);
    const ranks = scene.size <= MOST_IN_A_TABLE ? all : [state.get("rank") ?? 0];
    const head = element("tr", {}, element("td"));
    for (const part of scene.parts) {
      for (let at = 0; at < part.count; at++)
        head.append(element("th", { scope: "col" }, w.slot(part.name, slotLabel(part, at))));
    }
    const rows = ranks.map((rank) => {
      const row = element("tr", { "data-rank": rank }, element("th", { scope: "row" }, w.rank(rank)));
      scene.rows[rank][view.states[rank]].forEach((cell, slot) => {
        const value = cell ? (state.get("numbers") ? `${cell.value}` : expression(scene, cell)) : "·";
        row.append(element("td", { class: isDone(scene, rank, slot, cell) ? "done" : "" }, value));
      });
      return row;
    });
    fill(body, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
  };
  node.addEventListener("toggle", update);
  update();
  return { node, update };
}
