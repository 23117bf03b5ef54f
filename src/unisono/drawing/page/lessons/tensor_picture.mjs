// Three pictures that show why a matrix cut by columns followed by one cut by rows needs no communication in between.

import { element, fill, shape } from "../common/dom.mjs";
import { rankColour } from "../common/palette.mjs";
import { product } from "./training_model.mjs";

const UNIT = 0.62; // pixels per row or column of a matrix
const SPACE = 26; // between matrices
const TOP = 30;

/** Return { node, update }: a picture for each layer; the current one is marked. */
export function whyPanel(data, state, words) {
  const node = element("section", { class: "panel why-panel" });
  const sizes = sizesOf(data);
  const update = () => {
    const w = words();
    const moment = data.moments[Math.ceil(state.get("step") - 1e-9)];
    const pictures = [column(sizes, w), pointwise(sizes, w), row(sizes, w)];
    fill(
      node,
      element("h2", {}, w.why),
      ...pictures.map((picture, at) =>
        element(
          "figure",
          { class: moment.layer === at ? "why-step now" : "why-step" },
          picture,
          element("figcaption", {}, w.whySteps[at]),
        ),
      ),
      element("p", { class: "note" }, w.whyBack),
    );
  };
  return { node, update };
}

/** The sizes of all matrices, from the recorded data. */
export function sizesOf(data) {
  const [up, , down] = data.layers;
  const [hidden, features] = data.whole[`${up.name}.weight`];
  return {
    ranks: data.ranks,
    rows: product(up.input.slice(0, -1)),
    features,
    hidden,
    own: up.parameters.find(([name]) => name === "weight")[1][0],
    out: down.output[down.output.length - 1],
  };
}

function column({ ranks, rows, features, hidden, own }, w) {
  const pen = new Row();
  pen.matrix("X", rows, features, 1, 1, w.shape(rows, features));
  pen.sign("·");
  pen.matrix("A", features, hidden, 1, ranks, w.shape(features, hidden), `${ranks} × (${w.shape(features, own)})`);
  pen.sign("=");
  pen.matrix("X·A", rows, hidden, 1, ranks, w.shape(rows, hidden), `${ranks} × (${w.shape(rows, own)})`);
  return pen.drawn();
}

function pointwise({ ranks, rows, hidden, own }, w) {
  const pen = new Row();
  pen.matrix("X·A", rows, hidden, 1, ranks, w.shape(rows, hidden), `${ranks} × (${w.shape(rows, own)})`);
  pen.sign("→");
  pen.matrix("Z = GELU(X·A)", rows, hidden, 1, ranks, w.shape(rows, hidden), `${ranks} × (${w.shape(rows, own)})`);
  return pen.drawn();
}

function row({ ranks, rows, hidden, own, out }, w) {
  const product = new Row();
  product.matrix("Z", rows, hidden, 1, ranks, w.shape(rows, hidden), `${ranks} × (${w.shape(rows, own)})`);
  product.sign("·");
  product.matrix("B", hidden, out, ranks, 1, w.shape(hidden, out), `${ranks} × (${w.shape(own, out)})`);
  const sum = new Row();
  sum.sign("=");
  for (let rank = 0; rank < ranks; rank++) {
    sum.matrix(`Z${sub(rank)}·B${sub(rank)}`, rows, out, 1, 1, rank ? "" : w.shape(rows, out), "", rank);
    sum.sign(rank < ranks - 1 ? "+" : "=", true);
  }
  sum.matrix("Y", rows, out, 1, 1, w.shape(rows, out));
  return element("div", { class: "why-row" }, product.drawn(), sum.drawn());
}

function sub(number) {
  return [...`${number}`].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("");
}

/** Matrices side by side, vertically centred. */
class Row {
  constructor() {
    this.made = [];
    this.x = 2;
    this.heights = [];
  }

  /** `note` and `detail` are written below; `rank` is the owner, if one rank has the whole matrix. */
  matrix(name, rows, columns, down, across, note, detail = "", rank = null) {
    const width = Math.max(26, columns * UNIT);
    const height = Math.max(16, rows * UNIT);
    const text = Math.max(width, name.length * 9, note.length * 6.6, detail.length * 6.6);
    this.made.push({ name, note, detail, x: this.x + (text - width) / 2, width, height, down, across, rank });
    this.heights.push(height);
    this.x += text;
  }

  sign(text, small = false) {
    const space = small ? SPACE * 0.7 : SPACE;
    this.made.push({ sign: text, x: this.x + space / 2 });
    this.x += space;
  }

  drawn() {
    const tallest = Math.max(...this.heights);
    const middle = TOP + tallest / 2;
    const children = this.made.flatMap((one) => {
      if (one.sign) return [shape("text", { x: one.x, y: middle + 6, class: "why-sign" }, one.sign)];
      const y = middle - one.height / 2;
      return [
        shape("text", { x: one.x + one.width / 2, y: y - 8, class: "why-name" }, one.name),
        ...pieces(one, y),
        shape("text", { x: one.x + one.width / 2, y: y + one.height + 16, class: "why-note" }, one.note),
        shape("text", { x: one.x + one.width / 2, y: y + one.height + 31, class: "why-note" }, one.detail),
      ];
    });
    const [width, height] = [this.x + 2, TOP + tallest + 39];
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-hidden": "true" }, ...children);
    svg.style.maxWidth = `${width * 1.15}px`;
    return svg;
  }
}

/** The parts of a matrix, in the colours of the ranks that have them; a whole matrix has no colour. */
function pieces({ x, width, height, down, across, rank }, y) {
  const count = down * across;
  return Array.from({ length: count }, (_, part) => {
    const [w, h] = [width / across, height / down];
    const [left, top] = across > 1 ? [x + part * w, y] : [x, y + part * h];
    const attributes = { x: left + 0.5, y: top + 0.5, width: w - 1, height: h - 1, rx: 2, class: "why-part" };
    const owner = rank ?? (count > 1 ? part : null);
    const made = shape("rect", attributes);
    if (owner !== null) made.style.fill = rankColour(owner, Math.max(count, 4));
    return made;
  });
}
