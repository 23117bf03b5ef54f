// Hovering over a chunk shows its contents; clicking a card selects its rank.

import { partOf, slotLabel } from "./data_names.mjs";
import { element } from "./dom.mjs";
import { expression } from "./expressions.mjs";

/** Handle the pointer over the canvas; `painter()` is the current stage or matrix, `shown()` the view. */
export function watchPointer(canvas, tip, painter, state, words, shown) {
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const hide = () => {
    tip.hidden = true;
  };
  canvas.addEventListener("pointermove", (event) => {
    const point = place(event);
    const found = painter().at(point);
    canvas.style.cursor = found ? "pointer" : "";
    const lines = found ? linesAt(painter().scene, found, words(), shown) : null;
    if (!lines) {
      hide();
      return;
    }
    showTip(tip, canvas, found.slot === null ? point : painter().middle(found.rank, found.slot), lines);
  });
  canvas.addEventListener("pointerleave", hide);
  canvas.addEventListener("click", (event) => {
    const found = painter().at(place(event));
    state.set({ rank: found && found.rank !== state.get("rank") ? found.rank : null });
  });
}

/** Show some lines above a point of the canvas, or below it if there is no room. */
export function showTip(tip, canvas, target, lines) {
  tip.replaceChildren(...lines);
  tip.hidden = false;
  const half = tip.offsetWidth / 2;
  tip.style.left = `${Math.max(half + 4, Math.min(canvas.clientWidth - half - 4, target.x))}px`;
  const above = target.y - tip.offsetHeight - 14;
  tip.style.top = `${above > 0 ? above : target.y + 16}px`;
}

/** `held` is what a slot of a matrix holds (holdings.mjs); it has no expressions if there are many ranks. */
function linesAt(scene, { rank, slot, held }, w, shown) {
  if (slot === null) return null;
  const part = partOf(scene, slot);
  const where = element("small", {}, `${w.rank(rank)} · ${w.slot(part.name, slotLabel(part, slot - part.first))}`);
  if (!scene.on_stage) return [where, element("div", {}, w.held(scene.collective, held, scene.size))];
  const cell = scene.rows[rank][shown().states[rank]][slot];
  if (!cell) return [where, element("div", {}, w.nothing)];
  const value = scene.collective.carries_data ? ` = ${cell.value}` : "";
  return [where, element("div", {}, `${expression(scene, cell)}${value}`)];
}
