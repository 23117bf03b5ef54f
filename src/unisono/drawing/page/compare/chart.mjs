// The chart of time over size: a line for each algorithm, both axes logarithmic, and a mark where the fastest algorithm
// changes. A click in the chart selects a size.

import { crossovers, duration, logarithmic } from "../common/clock.mjs";
import { shape } from "../common/dom.mjs";
import { bytesText, secondsText } from "../common/units.mjs";

export const SMALLEST = 16;
export const LARGEST = 2 ** 30;
const POINTS = 73;
const DASHES = ["", "7 4", "2 4", "11 4 2 4", "5 3 1 3", "14 5"];
const LETTER = 7.4; // pixels, the mean width of a letter
const NARROW = 480; // pixels; below that, fewer words fit

/** The data of a chart in the α–β model: { sizes, series, changes }; a change has the time at which it takes place. */
export function modelChart(clocks, alpha, beta) {
  const sizes = logarithmic(SMALLEST, LARGEST, POINTS);
  const series = clocks.map((clock) => sizes.map((size) => duration(clock, alpha, beta, size)));
  const changes = crossovers(clocks, alpha, beta, sizes).map((change) => ({
    ...change,
    seconds: duration(clocks[change.after], alpha, beta, change.bytes),
  }));
  return { sizes, series, changes };
}

/** Draw the chart into an SVG element; `bytes` is the size that is marked. Return whether there is anything to draw. */
export function drawChart(svg, { sizes, series, changes }, names, bytes, choose, label) {
  const shown = sizes.length > 1 && series.flat().every((time) => time > 0);
  svg.toggleAttribute("hidden", !shown); // a single rank takes no time, which has no logarithm
  if (!shown) return false;
  const [smallest, largest] = [sizes[0], sizes[sizes.length - 1]];
  const lowest = Math.min(...series.flat());
  const highest = Math.max(...series.flat());
  const longest = Math.max(...names.map((name) => name.length));
  const room = roomOf(svg.clientWidth || 640, 16 + LETTER * longest);
  const x = scale(smallest, largest, room.left, room.width - room.right);
  const y = scale(lowest * 0.8, highest * 1.25, room.height - room.bottom, room.top);
  svg.setAttribute("viewBox", `0 0 ${room.width} ${room.height}`);
  svg.setAttribute("aria-label", label);
  svg.replaceChildren(
    ...grid(x, y, [smallest, largest], [lowest, highest], room),
    ...series.map((times, at) => line(sizes, times, x, y, at)),
    ...labels(series, names, y, room),
    here(x, bytes, room),
    ...marks(changes, x, y, room),
  );
  svg.onpointerdown = (event) => {
    const move = (moved) => {
      const box = svg.getBoundingClientRect();
      choose(x.back(((moved.clientX - box.left) / box.width) * room.width));
    };
    move(event);
    svg.setPointerCapture(event.pointerId);
    svg.onpointermove = move;
    svg.onpointerup = () => {
      svg.onpointermove = null;
    };
  };
  return true;
}

function roomOf(width, right) {
  const height = Math.max(260, Math.min(400, width * 0.62));
  return { width, height, left: 56, right, top: 14, bottom: 34 };
}

function scale(low, high, from, to) {
  const factor = (to - from) / Math.log(high / low);
  const made = (value) => from + Math.log(value / low) * factor;
  made.back = (place) => Math.min(high, Math.max(low, low * Math.exp((place - from) / factor)));
  return made;
}

function grid(x, y, [smallest, largest], [lowest, highest], room) {
  const made = [];
  const factor = largest / smallest <= 64 ? 2 : largest / smallest <= 4096 ? 8 : room.width < NARROW ? 8192 : 64;
  for (let bytes = smallest; bytes <= largest; bytes *= factor) {
    const at = x(bytes);
    made.push(shape("line", { x1: at, x2: at, y1: room.top, y2: room.height - room.bottom, class: "grid" }));
    made.push(shape("text", { x: at, y: room.height - 14, class: "axis middle" }, bytesText(bytes)));
  }
  for (let power = Math.ceil(Math.log10(lowest * 0.8)); 10 ** power <= highest * 1.25; power++) {
    const at = y(10 ** power);
    made.push(shape("line", { x1: room.left, x2: room.width - room.right, y1: at, y2: at, class: "grid" }));
    made.push(shape("text", { x: room.left - 8, y: at + 4, class: "axis end" }, secondsText(10 ** power)));
  }
  return made;
}

function line(sizes, times, x, y, at) {
  const points = sizes.map((size, index) => `${x(size).toFixed(1)},${y(times[index]).toFixed(1)}`).join(" ");
  return shape("polyline", { points, class: `series series-${at % 6}`, "stroke-dasharray": DASHES[at % 6] });
}

/** The names at the ends of their lines, moved apart where they would overlap. */
function labels(series, names, y, room) {
  const wanted = series.map((times, at) => ({ at, place: y(times[times.length - 1]) }));
  wanted.sort((one, other) => one.place - other.place);
  wanted.forEach((one, index) => {
    if (index > 0) one.place = Math.max(one.place, wanted[index - 1].place + 15);
  });
  const over = wanted[wanted.length - 1].place - (room.height - room.bottom);
  for (const one of wanted) if (over > 0) one.place -= over;
  return wanted.map(({ at, place }) =>
    shape("text", { x: room.width - room.right + 7, y: place + 4, class: `name series-${at % 6}` }, names[at]),
  );
}

function here(x, bytes, room) {
  const at = x(bytes);
  return shape("line", { x1: at, x2: at, y1: room.top, y2: room.height - room.bottom, class: "here-line" });
}

/** A circle for each change, with its size below it; sizes that would overlap are written further below, or above if there
 * is no room. */
function marks(changes, x, y, room) {
  const texts = [];
  return changes.map(({ bytes, seconds }) => {
    const text = bytesText(bytes);
    const width = 7 * text.length;
    const left = Math.min(x(bytes) + 8, room.width - room.right - width);
    const isFree = (down) =>
      down < room.height - room.bottom &&
      texts.every(
        (one) => Math.abs(one.down - down) >= 14 || left >= one.left + one.width || one.left >= left + width,
      );
    const rows = Array.from({ length: changes.length + 1 }, (_, row) => 14 * row);
    const places = [...rows.map((row) => y(seconds) + 17 + row), ...rows.map((row) => y(seconds) - 9 - row)];
    const down = places.find(isFree) ?? places[0];
    texts.push({ left, width, down });
    return shape(
      "g",
      { class: "crossover", "data-bytes": bytes },
      shape("circle", { cx: x(bytes), cy: y(seconds), r: 5 }),
      shape("text", { x: left, y: down }, text),
    );
  });
}
