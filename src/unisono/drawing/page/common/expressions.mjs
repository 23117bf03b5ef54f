// How what a slot holds is written: x0+x1+x4 is the sum of the chunks of ranks 0, 1 and 4.

import { ranksIn } from "./replay.mjs";

/** The whole expression; `slot` is where it lies, and where that is not the chunk's own place its number is added. */
export function expression(scene, cell, slot) {
  if (!cell) return "";
  const ranks = ranksIn(cell.ranks);
  if (!scene.collective.carries_data) return `{${ranks.join(", ")}}`;
  const index = needsIndex(scene, cell, slot) ? `[${cell.origin}]` : "";
  const again = new Set(ranksIn(cell.again));
  return ranks.map((rank) => `${again.has(rank) ? "2·" : ""}x${rank}${index}`).join("+");
}

/** The same as short as it can be, for places where the whole does not fit. */
export function shortExpression(scene, cell, slot) {
  const ranks = ranksIn(cell.ranks);
  if (ranks.length === 1 || cell.again) return expression(scene, cell, slot);
  if (ranks.length === scene.size) return scene.collective.carries_data ? "Σ" : "✓";
  const first = ranks[0];
  const last = ranks[ranks.length - 1];
  if (last - first + 1 === ranks.length) return `Σ${first}–${last}`;
  return `Σ${ranks.length}/${scene.size}`;
}

/** Numbers with as few signs as possible: 0–3, 6. */
export function runs(numbers) {
  const found = [];
  for (const number of numbers) {
    const last = found[found.length - 1];
    if (last && number === last[1] + 1) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(", ");
}

function needsIndex(scene, cell, slot) {
  return scene.parts.length > 1 ? cell.origin !== slot || scene.parts[0].name === "input" : cell.origin !== slot;
}
