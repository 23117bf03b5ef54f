// The parts of a comparison by the clock: sliders for the cost of messages, the order of finish, and the chart of time
// over size.

import { element, fill, shape } from "../common/dom.mjs";
import { sliderRows } from "../common/sliders.mjs";
import { bandwidthText, bytesText, few, secondsText } from "../common/units.mjs";
import { drawChart, LARGEST, SMALLEST } from "./chart.mjs";

export const RANGES = {
  alpha: { low: 1e-7, high: 1e-3, unit: 1e-6 }, // seconds per message; shown in µs
  beta: { low: 1e-12, high: 1e-8, unit: 1e-9 }, // seconds per byte; shown in ns
  bytes: { low: SMALLEST, high: LARGEST, unit: 1 },
};

const SAME = 1.0005; // the ratio below which two times are shown as equal

/** Whether a value, in its display unit, is within the range of its slider. */
export function isInRange(name, value) {
  const { low, high, unit } = RANGES[name];
  return value * unit >= low * 0.999 && value * unit <= high * 1.001;
}

/** The indices of the schedules, the fastest first. */
export function orderOf(times) {
  return times.map((_, at) => at).sort((one, other) => times[one].finish - times[other].finish);
}

/** Sliders for alpha, beta and the size, each on a logarithmic scale. */
export function slidersPanel(state, words) {
  const node = element("section", { class: "panel sliders" });
  const texts = {
    alpha: (value) => secondsText(value),
    beta: (value) => `${few(value * 1e9)} ns/B = ${bandwidthText(value)}`,
    bytes: (value) => bytesText(value),
  };
  const specs = Object.entries(RANGES).map(([name, range]) => ({
    name,
    ...range,
    text: texts[name],
    whole: name === "bytes",
  }));
  let sliders = null;
  const update = () => {
    const w = words();
    sliders = sliderRows(state, specs, w.sliders);
    fill(node, element("h2", {}, w.clock), element("p", { class: "note" }, w.clockNote), ...sliders.rows);
  };
  update();
  return { node, update, show: () => sliders.show() };
}

/** The finish times, the fastest first, and the conclusion. */
export function boardPanel(words) {
  const node = element("section", { class: "panel board" });
  const update = (scenes, names, times, bytes, changes) => {
    const w = words();
    const order = orderOf(times);
    const last = times[order[order.length - 1]].finish || 1;
    const rows = order.map((at) => {
      const bar = element("span", { class: `lane series-${at % 6}`, "aria-hidden": "true" });
      bar.style.setProperty("--full", `${(100 * times[at].finish) / last}%`);
      return element(
        "li",
        { "data-name": names[at] },
        element("span", { class: "who" }, names[at]),
        bar,
        element("span", { class: "when" }, secondsText(times[at].finish)),
        scenes[at].facts ? element("span", { class: "note" }, w.costs(scenes[at].facts)) : "",
      );
    });
    const best = times[order[0]].finish;
    const first = order.filter((at) => times[at].finish <= best * SAME).map((at) => names[at]);
    const sentences = [w.winner(first, bytesText(bytes), secondsText(best))];
    for (const change of changes) sentences.push(w.crossing(names[change.after], bytesText(change.bytes)));
    fill(
      node,
      element("h2", {}, w.finish),
      element("ol", {}, ...rows),
      element("p", { role: "status", "aria-live": "polite" }, sentences.join(" ")),
    );
  };
  return { node, update };
}

/** The chart; its update returns the sizes at which the fastest algorithm changes. */
export function chartPanel(words) {
  const svg = shape("svg", { role: "img", class: "chart" });
  const title = element("h2");
  const note = element("p", { class: "note" });
  const node = element("section", { class: "panel" }, title, svg, note);
  const made = { node, changes: [] };
  made.update = (clocks, names, costs, choose) => {
    const w = words();
    title.textContent = w.chart;
    note.textContent = w.chartNote;
    made.changes = drawChart(svg, clocks, names, costs, choose, w.chartLabel(names.join(", ")));
    return made.changes;
  };
  return made;
}
