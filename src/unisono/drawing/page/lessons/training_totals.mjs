// The totals of a step: the collectives one by one, the recorded model, and a model chosen by the reader, by formula.

import { element, fill } from "../common/dom.mjs";
import { select } from "../common/playback_bar.mjs";
import { sliderRows } from "../common/sliders.mjs";
import { countText, decimalBytes, exactBytes, few } from "../common/units.mjs";
import {
  countParameters,
  memoryAt,
  memoryFormula,
  mostUpTo,
  PRECISIONS,
  product,
  sentFormula,
  sentUpTo,
  widthOf,
  widthWithExperts,
} from "./training_model.mjs";
import { titleOf } from "./training_narration.mjs";
import { shapeText } from "./training_stage.mjs";

const BY_TOKENS = ["tensor_parallel", "experts"]; // strategies that send activations
const CHOICES = 2; // experts for each token, in "your model"
const SHOWN = { all_to_all: "pairwise" }; // the algorithm that a collective links to, if it is not the ring

export const SLIDERS = [
  {
    name: "ranks",
    values: [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1024],
    text: (p) => `${p}`,
  },
  { name: "parameters", low: 1e8, high: 1e12, text: countText },
  { name: "depth", values: [4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 128], text: (count) => `${count}` },
  { name: "tokens", low: 512, high: 4194304, text: (count) => count.toLocaleString("en-US"), whole: true },
];

/** The list of all collectives, and the bytes sent so far: { node, update, render }. */
export function logPanel(data, page, state, player, words) {
  const node = element("section", { class: "panel log" });
  const facts = ["sent", "held", "most"].map((id) => element("strong", { "data-fact": id }));
  let rows = [];
  const render = () => {
    const w = words();
    rows = data.moments.flatMap(({ collective, phase }, at) =>
      collective === null ? [] : [{ collective, at, node: logRow(data.collectives[collective], at, w.phase[phase]) }],
    );
    const head = w.logHead.map((text) => element("th", { scope: "col" }, text));
    const body = element("tbody", {}, ...rows.map((row) => row.node));
    fill(
      node,
      element("h2", {}, w.log),
      element(
        "div",
        { class: "scroll", tabindex: "0" },
        element("table", {}, element("thead", {}, element("tr", {}, ...head)), body),
      ),
      element("p", { class: "note" }, w.logNote),
      element("dl", {}, ...[w.sentSoFar, w.heldNow, w.heldMost].map((name, at) => fact(name, facts[at]))),
    );
    update();
  };
  const update = () => {
    const level = Math.ceil(state.get("step") - 1e-9);
    const rank = state.get("rank") ?? 0;
    const { open } = data.moments[level];
    for (const row of rows)
      row.node.className = open.includes(row.collective) ? "now" : row.at <= level ? "past" : "";
    const bytes = [sentUpTo(data, level), memoryAt(data, level, rank).total, mostUpTo(data, level, rank)];
    facts.forEach((made, at) => {
      made.textContent = exactBytes(bytes[at]);
    });
  };

  function logRow({ collective, name, members, bytes }, at, phase) {
    const title = titleOf(collective);
    const link = page.settings.algorithms
      ? `${collective}-${SHOWN[collective] ?? "ring"}.html#lang=${state.get("lang")}`
      : null;
    const shapes = members.map(([member, shape]) => `${member} ${shapeText(shape)}`).join(", ");
    return element(
      "tr",
      {},
      element(
        "td",
        {},
        element("i", { class: `swatch ${collective}`, "aria-hidden": "true" }),
        link ? element("a", { href: link }, title) : title,
        element("button", { type: "button", class: "text", onclick: () => player.go(at, false) }, phase),
      ),
      element(
        "td",
        { class: "tensor", title: shapes },
        tensorName(name, members, words()),
        element("small", {}, shapesText(members)),
      ),
      element("td", {}, bytes.toLocaleString("en-US")),
    );
  }
  return { node, update, render };
}

/** The name of a tensor in the log, in the language of the page. */
function tensorName(name, members, w) {
  if (!members.length) return w.existName;
  return name.startsWith("gradient of ") ? w.gradientOf(members[0][0]) : name.replace("..", " … ");
}

/** The shapes of the tensors that travel together; repeated shapes are counted. */
function shapesText(members) {
  const counts = new Map();
  for (const [, shape] of members) counts.set(shapeText(shape), (counts.get(shapeText(shape)) ?? 0) + 1);
  return [...counts].map(([text, count]) => (count > 1 ? `${count} · (${text})` : `(${text})`)).join(" + ");
}

function fact(name, value) {
  return element("div", { class: "fact even" }, element("dt", {}, name), element("dd", {}, value));
}

/** The recorded model by formula, beside the measured numbers. */
export function recordedPanel(data, words) {
  const node = element("section", { class: "panel facts" });
  const { strategy, ranks } = data;
  const counted = countParameters(data);
  const given = { ...counted, ranks, precision: "float32", ...activationsOf(data) };
  const ready = data.moments.findIndex(({ what }) => what === "ready");
  const measured = memoryAt(data, ready, 0);
  const held = measured.parameters + measured.gradients + measured.optimizer;
  const exist = data.collectives.filter(({ layers, name }) => !layers.length || name.endsWith("expert_counts"));
  const extra = exist.reduce((sum, { sent_bytes: bytes }) => sum + bytes, 0);
  const sent = sentUpTo(data, data.moments.length - 1);
  const update = () => {
    const w = words();
    const one = memoryFormula("data_parallel", { ...given, ranks: 1 }).total;
    const mine = memoryFormula(strategy, given).total;
    const sends = sentFormula(strategy, given);
    const rows = [
      [w.oneHolds, `16 · Ψ`, one, ""],
      [w.eachHolds, recordedMemory(strategy, counted), mine, w.measured(exactBytes(held))],
      [w.eachSends, recordedSent(strategy), sends, w.measured(exactBytes(sent - extra), strategy === "experts")],
    ];
    fill(
      node,
      element("h2", {}, w.recordedTitle),
      element("p", { class: "note" }, w.counted(counted.parameters.toLocaleString("en-US")), `, p = ${ranks}`),
      element(
        "dl",
        {},
        ...rows.map(([name, formula, value, seen]) => {
          const dd = element("dd", {}, element("code", {}, formula), " = ", element("strong", {}, exactBytes(value)));
          if (seen) dd.append(element("div", { class: "note" }, seen));
          return element("div", { class: "fact" }, element("dt", {}, name), dd);
        }),
      ),
      extra ? element("p", { class: "note" }, (w.extraNote[strategy] ?? w.existNote)(exactBytes(extra))) : "",
      data.block ? element("p", { class: "note" }, blockText(data, w)) : "",
    );
  };
  return { node, update, held, sent };
}

/** The number of all-reduces of the recorded part of a model, and their activation (tensor parallel). */
export function activationsOf(data) {
  if (data.strategy === "experts") {
    const exchanges = data.collectives.filter(({ collective }) => collective === "all_to_all");
    return { exchanges: exchanges.length, activation: product(exchanges[0].members[0][1]) };
  }
  if (data.strategy !== "tensor_parallel") return {};
  return { reduces: data.collectives.length, activation: product(data.layers[0].input) };
}

function recordedMemory(strategy, { whole }) {
  if (strategy === "data_parallel") return "16 · Ψ";
  if (strategy === "zero3") return "16 · Ψ / p";
  return `16 · ((Ψ − ${whole}) / p + ${whole})`;
}

function recordedSent(strategy) {
  if (strategy === "data_parallel") return "2(p−1)/p · 4Ψ";
  if (strategy === "zero3") return "3(p−1)/p · 4Ψ";
  if (strategy === "experts") return "4 · (p−1)/p · 4·k·T·h + 2(p−1)/p · 4·router";
  return "2 · 2(p−1)/p · 4·T·h";
}

function blockText(data, w) {
  const [forward, backward] = ["forward", "backward"].map(
    (phase) => data.block.filter((one) => one.phase === phase).length,
  );
  return w.blockNote(forward, backward, exactBytes(data.block[0].bytes));
}

/** A model chosen by the reader: sliders, formulas, and two bars. */
export function yoursPanel(data, state, words) {
  const node = element("section", { class: "panel yours sliders" });
  const results = element("div");
  const { strategy } = data;
  const wanted = SLIDERS.filter(({ name }) => BY_TOKENS.includes(strategy) || !["tokens", "depth"].includes(name));
  let rows = null;
  const update = () => {
    const w = words();
    rows = sliderRows(state, wanted, w.sliders);
    const precision = select(
      "precision",
      w.precision,
      state.get("precision"),
      Object.keys(PRECISIONS),
      (name) => w.precisions[name],
      (name) => state.set({ precision: name }),
    );
    fill(
      node,
      element("h2", {}, w.yours),
      ...rows.rows,
      precision,
      element("p", { class: "note" }, w.precisionNote),
      results,
    );
    show();
  };
  const show = () => {
    const w = words();
    rows.show();
    const { holds, sends, one, given } = yourNumbers(strategy, state);
    const bytes = PRECISIONS[given.precision];
    const sum = `(${bytes.parameters} + ${bytes.gradients} + ${bytes.optimizer}) · Ψ`;
    const each = strategy === "data_parallel" ? sum : `${sum} / p`;
    const part = holds.total / one.total;
    fill(
      results,
      bar("one", w.oneHolds, sum, one, one.total, ""),
      bar("holds", w.eachHolds, each, holds, one.total, part < 0.9995 ? w.ofOne(`${few(100 * part)} %`) : ""),
      element(
        "div",
        { class: "result" },
        element("span", {}, w.eachSends),
        element("strong", { "data-fact": "sends" }, decimalBytes(sends)),
        element("code", {}, yourSent(strategy, bytes)),
        element("span", { class: "note" }, w.sentNote[strategy]),
      ),
      BY_TOKENS.includes(strategy)
        ? element("p", { class: "note" }, w.width(Math.round(given.width).toLocaleString("en-US"), strategy))
        : "",
      element("p", { class: "note" }, w.extra[strategy], " ", w.yoursNote),
    );
  };
  return { node, update, show };
}

/** The results of the formulas for the current sliders. */
export function yourNumbers(strategy, state) {
  const given = Object.fromEntries(
    ["ranks", "parameters", "tokens", "depth", "precision"].map((name) => [name, state.get(name)]),
  );
  const mixed = strategy === "experts";
  given.width = mixed
    ? widthWithExperts(given.parameters, given.depth, given.ranks)
    : widthOf(given.parameters, given.depth);
  given.reduces = 4 * given.depth;
  given.exchanges = 4 * given.depth;
  given.activation = mixed ? (CHOICES * given.tokens * given.width) / given.ranks : given.tokens * given.width;
  return {
    given,
    holds: memoryFormula(strategy, given),
    one: memoryFormula("data_parallel", given),
    sends: sentFormula(strategy, given),
  };
}

function yourSent(strategy, bytes) {
  if (strategy === "data_parallel") return `2(p−1)/p · ${bytes.gradients}Ψ`;
  if (strategy === "zero3") return `3(p−1)/p · ${bytes.parameters}Ψ`;
  if (strategy === "experts") return `4L · (p−1)/p · ${bytes.parameters}·${CHOICES}·T·h / p`;
  return `4L · 2(p−1)/p · ${bytes.parameters}·T·h`;
}

function bar(id, name, formula, held, most, note) {
  const made = element("div", { class: "memory-bar", "aria-hidden": "true" });
  for (const kind of ["parameters", "gradients", "optimizer"]) {
    const part = element("i", { class: `part ${kind}` });
    part.style.width = `${(100 * held[kind]) / most}%`;
    made.append(part);
  }
  return element(
    "div",
    { class: "result" },
    element("span", {}, name),
    element("strong", { "data-fact": id }, decimalBytes(held.total)),
    element("code", {}, formula),
    element("span", { class: "note" }, note),
    made,
  );
}
