// The time axis of the timeline: the visible part of the run, and the positions of its marks.

export const SHORTEST = 200; // nanoseconds that are visible at least
const APART = 90; // pixels between two marks, at least
const EDGE = 0.03; // the margin beside a call that fills the window

const UNITS = [
  ["s", 1e9],
  ["ms", 1e6],
  ["µs", 1e3],
  ["ns", 1],
];

/** The visible part that shows the whole run: { from, to }. */
export function whole(end) {
  return { from: -EDGE * end, to: end * (1 + EDGE) };
}

/** The visible part that shows one call. */
export function around({ begin, end }) {
  const beside = Math.max(SHORTEST / 2, (end - begin) * EDGE);
  return { from: begin - beside, to: end + beside };
}

/** Zoom in (factor below 1) or out, around a moment that keeps its position. */
export function zoomed({ from, to }, moment, factor, end) {
  const all = whole(end);
  const span = Math.max(SHORTEST, Math.min(all.to - all.from, (to - from) * factor));
  const part = (moment - from) / (to - from);
  return kept({ from: moment - part * span, to: moment + (1 - part) * span }, end);
}

/** Move left or right by a fraction of the visible part. */
export function moved({ from, to }, part, end) {
  const by = (to - from) * part;
  return kept({ from: from + by, to: to + by }, end);
}

/** Clip to the ends of the run. */
function kept({ from, to }, end) {
  const all = whole(end);
  const span = Math.min(to - from, all.to - all.from);
  const begin = Math.max(all.from, Math.min(all.to - span, from));
  return { from: begin, to: begin + span };
}

/** The marks: { base, marks: [{ at, text }] }; far from the start they are relative to `base`, which is otherwise null.
 * */
export function marksOf({ from, to }, width) {
  const step = niceStep((to - from) / Math.max(1, width / APART));
  const coarse = step * 1000;
  const base = from > coarse ? Math.floor(from / coarse) * coarse : null;
  const marks = [];
  for (let at = Math.ceil(Math.max(0, from) / step) * step; at <= to; at += step) {
    marks.push({ at, text: base === null ? axisText(at, step, to) : `+${axisText(at - base, step, to - base)}` });
  }
  return { base: base === null ? null : { at: base, text: axisText(base, coarse, base) }, marks };
}

/** The smallest of 1, 2 or 5 times a power of ten that is at least `least`. */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return power * ([1, 2, 5].find((digit) => digit * power >= least) ?? 10);
}

/** A time on the axis: in the unit of the last mark, with as many digits as the distance between marks needs. */
function axisText(ns, step, last) {
  if (ns === 0) return "0";
  const [name, unit] = UNITS.find(([, length]) => last >= length);
  const digits = Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
  return `${(ns / unit).toFixed(digits)} ${name}`;
}
