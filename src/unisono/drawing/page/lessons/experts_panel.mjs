// The panel of the page about a mixture of experts: the rows that each rank sends to each.

import { element, fill } from "../common/dom.mjs";
import { few } from "../common/units.mjs";
import { ROWS_WORDS } from "./experts_words.mjs";

/** The rows of the dispatch: { rows, sums, busiest, mean }. */
export function dispatched(data) {
  const { rows } = data.collectives.find(({ collective }) => collective === "all_to_all");
  const sums = rows.map((_, to) => rows.reduce((sum, from) => sum + from[to], 0));
  const most = Math.max(...sums);
  return { rows, sums, busiest: sums.indexOf(most), mean: sums.reduce((sum, one) => sum + one, 0) / sums.length };
}

/** Return the panel: { node, update }. */
export function rowsPanel(data, state) {
  const node = element("section", { class: "panel rows" });
  const { rows, sums, busiest, mean } = dispatched(data);
  const most = Math.max(...rows.flat());
  const cell = (count) => {
    const made = element("td", { class: "rows-cell" }, `${count}`);
    made.style.setProperty("--share", `${Math.round((100 * count) / most)}%`);
    return made;
  };
  const update = () => {
    const w = ROWS_WORDS[state.get("lang")];
    const head = rows.map((_, rank) => element("th", { scope: "col" }, w.to(rank)));
    const body = rows.map((counts, rank) =>
      element("tr", {}, element("th", { scope: "row" }, w.from(rank)), ...counts.map(cell)),
    );
    const last = element(
      "tr",
      {},
      element("th", { scope: "row" }, w.sum),
      ...sums.map((sum) => element("td", {}, element("b", {}, `${sum}`))),
    );
    fill(
      node,
      element("h2", {}, w.title),
      element(
        "div",
        { class: "scroll", tabindex: "0" },
        element(
          "table",
          {},
          element("thead", {}, element("tr", {}, element("td"), ...head)),
          element("tbody", {}, ...body, last),
        ),
      ),
      element("p", {}, w.busiest(busiest, sums[busiest], few(mean))),
      element("p", { class: "note" }, w.note),
    );
  };
  return { node, update };
}
