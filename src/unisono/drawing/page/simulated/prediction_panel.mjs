// The panel with the result of the simulation: the time, its parts on the critical path, and the bounds of the network.

import { element, fill } from "../common/dom.mjs";
import { bytesText, secondsText } from "../common/units.mjs";

const PARTS = ["latency_s", "bandwidth_s", "overhead_s", "copy_s", "reduce_s", "waiting_s"];

/** Return the panel: { node, update }. */
export function predictionPanel(simulated, state, words) {
  const node = element("section", { class: "panel prediction" });
  const update = () => {
    const w = words();
    const { prediction } = simulated;
    fill(
      node,
      element("h2", {}, w.predicted),
      element(
        "p",
        { class: "predicted-time" },
        element("strong", {}, secondsText(prediction.time_s)),
        " ",
        element(
          "span",
          { class: "note" },
          w.predictedFor(simulated.variant, prediction.bytes ? bytesText(prediction.bytes) : ""),
        ),
      ),
      ...criticalPath(prediction, w),
      element("dl", {}, ...rows(simulated, w)),
      element("p", { class: "note" }, w.source(simulated.title[state.get("lang")], simulated.source)),
    );
  };
  update();
  return { node, update };
}

function criticalPath(prediction, w) {
  const path = prediction.critical_path;
  if (!path || !prediction.time_s) return [];
  const parts = PARTS.filter((name) => path[name] > 0.0005 * prediction.time_s);
  const share = (name) => (100 * path[name]) / prediction.time_s;
  return [
    element("p", { class: "note" }, w.pathParts),
    element(
      "div",
      { class: "path-bar", "aria-hidden": "true" },
      ...parts.map((name) => element("span", { class: `part-${name}`, style: `width: ${share(name).toFixed(2)}%` })),
    ),
    element(
      "ul",
      { class: "path-parts" },
      ...parts.map((name) =>
        element(
          "li",
          {},
          element("i", { class: `part-${name}`, "aria-hidden": "true" }),
          `${w.parts[name]} ${share(name) < 1 ? "<1" : Math.round(share(name))} %`,
        ),
      ),
    ),
  ];
}

function rows(simulated, w) {
  const { prediction } = simulated;
  const made = [];
  const bound = (name, seconds) => {
    if (seconds > 0) made.push(fact(name, w.ofBound(secondsText(seconds), ratioText(prediction.time_s / seconds))));
  };
  bound(w.latencyBound, prediction.latency_bound_s);
  bound(w.bandwidthBound, prediction.bandwidth_bound_s);
  made.push(fact(w.factMessages, w.inSegments(prediction.messages.toLocaleString("en-US"), prediction.passes)));
  made.push(fact(w.sharing, prediction.contention ? w.shared : w.notShared));
  return made;
}

function ratioText(ratio) {
  return ratio < 10 ? ratio.toFixed(2) : ratio.toFixed(0);
}

function fact(name, value) {
  return element("div", { class: "fact" }, element("dt", {}, name), element("dd", {}, value));
}
