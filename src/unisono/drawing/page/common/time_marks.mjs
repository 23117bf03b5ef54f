// The time axis of a slider: marks above it, aligned with its positions.

import { element, fill } from "./dom.mjs";
import { marksOf } from "./time_axis.mjs";

/** Return { node, update }; `seconds()` is the time at the end of the slider. */
export function timeMarks(seconds) {
  const node = element("div", { class: "time-marks", "aria-hidden": "true" });
  let shown = "";
  const update = () => {
    const end = seconds() * 1e9;
    const width = node.clientWidth;
    if (shown === `${end} ${width}`) return;
    shown = `${end} ${width}`;
    if (!(end > 0) || !width) {
      fill(node);
      return;
    }
    // Times below a nanosecond are shown in parts of it: the axis counts in whole units.
    const { marks } = marksOf({ from: 0, to: end }, width);
    fill(
      node,
      ...marks.map(({ at, text }) => element("span", { style: `left: ${((100 * at) / end).toFixed(2)}%` }, text)),
    );
  };
  new ResizeObserver(update).observe(node);
  return { node, update };
}
