// The stage of a training step: a row for each rank, a column for each layer, bands across the ranks for collectives
// that run, and the memory of each rank as a stacked bar.

import { element, fill } from "../common/dom.mjs";
import { bytesText, exactBytes } from "../common/units.mjs";
import { cellAt, EMPTY, KINDS, memoryAt } from "./training_model.mjs";
import { titleOf } from "./training_narration.mjs";

const LEFT = 2; // the grid column of the first layer
const TOP = 2; // the grid row of the first rank

/** Return { node, update, render }: `render` builds the stage in the current language; `update` shows a moment.
 * `most` is the number of bytes of a full bar. */
export function trainingStage(data, state, words, trainingWords, most) {
  const grid = element("div", { class: "step-grid", role: "group" });
  const legend = element("div", { class: "legend" });
  const node = element("figure", { class: "stage" }, grid, legend);
  grid.style.setProperty("--layers", data.layers.length);
  let rows = [];
  let heads = [];
  let passing = []; // elements that exist only while a collective runs

  const render = () => {
    const w = trainingWords();
    grid.setAttribute("aria-label", w.stage(data.layers.length, data.ranks));
    heads = data.layers.map((layer, at) => layerHead(data, layer, at, w));
    const memory = placed(
      element("div", { class: "layer-head" }, element("b", {}, w.memory)),
      LEFT + heads.length,
      1,
    );
    rows = Array.from({ length: data.ranks }, (_, rank) => rankRow(data, rank, state, words(), w, most));
    fill(grid, ...heads.map((head) => head.node), memory, ...rows.flatMap(({ nodes }) => nodes));
    fill(legend, ...legendItems(data, w));
    update();
  };
  const update = () => {
    const level = Math.ceil(state.get("step") - 1e-9);
    const moment = data.moments[level];
    for (const one of passing) one.remove();
    passing = [
      ...moment.open.map((number) => band(data, number, moment.collective === number)),
      ...foot(data, moment),
    ];
    grid.append(...passing);
    for (const head of heads) head.update(moment);
    for (const one of rows) one.update(level);
  };
  render();
  return { node, update, render };
}

function layerHead(data, layer, at, w) {
  const text = layer.split || layer.kind === "activation" ? w.splits[layer.split] : w.layer(at);
  const name = element("b");
  const node = element("div", { class: "layer-head" }, name, element("small", {}, matrixText(data, layer)));
  const update = (moment) => {
    const busy = moment.what === "compute" && moment.layer === at;
    node.classList.toggle("now", busy);
    name.textContent = busy ? (moment.phase === "forward" ? `${text} →` : `← ${text}`) : text;
  };
  return { node: placed(node, LEFT + at, 1), update };
}

/** The shape of the whole matrix: 64 × 256. */
function matrixText(data, layer) {
  const weight = layer.parameters.find(([name]) => name === "weight");
  if (!weight) return "";
  const whole = data.whole?.[`${layer.name}.weight`] ?? weight[1];
  return `${whole[1]} × ${whole[0]}`;
}

function rankRow(data, rank, state, words, w, most) {
  const name = element(
    "button",
    {
      type: "button",
      class: "rank-name",
      onclick: () => state.set({ rank: state.get("rank") === rank ? null : rank }),
    },
    element("span", { class: "wide" }, words.rank(rank)),
    element("span", { class: "narrow", "aria-hidden": "true" }, `${rank}`),
  );
  const cells = data.layers.map((layer, at) => layerCell(data, layer, rank, at));
  const memory = memoryBar(data, rank, w, most);
  const update = (level) => {
    name.setAttribute("aria-pressed", `${state.get("rank") === rank}`);
    for (const cell of cells) cell.update(level);
    memory.update(level);
  };
  const nodes = [name, ...cells.map(({ node }) => node), memory.node];
  nodes.forEach((node, at) => {
    placed(node, at + 1, TOP + rank);
  });
  return { nodes, update };
}

/** The part of a layer that a rank has: strips with a position for each of p parts. */
function layerCell(data, layer, rank, at) {
  const node = element("div", { class: `cell ${layer.split}`, "aria-hidden": "true" });
  const kinds = layer.parameters.length ? ["parameters", "gradients", "optimizer", "activations"] : ["activations"];
  const strips = kinds.map((kind) => {
    const parts = Array.from({ length: kind === "activations" ? 1 : data.ranks }, () => element("i"));
    node.append(element("div", { class: `strip strip-${kind}` }, ...parts));
    return { kind, parts };
  });
  const update = (level) => {
    const { what, layer: busy } = data.moments[level];
    node.classList.toggle("busy", what === "compute" && busy === at);
    const shown = cellAt(data, level, rank, at);
    for (const { kind, parts } of strips) {
      parts.forEach((part, number) => {
        part.className = `part ${partKind(shown, kind, number)}`;
      });
    }
  };
  return { node, update };
}

function partKind(shown, kind, number) {
  if (kind === "activations") return shown.activations ? kind : "";
  if (!shown[kind].includes(number)) return kind === "parameters" && shown.gathered ? "gathered" : "";
  return kind === "gradients" && !shown.final ? "gradients own" : kind;
}

function memoryBar(data, rank, w, most) {
  const kinds = [...KINDS, EMPTY];
  const parts = kinds.map((kind) => element("i", { class: `part ${kind}`, "data-kind": kind }));
  const bar = element("div", { class: "memory-bar", role: "img" }, ...parts);
  const total = element("small");
  const node = element("div", { class: "memory", "data-rank": rank }, bar, total);
  const update = (level) => {
    const memory = memoryAt(data, level, rank);
    const named = kinds.filter((kind) => memory[kind]).map((kind) => `${w.kinds[kind]} ${exactBytes(memory[kind])}`);
    const label = w.barLabel(rank, exactBytes(memory.total), named);
    bar.setAttribute("aria-label", label);
    bar.title = label;
    total.textContent = bytesText(memory.total);
    node.dataset.total = memory.total;
    kinds.forEach((kind, at) => {
      parts[at].style.width = `${(100 * memory[kind]) / most}%`;
    });
  };
  return { node, update };
}

/** A running collective: a band across all ranks, at its layers. */
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

/** The names of the bands, below the ranks. */
function foot(data, moment) {
  const rows = [];
  return moment.open.map((number) => {
    const { collective, layers, bytes } = data.collectives[number];
    const first = layers.length ? Math.min(...layers) : 0;
    const last = layers.length ? Math.max(...layers) : data.layers.length - 1;
    // One below the other where they would overlap.
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

/** The shape of a tensor as text: 2 × 8 × 64. */
export function shapeText(shape) {
  return shape.length ? shape.join(" × ") : "1";
}

/** A layer in one letter or number. */
export function letterOf(data, at) {
  const { split, kind } = data.layers[at];
  return { column: "A", row: "B", router: "R", expert: "E" }[split] ?? (kind === "activation" ? "ƒ" : `${at}`);
}
