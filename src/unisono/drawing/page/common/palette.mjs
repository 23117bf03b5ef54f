// The colours of ranks.
//
// The sixteen colours were found by a search for the largest distance between any two of them, for normal vision and
// for the three kinds of colour blindness (a test computes the distances); the first eight are further apart than the
// rest. The position of a segment in its cell carries the same information as its colour.

export const RANK_COLOURS = [
  "#456ee6",
  "#e17d1b",
  "#26a989",
  "#a7332e",
  "#99e0f1",
  "#79399b",
  "#cde039",
  "#d191e0",
  "#7663a0",
  "#c8bc6d",
  "#b95e33",
  "#967ccc",
  "#98bdb2",
  "#59816d",
  "#f6c9a3",
  "#5f5b64",
];

/** The colour of a rank of a job of this size. */
export function rankColour(rank, size) {
  if (size <= RANK_COLOURS.length) return RANK_COLOURS[rank];
  const hue = Math.round((360 * rank) / size);
  return `hsl(${hue} 58% ${rank % 2 ? 46 : 62}%)`;
}

/** The colours of a theme, for paper and files. */
export function paintsOf(root, wanted) {
  const { theme } = root.dataset;
  root.dataset.theme = wanted;
  const found = paints(root);
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  return found;
}

/** The colours of the stage, read from the style sheet, which defines light and dark. */
export function paints(root) {
  const style = getComputedStyle(root);
  const names = [
    "ink",
    "muted",
    "faint",
    "line",
    "surface",
    "cell",
    "empty",
    "done",
    "done-line",
    "reduce",
    "copy",
    "wrong",
    "wrong-paper",
    "node",
    "heat-low",
    "heat-high",
    "paper",
    "accent",
    "series-green",
    "series-purple",
    "series-pink",
    "series-brown",
    "load-low",
    "load-middle",
    "load-high",
  ];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** The colour of a link of which this part of the bandwidth is in use, from 0 to 1. */
export function loadColour(part, paint) {
  if (part <= 0) return paint.line;
  const stops = ["load-low", "load-middle", "load-high"].map((name) => paint[name].split(" ").map(Number));
  const at = Math.min(1, Math.floor(part * 2));
  const rest = Math.min(1, part * 2 - at);
  return `rgb(${stops[at].map((value, index) => Math.round(value + (stops[at + 1][index] - value) * rest)).join(" ")})`;
}

/** A colour between two, given as "r g b": for cells too small to show ranks, only their number. */
export function heat(part, paint) {
  const low = paint["heat-low"].split(" ").map(Number);
  const high = paint["heat-high"].split(" ").map(Number);
  return `rgb(${low.map((value, at) => Math.round(value + (high[at] - value) * part)).join(" ")})`;
}
