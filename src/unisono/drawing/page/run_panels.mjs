// Beside the timeline: the calls, and who waited because of whom.

import { element, fill } from "./dom.mjs";
import { pathLines } from "./run_sentences.mjs";
import { bytesText, durationText } from "./units.mjs";

const MOST_PAIRS = 8;
const MOST_IN_A_TABLE = 32; // ranks

/** Return the panel of the chosen call: { node, update }. */
export function callsPanel(open, state, words, choose) {
  const node = element("section", { class: "panel calls" });
  const update = () => {
    const w = words();
    const group = open.group();
    const call = open.call();
    if (!call) {
      fill(node, element("h2", {}, w.callsTitle), element("p", { class: "note" }, w.noCall));
      return;
    }
    const list = element("select", {
      id: "call",
      "aria-label": w.callsTitle,
      onchange: () => choose(Number(list.value)),
    });
    for (const one of group.calls) {
      const text = w.callOf(one.number, one.label, one.end - one.begin);
      list.append(element("option", { value: one.at, selected: one === call }, text));
    }
    const step = (id, text, label, by) =>
      element(
        "button",
        {
          type: "button",
          class: "small",
          id,
          "aria-label": label,
          title: label,
          disabled: !group.calls[call.at + by],
          onclick: () => choose(call.at + by),
        },
        text,
      );
    fill(
      node,
      element("h2", {}, w.callsTitle),
      element(
        "div",
        { class: "chooser" },
        step("previous-call", "‹", w.previousCall, -1),
        list,
        step("next-call", "›", w.nextCall, 1),
      ),
      element("dl", {}, ...factsOf(group, call, w)),
      element("h3", {}, w.path),
      ...pathParts(group, call, w, state.get("lang")),
    );
  };
  return { node, update };
}

function factsOf(group, call, w) {
  const facts = [
    [w.factLength, durationText(call.end - call.begin)],
    [w.factData, w.elements(call.count, call.dtype, bytesText(call.bytes)) + (call.op ? ` · ${call.op}` : "")],
  ];
  if (call.root !== null) facts.push([w.factRoot, w.rank(group.names[call.root])]);
  if (call.codec !== null) facts.push([w.factCodec, call.codec]);
  if (call.passes > 1) facts.push([w.factSegments, `${call.passes}`]);
  facts.push([w.factLost, call.culprit < 0 ? w.nothingLost : w.lostBy(call.lost, group.names[call.culprit])]);
  return facts.map(([name, value]) =>
    element("div", { class: "fact" }, element("dt", {}, name), element("dd", {}, value)),
  );
}

/** The path as a list; the bar before each stretch is as long as its part of the whole. */
function pathParts(group, call, w, language) {
  const lines = pathLines(group, call, w, language);
  if (!lines.length) return [element("p", { class: "note" }, w.noPath)];
  const total = Math.max(1, call.end - call.begin);
  const items = lines.map(({ at, text }) => {
    const part = at === null ? 0 : group.columns.path_end[at] / total;
    const made = element("li", {}, text);
    made.style.setProperty("--part", `${Math.max(1, 100 * part)}%`);
    return made;
  });
  return [element("ol", { class: "path-list" }, ...items), element("p", { class: "note" }, w.pathNote)];
}

/** Return the panel with who waited because of whom: { node, update }. */
export function waitsPanel(open, words) {
  const node = element("section", { class: "panel waits-panel" });
  const update = () => {
    const w = words();
    const group = open.group();
    const pairs = group.blamed.map(([waiter, culprit, late, slow]) => ({ waiter, culprit, ns: late + slow }));
    pairs.sort((one, other) => other.ns - one.ns);
    if (!pairs.length) {
      fill(node, element("h2", {}, w.waitsTitle), element("p", { class: "note" }, w.nobodyWaited));
      return;
    }
    const directly = new Map(group.waited.map(([waiter, peer, ns]) => [`${waiter} ${peer}`, ns]));
    const sentences = pairs
      .slice(0, MOST_PAIRS)
      .map(({ waiter, culprit, ns }) =>
        w.pair(group.names[waiter], ns, group.names[culprit], w.directly(directly.get(`${waiter} ${culprit}`) ?? 0)),
      );
    fill(
      node,
      element("h2", {}, w.waitsTitle),
      element("p", { class: "note" }, w.waitsNote),
      group.size <= MOST_IN_A_TABLE ? element("div", { class: "scroll" }, table(group, pairs, w)) : "",
      element("ul", { class: "pairs" }, ...sentences.map((text) => element("li", {}, text))),
    );
  };
  return { node, update };
}

function table(group, pairs, w) {
  const most = pairs[0].ns;
  const cells = new Map(pairs.map(({ waiter, culprit, ns }) => [`${waiter} ${culprit}`, ns]));
  const ranks = Array.from({ length: group.size }, (_, rank) => rank);
  const heading = (rank, scope) =>
    element(
      "th",
      { scope, class: rank === group.slow ? "slow" : "" },
      scope === "col" ? group.names[rank] : w.rank(group.names[rank]),
    );
  const rows = ranks.map((waiter) => {
    const row = element("tr", {}, heading(waiter, "row"));
    for (const culprit of ranks) {
      const ns = cells.get(`${waiter} ${culprit}`) ?? 0;
      const cell = element(
        "td",
        {
          class: waiter === culprit ? "own" : "",
          title: ns ? w.becauseOf(group.names[culprit], durationText(ns)) : "",
        },
        ns ? durationText(ns) : "",
      );
      cell.style.setProperty("--part", `${Math.round(85 * (ns / most))}%`);
      if (ns > 0.55 * most) cell.classList.add("strong");
      row.append(cell);
    }
    return row;
  });
  const head = element("tr", {}, element("td", {}, ""), ...ranks.map((rank) => heading(rank, "col")));
  return element("table", { class: "heat-table" }, element("thead", {}, head), element("tbody", {}, ...rows));
}
