// The panels beside the timeline: the calls, and the waits with their causes.

import { element, fill } from "../common/dom.mjs";
import { bytesText, durationText } from "../common/units.mjs";
import { pairSentence, pathLines } from "./event_sentences.mjs";

const MOST_PAIRS = 8;
const DARKEST = 55; // percent of red behind the longest wait; its text is readable up to 58
const MOST_IN_A_TABLE = 32; // ranks

/** Return the panel of the selected call: { node, update }. */
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

/** The path as a list; the bar before each stretch shows its share of the whole. */
function pathParts(group, call, w, language) {
  const lines = pathLines(group, call, language);
  if (!lines.length) return [element("p", { class: "note" }, w.noPath)];
  const total = Math.max(1, call.end - call.begin);
  const items = lines.map(({ at, text }) => {
    const part = at === null ? 0 : group.columns.path_end[at] / total;
    const made = element("li", {}, unbroken(text));
    made.style.setProperty("--part", `${part < 0.01 ? 0 : 100 * part}%`);
    return made;
  });
  return [element("ol", { class: "path-list" }, ...items), element("p", { class: "note" }, w.pathNote)];
}

/** Keep a time on the same line as its unit. */
function unbroken(text) {
  return text.replaceAll(/(\d) (?=(?:ns|µs|ms|s)\b)/g, "$1\u00a0");
}

/** Return the panel of the waits and their causes: { node, update }. */
export function waitsPanel(open, state, words) {
  const node = element("section", { class: "panel waits-panel" });
  let shown = "blamed";
  const update = () => {
    const w = words();
    const group = open.group();
    const pairs = {
      blamed: group.blamed.map(([waiter, peer, late, slow]) => ({ waiter, peer, ns: late + slow })),
      waited: group.waited.map(([waiter, peer, ns]) => ({ waiter, peer, ns })),
    };
    for (const list of Object.values(pairs)) list.sort((one, other) => other.ns - one.ns);
    if (!pairs.waited.length) {
      fill(node, element("h2", {}, w.waitsTitle), element("p", { class: "note" }, w.noWaits));
      return;
    }
    const directly = new Map(pairs.waited.map(({ waiter, peer, ns }) => [`${waiter} ${peer}`, ns]));
    const sentences = pairs.blamed.slice(0, MOST_PAIRS).map((pair) => {
      return pairSentence(group, pair, directly.get(`${pair.waiter} ${pair.peer}`) ?? 0, state.get("lang"));
    });
    const choice = (name) =>
      element(
        "button",
        { type: "button", "data-table": name, "aria-pressed": `${shown === name}`, onclick: () => choose(name) },
        w.tables[name],
      );
    const switches = element(
      "div",
      { class: "languages", role: "group", "aria-label": w.waitsTitle },
      choice("blamed"),
      choice("waited"),
    );
    fill(
      node,
      element("div", { class: "story-head" }, element("h2", {}, w.waitsTitle), switches),
      element("p", { class: "note" }, w.tableNotes[shown]),
      element(
        "div",
        { class: "waits-body" },
        group.size <= MOST_IN_A_TABLE
          ? element("div", { class: "scroll", tabindex: "0" }, table(group, pairs[shown], w))
          : "",
        element("ul", { class: "pairs" }, ...sentences.map((text) => element("li", {}, unbroken(text)))),
      ),
    );
  };
  const choose = (name) => {
    shown = name;
    update();
    node.querySelector(`[data-table=${name}]`).focus();
  };
  return { node, update };
}

function table(group, pairs, w) {
  const most = pairs[0]?.ns ?? 1;
  const cells = new Map(pairs.map(({ waiter, peer, ns }) => [`${waiter} ${peer}`, ns]));
  const ranks = Array.from({ length: group.size }, (_, rank) => rank);
  const heading = (rank, scope, text) => element("th", { scope, class: rank === group.slow ? "slow" : "" }, text);
  const rows = ranks.map((waiter) => {
    const row = element("tr", {}, heading(waiter, "row", w.rank(group.names[waiter])));
    for (const peer of ranks) {
      const ns = cells.get(`${waiter} ${peer}`) ?? 0;
      const cell = element("td", { class: waiter === peer ? "own" : "" }, ns ? durationText(ns) : "");
      cell.style.setProperty("--part", `${Math.round((DARKEST * ns) / most)}%`);
      if (ns > 0.55 * most) cell.classList.add("strong");
      row.append(cell);
    }
    return row;
  });
  const head = element("tr", {}, element("td"), ...ranks.map((rank) => heading(rank, "col", group.names[rank])));
  return element("table", { class: "heat-table" }, element("thead", {}, head), element("tbody", {}, ...rows));
}
