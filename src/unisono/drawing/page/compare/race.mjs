// The parts of a comparison by the clock: the choice of a network and a size, the order of finish, and the chart of time
// over size. The network is one of the simulator, or MODEL, a simple cost model with sliders.

import { element, fill, shape } from "../common/dom.mjs";
import { select } from "../common/playback_bar.mjs";
import { sliderRows } from "../common/sliders.mjs";
import { bandwidthText, bytesText, few, secondsText } from "../common/units.mjs";
import { drawChart, LARGEST, SMALLEST } from "./chart.mjs";

export const MODEL = "model";

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

/** The choice of a network, and the sliders that go with it: one for the size on a network of the simulator; for alpha,
 * beta and the size in the model. `networks` are those of the simulator; `race` has their sizes. */
export function clockPanel(state, words, race, hasModel) {
  const networks = race?.networks ?? [];
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
  const names = [...networks.map(({ name }) => name), ...(hasModel ? [MODEL] : [])];
  let sliders = null;
  const update = () => {
    const w = words();
    const chosen = networks.find(({ name }) => name === state.get("network"));
    const bySize = race && race.sizes.length > 1 ? [{ name: "bytes", values: race.sizes, text: texts.bytes }] : [];
    sliders = sliderRows(state, chosen ? bySize : specs, w.sliders);
    const choice = select(
      "network",
      w.network,
      state.get("network"),
      names,
      (name) => (name === MODEL ? w.model : name),
      (network) => state.set({ network }),
    );
    const focused = document.activeElement?.id;
    fill(
      node,
      element("h2", {}, w.clock),
      names.length > 1 ? choice : "",
      element("p", { class: "note" }, chosen ? w.simulatedOn(chosen.title[state.get("lang")]) : w.clockNote),
      ...sliders.rows,
    );
    if (focused === "network") document.getElementById("network")?.focus();
  };
  update();
  return { node, update, show: () => sliders.show() };
}

/** The finish times, the fastest first, and the conclusion. */
export function boardPanel(words) {
  const node = element("section", { class: "panel board" });
  const update = (scenes, names, times, bytes, changes, network) => {
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
    const conditions = [network, bytes === null ? "" : bytesText(bytes)].filter(Boolean);
    const sentences = [w.winner(first, conditions, secondsText(best))];
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

/** The chart. */
export function chartPanel(words) {
  const svg = shape("svg", { role: "img", class: "chart" });
  const title = element("h2");
  const note = element("p", { class: "note" });
  const node = element("section", { class: "panel" }, title, svg, note);
  const update = (data, names, bytes, choose, network) => {
    const w = words();
    title.textContent = network ? w.chartOn(network) : w.chart;
    note.textContent = w.chartNote;
    node.hidden = !drawChart(svg, data, names, bytes, choose, w.chartLabel(names.join(", ")));
  };
  return { node, update };
}
