// The stage of a training step: a row for each rank, a column for each layer, bands across the ranks for collectives
// that run, and the memory of each rank as a stacked bar.

import { element, fill } from "./dom.mjs";
import { cellAt, EMPTY, KINDS, memoryAt, product } from "./training_model.mjs";
import { titleOf } from "./training_told.mjs";
import { bytesText, exactBytes } from "./units.mjs";

const LEFT = 2; // the grid column of the first layer
const TOP = 2; // the grid row of the first rank

/** Return { node, update }; `most` is what a full bar means, in bytes. */
export function trainingStage(data, state, words, trainingWords, most) {
  const grid = element("div", { class: "step-grid", role: "group" });
  const legend = element("div", { class: "legend" });
  const node = element("figure", { class: "stage" }, grid, legend);
  grid.style.setProperty("--layers", data.layers.length);

  const update = () => {
    const w = trainingWords();
    const level = Math.ceil(state.get("step") - 1e-9);
    const moment = data.moments[level];
    grid.setAttribute("aria-label", w.stage(data.layers.length, data.ranks));
    grid.dataset.phase = moment.phase;
    const bands = moment.open.map((number) => band(data, number, moment.collective === number));
    const rows = Array.from({ length: data.ranks }, (_, rank) => row(data, level, rank, state, words(), w, most));
    fill(grid, ...bands, ...heads(data, moment, w), ...rows.flat(), ...foot(data, moment));
    fill(legend, ...legendItems(data, w));
  };
  update();
  return { node, update };
}

function heads(data, moment, w) {
  const made = data.layers.map((layer, at) => {
    const name = layer.split || layer.kind === "activation" ? w.splits[layer.split] : w.layer(at);
    const arrow = moment.what === "compute" && moment.layer === at ? (moment.phase === "forward" ? "→" : "←") : "";
    return placed(
      element(
        "div",
        { class: arrow ? "layer-head now" : "layer-head" },
        element("b", {}, arrow === "←" ? "← " : "", name, arrow === "→" ? " →" : ""),
        element("small", {}, matrixText(data, layer)),
      ),
      LEFT + at,
      1,
    );
  });
  const memory = placed(element("div", { class: "layer-head" }, element("b", {}, w.memory)), LEFT + made.length, 1);
  return [...made, memory];
}

/** The shape of the matrix, whole and here: 64 × 256. */
function matrixText(data, layer) {
  const weight = layer.parameters.find(([name]) => name === "weight");
  if (!weight) return "";
  const whole = data.whole?.[`${layer.name}.weight`] ?? weight[1];
  return `${whole[1]} × ${whole[0]}`;
}

function row(data, level, rank, state, words, w, most) {
  const moment = data.moments[level];
  const selected = state.get("rank") === rank;
  const name = element(
    "button",
    {
      type: "button",
      class: "rank-name",
      "aria-pressed": `${selected}`,
      onclick: () => state.set({ rank: selected ? null : rank }),
    },
    element("span", { class: "wide" }, words.rank(rank)),
    element("span", { class: "narrow", "aria-hidden": "true" }, `${rank}`),
  );
  const cells = data.layers.map((_, at) => {
    const busy = moment.what === "compute" && moment.layer === at;
    return placed(cell(data, level, rank, at, busy), LEFT + at, TOP + rank);
  });
  return [
    placed(name, 1, TOP + rank),
    ...cells,
    placed(memoryBar(data, level, rank, w, most), LEFT + cells.length, TOP + rank),
  ];
}

/** What a rank has of a layer: strips with a place for each of p parts. */
function cell(data, level, rank, at, busy) {
  const layer = data.layers[at];
  const made = element("div", { class: `cell ${layer.split}${busy ? " busy" : ""}`, "aria-hidden": "true" });
  const shown = cellAt(data, level, rank, at);
  if (layer.parameters.length) {
    const parts = Array.from({ length: data.ranks }, (_, part) => part);
    made.append(
      strip("parameters", parts, (part) =>
        shown.parameters.includes(part) ? "parameters" : shown.gathered ? "gathered" : "",
      ),
      strip("gradients", parts, (part) =>
        shown.gradients.includes(part) ? (shown.final ? "gradients" : "gradients own") : "",
      ),
      strip("optimizer", parts, (part) => (shown.optimizer.includes(part) ? "optimizer" : "")),
    );
  }
  made.append(strip("activations", [0], () => (shown.activations ? "activations" : "")));
  return made;
}

function strip(kind, parts, kindOf) {
  return element(
    "div",
    { class: `strip strip-${kind}` },
    ...parts.map((part) => element("i", { class: `part ${kindOf(part)}` })),
  );
}

function memoryBar(data, level, rank, w, most) {
  const memory = memoryAt(data, level, rank);
  const shown = [...KINDS, EMPTY].filter((kind) => memory[kind] > 0);
  const label = w.barLabel(
    rank,
    exactBytes(memory.total),
    shown.map((kind) => `${w.kinds[kind]} ${exactBytes(memory[kind])}`).join(", "),
  );
  const bar = element("div", { class: "memory-bar", role: "img", "aria-label": label, title: label });
  for (const kind of shown) {
    const part = element("i", { class: `part ${kind}`, "data-kind": kind, "data-bytes": memory[kind] });
    part.style.width = `${(100 * memory[kind]) / most}%`;
    bar.append(part);
  }
  return element(
    "div",
    { class: "memory", "data-rank": rank, "data-total": memory.total },
    bar,
    element("small", {}, bytesText(memory.total)),
  );
}

/** A collective that runs: a band across all ranks, where its layers are. */
function band(data, number, begins) {
  const { collective, layers } = data.collectives[number];
  const first = layers.length ? Math.min(...layers) : 0;
  const last = layers.length ? Math.max(...layers) : data.layers.length - 1;
  const made = element("div", {
    class: `band ${collective}${begins ? " begins" : ""}${layers.length ? "" : " thin"}`,
    "data-collective": collective,
    "aria-hidden": "true",
  });
  made.style.gridColumn = `${LEFT + first} / ${LEFT + last + 1}`;
  made.style.gridRow = `${TOP} / ${TOP + data.ranks + 1}`;
  return made;
}

/** Below the ranks, what the bands are. */
function foot(data, moment) {
  const rows = [];
  return moment.open.map((number) => {
    const { collective, layers, bytes } = data.collectives[number];
    const first = layers.length ? Math.min(...layers) : 0;
    const last = layers.length ? Math.max(...layers) : data.layers.length - 1;
    // One below the other where they would lie on each other.
    let line = 0;
    while (rows[line]?.some((taken) => first <= taken.last && last >= taken.first)) line++;
    rows[line] = [...(rows[line] ?? []), { first, last }];
    const made = element(
      "div",
      { class: `band-name ${collective}` },
      element("b", {}, titleOf(collective)),
      " ",
      element("span", {}, bytesText(bytes)),
    );
    made.style.gridColumn = `${LEFT + first} / ${LEFT + last + 1}`;
    made.style.gridRow = `${TOP + data.ranks + line}`;
    return made;
  });
}

function legendItems(data, w) {
  const kinds = [...KINDS, EMPTY].filter((kind) => data.moments.some((_, level) => memoryAt(data, level, 0)[kind]));
  const made = kinds.map((kind) =>
    element("span", { class: "key" }, element("i", { class: `swatch part ${kind}` }), w.kinds[kind]),
  );
  if (data.collectives.some(({ members }) => members.some(([name]) => name.endsWith(".weight")))) {
    made.push(element("span", { class: "key" }, element("i", { class: "swatch part gradients own" }), w.own));
  }
  return made;
}

function placed(node, column, line) {
  node.style.gridColumn = `${column}`;
  node.style.gridRow = `${line}`;
  return node;
}

/** Numbers of a tensor as text: 2 × 8 × 64. */
export function shapeText(shape) {
  return shape.length ? shape.join(" × ") : "1";
}

/** How many numbers a list of tensors has. */
export function countOf(members) {
  return members.reduce((sum, [, shape]) => sum + product(shape), 0);
}
