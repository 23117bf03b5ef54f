// Small pictures of the lessons, for the index.

import { shape } from "../common/dom.mjs";

const SIZE = { width: 132, height: 92 };
const RANKS = 4;

/** Return the picture of a lesson. */
export function lessonPicture(name) {
  const draw = PICTURES[name];
  const box = `0 0 ${SIZE.width} ${SIZE.height}`;
  return shape("svg", { viewBox: box, class: "thumbnail lesson", "aria-hidden": "true" }, ...draw());
}

const PICTURES = {
  "data-parallel": () => [...cells(() => true), rect(8, 45, 116, 16, "across")],
  zero3: () => cells((rank, part) => rank === part),
  experts: () => [
    ...cells((rank, part) => rank === part),
    ...[0, 1, 2, 3].map((rank) => shape("path", { d: `M${24 + rank * 28} 88L${24 + ((rank * 3 + 2) % 4) * 28} 8` })),
  ],
  "tensor-parallel": () => [
    ...Array.from({ length: RANKS }, (_, part) => rect(12 + part * 13, 26, 12, 40, part === 1 ? "have" : "")),
    ...Array.from({ length: RANKS }, (_, part) => rect(80, 20 + part * 13, 40, 12, part === 1 ? "have" : "")),
  ],
  busbw: () => {
    const points = Array.from({ length: 30 }, (_, at) => {
      const p = at + 2;
      return `${at ? "L" : "M"}${14 + at * 3.6} ${80 - (2 * (p - 1) * 32) / p}`;
    });
    return [
      shape("path", { d: "M14 14V80H122", class: "axis" }),
      shape("path", { d: "M14 16H122", class: "axis", "stroke-dasharray": "3 4" }),
      shape("path", { d: points.join("") }),
      shape("circle", { cx: 14 + 6 * 3.6, cy: 80 - (2 * 7 * 32) / 8, r: 4 }),
    ];
  },
};

/** A column of parts for each rank. */
function cells(has) {
  return Array.from({ length: RANKS * RANKS }, (_, at) => {
    const [rank, part] = [Math.floor(at / RANKS), at % RANKS];
    return rect(14 + rank * 28, 12 + part * 18, 20, 15, has(rank, part) ? "have" : "");
  });
}

function rect(x, y, width, height, kind) {
  return shape("rect", { x, y, width, height, rx: 2, class: kind });
}
