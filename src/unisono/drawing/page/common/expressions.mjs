// The notation for the contents of a slot (docs/glossary.md): chunks are called a, b, c, ...; a2 is the part of rank 2
// of chunk a; a0+a1+a4 is the sum of the parts of ranks 0, 1 and 4. unisono/notation.py writes the same in Python.

import { ranksIn } from "./replay.mjs";

const MOST_RANGES = 3; // in a short form

/** The name of a chunk: a, b, ..., z, aa, ab, ... */
export function chunkName(chunk) {
  let name = "";
  for (let rest = chunk + 1; rest > 0; rest = Math.floor((rest - 1) / 26)) {
    name = String.fromCharCode(97 + ((rest - 1) % 26)) + name;
  }
  return name;
}

/** The whole expression. */
export function expression(scene, cell) {
  if (!cell) return "";
  const ranks = ranksIn(cell.ranks);
  if (!scene.collective.carries_data) return `{${ranks.join(", ")}}`;
  const again = new Set(ranksIn(cell.again));
  const name = chunkName(cell.origin);
  return ranks.map((rank) => `${again.has(rank) ? "2·" : ""}${name}${rank}`).join("+");
}

/** The short forms of an expression, the longest first: Σa0–2,5 names the ranks, Σa is the sum of all ranks, and Σa 4/8
 * the sum of four of eight. */
export function shortExpressions(scene, cell) {
  const ranks = ranksIn(cell.ranks);
  const [twice] = ranksIn(cell.again);
  const name = chunkName(cell.origin);
  if (!scene.collective.carries_data) {
    if (ranks.length === scene.size) return ["✓"];
    return [`{${ranges(ranks, ",")}}`, `${ranks.length}/${scene.size}`];
  }
  if (ranks.length === 1) return [expression(scene, cell)];
  if (twice !== undefined) return [`2·${name}${twice}+…`];
  if (ranks.length === scene.size) return [`Σ${name}`];
  const named = ranges(ranks, ",");
  const some = `Σ${name} ${ranks.length}/${scene.size}`;
  return named.split(",").length <= MOST_RANGES ? [`Σ${name}${named}`, some] : [some];
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

/** The names of chunks in the shortest form: a–d, f. */
export function chunkRanges(chunks, comma = ", ") {
  return ranges(chunks, comma).replace(/\d+/g, (number) => chunkName(Number(number)));
}
