// The figure with the stage, its tip and its legend; and how the stage looks.

import { element } from "./dom.mjs";

/** Return { figure, canvas, tip, legend }. */
export function stageFigure(kind = "stage") {
  const canvas = element("canvas", { id: "stage", role: "img", tabindex: "0" });
  const tip = element("div", { class: "tip", hidden: true });
  const legend = element("div", { class: "legend" });
  return { figure: element("figure", { class: kind }, canvas, tip, legend), canvas, tip, legend };
}

/** The look of the stage (see stage.mjs) that the reader has chosen. */
export function lookOf(state, w) {
  return {
    layout: state.get("layout"),
    numbers: state.get("numbers"),
    rank: state.get("rank"),
    names: { rank: w.rank, node: w.node, row: (name) => w.row[name], ranks: w.manyRanks },
  };
}
