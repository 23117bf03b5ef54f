// The notation for the contents of a slot: x0+x1+x4 is the sum of the chunks of ranks 0, 1 and 4.

import { ranksIn } from "./replay.mjs";

/** The whole expression. The number of the chunk is added if it differs from `slot`, in which it is stored. */
export function expression(scene, cell, slot) {
  if (!cell) return "";
  const ranks = ranksIn(cell.ranks);
  if (!scene.collective.carries_data) return `{${ranks.join(", ")}}`;
  const index = needsIndex(scene, cell, slot) ? `[${cell.origin}]` : "";
  const again = new Set(ranksIn(cell.again));
  return ranks.map((rank) => `${again.has(rank) ? "2·" : ""}x${rank}${index}`).join("+");
}

/** A short form, for cells in which the whole expression does not fit. */
export function shortExpression(scene, cell, slot) {
  const ranks = ranksIn(cell.ranks);
  if (ranks.length === 1) return expression(scene, cell, slot);
  const [twice] = ranksIn(cell.again);
  if (twice !== undefined) return `2·x${twice}+…`;
  if (ranks.length === scene.size) return scene.collective.carries_data ? "Σ" : "✓";
  const first = ranks[0];
  const last = ranks[ranks.length - 1];
  if (last - first + 1 === ranks.length) return `Σ${first}–${last}`;
  return `Σ${ranks.length}/${scene.size}`;
}

/** Numbers in the shortest form: 0–3, 6. */
export function ranges(numbers, comma = ", ") {
  const found = [];
  for (const number of numbers) {
    const last = found[found.length - 1];
    if (last && number === last[1] + 1) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(comma);
}

function needsIndex(scene, cell, slot) {
  return scene.parts.length > 1 ? cell.origin !== slot || scene.parts[0].name === "input" : cell.origin !== slot;
}
