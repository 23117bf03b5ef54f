// The facts that the verifier proved, or the reason why the proof fails.

import { element, fill } from "../common/dom.mjs";
import { fact, failureDetails } from "../common/failure.mjs";

/** Return the panel: { node, update }. In the course, where a step is a level of the schedule, it leaves out `steps`. */
export function factsPanel(scene, state, words, course = false) {
  const node = element("section", { class: "panel facts" });
  const update = () => {
    const w = words();
    if (scene.failure) {
      const refused = element("span", { class: "refused" }, `✗ ${w.failed}`);
      fill(node, element("h2", {}, w.facts, refused), ...failureDetails(scene.failure, w, state.get("lang")));
    } else if (scene.facts) fill(node, ...facts(scene, w, course));
  };
  update();
  return { node, update };
}

function facts(scene, w, course) {
  const { facts: known, collective } = scene;
  const rows = [fact(w.factRounds, `${known.rounds}`, w.roundsNote, ratio(known.latency_ratio, w))];
  if (!course) rows.unshift(fact(w.factSteps, `${known.steps}`, w.stepsNote));
  if (collective.carries_data) {
    const bytes = w.ofVector(part(known.bytes));
    rows.push(fact(w.factBytes, bytes, "", known.least_bytes.value ? ratio(known.bandwidth_ratio, w) : null));
  }
  rows.push(fact(w.factMessages, `${known.messages}`, w.messagesNote(known.messages_per_rank)));
  if (collective.carries_data) {
    rows.push(fact(w.factMemory, known.memory.value ? w.ofVector(part(known.memory)) : w.none, ""));
  }
  if (collective.reduces && collective.carries_data) {
    const tree = known.tree ? element("code", { class: "tree" }, known.tree) : "";
    if (collective.shares_result) rows.push(fact(w.factAgreement, w.agreement, tree ? w.addedAs : "", tree || null));
    else if (tree) rows.push(fact(w.addedAs, "", "", tree));
  }
  return [
    element("h2", {}, w.facts, element("span", { class: "proved", title: w.provedNote }, `✓ ${w.proved}`)),
    element("dl", {}, ...rows),
  ];
}

/** A bar that is full if the value is optimal. */
function ratio(value, w) {
  const text = value < 1.005 ? w.atLeast : w.least(value < 10 ? value.toFixed(2) : value.toFixed(0));
  const bar = element("span", { class: "bar", "aria-hidden": "true" });
  bar.style.setProperty("--full", `${Math.round(100 / Math.max(1, value))}%`);
  return element("span", { class: "ratio" }, bar, text);
}

function part({ text, value }) {
  return text.includes("/") ? `${text} ≈ ${value.toFixed(2)}` : text;
}
