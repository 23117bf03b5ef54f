// The panels of the page about bus bandwidth: the derivation, the numbers, the curve, the example and the table.

import { element, fill, shape } from "../common/dom.mjs";
import { sliderRows } from "../common/sliders.mjs";
import { bytesText, few, secondsText } from "../common/units.mjs";
import { allReduceOn, factorOf } from "./busbw_model.mjs";

export const LINK = { name: "link", values: [1, 5, 10, 25, 50, 100, 200, 400, 450, 900], text: rateText };
export const BYTES = { name: "bytes", low: 1024, high: 2 ** 34, text: bytesText, whole: true };
const EXAMPLES = [2, 3, 4, 8, 16, 32, 64];
const GIGA = 1e9;

function rateText(rate) {
  return `${few(rate)} GB/s`;
}

function numbersOf(state) {
  return allReduceOn({ ranks: state.get("ranks"), bytes: state.get("bytes"), link: state.get("link") * GIGA });
}

/** The five steps, each with its formula and its numbers. */
export function derivationPanel(state, words) {
  const node = element("section", { class: "panel derivation" });
  const update = () => {
    const w = words();
    const p = state.get("ranks");
    const n = bytesText(state.get("bytes"));
    const { factor, sent, time, algbw, busbw } = numbersOf(state);
    const rates = [algbw, busbw].map((rate) => rateText(rate / GIGA));
    const formulas = [
      `algbw = n / t = ${n} / ${secondsText(time)} = ${rates[0]}`,
      `(p−1) · n/p + (p−1) · n/p = 2(p−1)/p · n = ${few(factor)} · ${n} = ${bytesText(sent)}`,
      `2(p−1) · n / p = ${2 * (p - 1)} · ${n} / ${p} = ${bytesText(sent)}`,
      `busbw = algbw · 2(p−1)/p = ${rates[0]} · ${few(factor)} = ${rates[1]}`,
      `busbw = ${rates[1]} = ${w.sliders.link}`,
    ];
    fill(
      node,
      element("h2", {}, w.derivation),
      element(
        "ol",
        {},
        ...w.steps.map(({ title, words: text }, at) =>
          element("li", {}, element("b", {}, title), element("p", {}, text), element("code", {}, formulas[at])),
        ),
      ),
    );
  };
  update();
  return { node, update };
}

/** Sliders for p, n and the link, and the numbers that follow from them. */
export function numbersPanel(state, words, sizes) {
  const node = element("section", { class: "panel sliders yours narrow" });
  const list = element("dl");
  let sliders = null;
  const update = () => {
    const w = words();
    sliders = sliderRows(state, [{ name: "ranks", values: sizes, text: (p) => `${p}` }, BYTES, LINK], w.sliders);
    const note = element("p", { class: "note" }, w.numbersNote);
    fill(node, element("h2", {}, w.numbers), ...sliders.rows, list, note);
    show();
  };
  const show = () => {
    const w = words();
    sliders.show();
    const { factor, sent, time, algbw, busbw } = numbersOf(state);
    const rows = {
      factor: few(factor),
      sent: bytesText(sent),
      time: secondsText(time),
      algbw: rateText(algbw / GIGA),
      busbw: rateText(busbw / GIGA),
    };
    fill(
      list,
      ...Object.entries(rows).map(([name, text]) =>
        element(
          "div",
          { class: "fact even" },
          element("dt", {}, w.facts[name]),
          element("dd", {}, element("strong", { "data-fact": name }, text)),
        ),
      ),
    );
  };
  update();
  return { node, update, show };
}

/** The curve of the factor, for the three kinds of collectives. */
export function curvePanel(state, words, most) {
  const node = element("section", { class: "panel" });
  const update = () => {
    const w = words();
    const [width, height, left, bottom, top] = [340, 190, 30, 26, 10];
    const right = 66;
    const x = (p) => left + ((p - 2) / (most - 2)) * (width - left - right);
    const y = (factor) => height - bottom - (factor / 2.1) * (height - bottom - top);
    const lines = [
      [[2, 0], "2(p−1)/p", 0],
      [[0, 1], "1", 2],
      [[1, 0], "(p−1)/p", 1],
    ];
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "chart curve" });
    svg.setAttribute("aria-label", w.curveLabel);
    for (const factor of [0, 0.5, 1, 1.5, 2]) {
      svg.append(
        shape("line", { x1: left, x2: width - right, y1: y(factor), y2: y(factor), class: "grid" }),
        shape("text", { x: left - 6, y: y(factor) + 4, class: "end" }, `${factor}`),
      );
    }
    for (const p of [2, 8, 16, 32, 64]) {
      svg.append(shape("text", { x: x(p), y: height - 8, class: "middle" }, `${p}`));
    }
    for (const [bound, name, series] of lines) {
      const points = Array.from({ length: most - 1 }, (_, at) => `${x(at + 2)},${y(factorOf(bound, at + 2))}`);
      const lift = name === "1" ? -5 : name === "(p−1)/p" ? 13 : 4;
      svg.append(
        shape("polyline", { points: points.join(" "), class: `series series-${series}` }),
        shape("text", { x: x(most) + 6, y: y(factorOf(bound, most)) + lift, class: `name series-${series}` }, name),
      );
    }
    const p = state.get("ranks");
    svg.append(
      shape("line", { x1: x(p), x2: x(p), y1: top, y2: height - bottom, class: "here-line" }),
      shape("circle", { cx: x(p), cy: y(factorOf([2, 0], p)), r: 5, class: "curve-dot" }),
    );
    fill(node, element("h2", {}, w.curve), svg, element("p", { class: "note" }, w.curveNote));
  };
  update();
  return { node, update };
}

/** The same link with an increasing number of ranks: algbw and busbw side by side. */
export function examplePanel(state, words) {
  const node = element("section", { class: "panel example" });
  const update = () => {
    const w = words();
    const link = state.get("link");
    const bytes = state.get("bytes");
    const rows = EXAMPLES.map((ranks) => {
      const { time, algbw, busbw } = allReduceOn({ ranks, bytes, link: link * GIGA });
      return element(
        "tr",
        { class: ranks === state.get("ranks") ? "now" : "" },
        element("th", { scope: "row" }, `${ranks}`),
        element("td", {}, secondsText(time)),
        rateCell(algbw, link, "series-1"),
        rateCell(busbw, link, "series-0"),
      );
    });
    const head = element("tr", {}, ...w.exampleHead.map((text) => element("th", { scope: "col" }, text)));
    fill(
      node,
      element("h2", {}, w.example),
      element("p", { class: "note" }, w.exampleNote(bytesText(bytes), rateText(link))),
      element(
        "div",
        { class: "scroll", tabindex: "0" },
        element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)),
      ),
    );
  };
  update();
  return { node, update };
}

function rateCell(rate, link, series) {
  const bar = element("span", { class: `lane ${series}`, "aria-hidden": "true" });
  bar.style.setProperty("--full", `${(100 * rate) / (link * GIGA)}%`);
  return element("td", { class: "rate" }, bar, element("span", {}, rateText(rate / GIGA)));
}

/** The factors of all collectives, with their reasons. */
export function factorsPanel(page, state, words) {
  const node = element("section", { class: "panel factors" });
  const update = () => {
    const w = words();
    const p = state.get("ranks");
    const rows = page.collectives.map(({ name, title, factor, bound }) =>
      element(
        "tr",
        { class: name === "all_reduce" ? "now" : "" },
        element(
          "th",
          { scope: "row" },
          page.settings.algorithms
            ? element("a", { href: `compare-${name}.html#lang=${state.get("lang")}` }, title)
            : title,
        ),
        element("td", {}, element("code", {}, factor)),
        element("td", { "data-factor": name }, few(factorOf(bound, p))),
        element("td", { class: "reason" }, w.why[name]),
      ),
    );
    const head = w.tableHead.map((text, at) => element("th", { scope: "col" }, at === 2 ? `${text}${p}` : text));
    fill(
      node,
      element("h2", {}, w.table),
      element(
        "div",
        { class: "scroll", tabindex: "0" },
        element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)),
      ),
      element("p", { class: "note" }, w.tableNote),
    );
  };
  update();
  return { node, update };
}
