// The panel of links: a row for each link, a strip with its load over time, and its load now. A click in a strip goes to
// that moment.

import { element, fill } from "../common/dom.mjs";
import { loadColour, paints } from "../common/palette.mjs";
import { timeMarks } from "../common/time_marks.mjs";
import { bandwidthText } from "../common/units.mjs";

const MOST_ROWS = 24;

/** Return the panel: { node, update, refresh, resize }; `time()` is the moment, `go(seconds)` goes to another one. */
export function linksPanel(simulated, loads, words, state, time, go) {
  const duration = simulated.prediction.time_s;
  const order = simulated.links.map((_, link) => link);
  const averages = order.map(loads.average);
  const shown = chosen(simulated.links, averages);
  const title = element("h2");
  const note = element("p", { class: "note" });
  const marks = timeMarks(() => duration);
  const list = element("ul", { class: "links" });
  const head = element("div", { class: "link-axis" }, element("span"), marks.node, element("span"));
  const node = element("section", { class: "panel link-loads" }, title, note, head, list);
  let rows = [];
  let paint = null;

  const refresh = () => {
    const w = words();
    title.textContent = w.linksTitle;
    const hidden = simulated.links.length - shown.length;
    note.textContent = simulated.has_use ? w.linksNote(shown.length, hidden) : w.noUse;
    head.hidden = !simulated.has_use;
    rows = simulated.has_use ? shown.map((link) => row(link, w)) : [];
    fill(list, ...rows.map(({ node: made }) => made));
    resize();
    update();
  };

  const row = (link, w) => {
    const { name, far, bandwidth } = simulated.links[link];
    const strip = element("canvas", { class: "strip", "aria-hidden": "true" });
    const now = element("i", { class: "playhead", "aria-hidden": "true" });
    const value = element("output", { "aria-live": "off" }); // dozens of them change at once
    const swatch = element("i", { class: "swatch", "aria-hidden": "true" });
    const label = element(
      "span",
      { class: "link-name", title: bandwidthText(1 / bandwidth) },
      element("i", {
        class: far ? "far" : "near",
        title: far ? w.far : w.near,
        role: "img",
        "aria-label": far ? w.far : w.near,
      }),
      name[state.get("lang")],
    );
    const track = element("div", { class: "track" }, strip, now);
    track.addEventListener("pointerdown", (event) => {
      const box = track.getBoundingClientRect();
      go(((event.clientX - box.left) / box.width) * duration);
    });
    const made = element(
      "li",
      { "data-link": link },
      label,
      track,
      element("span", { class: "link-now" }, swatch, value),
    );
    return { node: made, link, strip, now, value, swatch };
  };

  const resize = () => {
    paint = paints(document.documentElement);
    const ratio = globalThis.devicePixelRatio || 1;
    for (const { link, strip } of rows) {
      const [width, height] = [strip.clientWidth, strip.clientHeight];
      if (!width) continue;
      strip.width = Math.round(width * ratio);
      strip.height = Math.round(height * ratio);
      const pen = strip.getContext("2d");
      pen.scale(ratio, ratio);
      pen.fillStyle = paint.cell;
      pen.fillRect(0, 0, width, height);
      for (const { from, to, load } of loads.intervals(link)) {
        const left = (from / duration) * width;
        pen.fillStyle = loadColour(load, paint);
        pen.fillRect(left, 0, Math.max(0.7, (to / duration) * width - left), height);
      }
    }
    marks.update();
  };

  const update = () => {
    const moment = time();
    for (const { link, now, value, swatch } of rows) {
      const load = loads.at(link, moment);
      now.style.left = `${duration ? (100 * moment) / duration : 0}%`;
      const text = `${Math.round(100 * load)} %`;
      if (value.textContent !== text) value.textContent = text;
      swatch.style.background = loadColour(load, paint);
    }
  };

  refresh();
  return { node, update, refresh, resize };
}

/** The links to show, near ones first: all, or those with the highest average load. */
function chosen(links, averages) {
  const order = links.map((_, link) => link).filter((link) => averages[link] > 0);
  const busiest = order.slice().sort((one, other) => averages[other] - averages[one]);
  const kept = new Set(busiest.slice(0, MOST_ROWS));
  const far = (link) => (links[link].far ? 1 : 0);
  return order.filter((link) => kept.has(link)).sort((one, other) => far(one) - far(other) || one - other);
}
