// What happens now, in words, and what everyone holds, as a table.

import { element, fill } from "./dom.mjs";
import { expression } from "./expressions.mjs";
import { isDone } from "./replay.mjs";
import { beginning, stepSentences } from "./sentences.mjs";
import { toldPanel } from "./told.mjs";
import { viewAtLevel } from "./views.mjs";

const MOST_SENTENCES = 8;
const MOST_IN_A_TABLE = 16; // ranks; of more only the selected one is shown

/** Return the panel with the words of the step: { node, update }. */
export function storyPanel(scene, state, words, sentencesOf = stepSentences) {
  const headingOf = (level) => {
    const w = words();
    const phase = scene.phases.find(({ first, last }) => level >= first && level <= last);
    const heading = level === 0 ? w.before : w.stepOf(level, scene.levels);
    return level && phase && scene.phases.length > 1 ? `${heading} · ${phase.words[state.get("lang")]}` : heading;
  };
  const paragraphsOf = (level) =>
    paragraphs(scene, level, state.get("lang"), state.get("rank"), words(), sentencesOf);
  return toldPanel(state, headingOf, paragraphsOf, () => [rankChoice(scene, state, words())]);
}

function paragraphs(scene, level, language, rank, w, sentencesOf) {
  if (level === 0) return [element("p", { class: "lead" }, w.beforeWords(beginning(scene, language)))];
  const view = scene.on_stage ? viewAtLevel(scene, level) : { level };
  const made = [];
  if (rank === null && scene.on_stage) {
    const local = new Set(view.locals.map((one) => one.rank)).size;
    const added = view.arrived.filter(({ reduce }) => reduce).length;
    const stored = view.arrived.length - added;
    const summary = scene.collective.carries_data ? w.summary(view.arrived.length, added, stored, local) : "";
    if (summary) made.push(element("p", { class: "lead" }, summary));
  }
  const sentences = sentencesOf(scene, view, language, rank);
  if (rank !== null && !sentences.length) made.push(element("p", {}, w.idle(rank)));
  const list = sentences.slice(0, MOST_SENTENCES).map((text) => element("li", {}, text));
  made.push(element("ul", {}, ...list));
  if (sentences.length > MOST_SENTENCES) {
    made.push(element("p", { class: "note" }, w.more(sentences.length - MOST_SENTENCES)));
  }
  if (level === scene.levels && !scene.failure) made.push(element("p", { class: "finished" }, w.afterWords));
  if (level === scene.levels && scene.failure) {
    const { what, found } = scene.failure.said[language];
    made.push(
      element("p", { class: "why" }, w.failure[scene.failure.error] ?? w.failure.ScheduleError),
      ...[what, found].filter(Boolean).map((text) => element("p", { class: "note" }, text)),
    );
  }
  return made;
}

function rankChoice(scene, state, w) {
  const made = element("select", {
    id: "rank",
    onchange: () => state.set({ rank: made.value === "" ? null : Number(made.value) }),
  });
  made.append(element("option", { value: "" }, w.everyone));
  for (let rank = 0; rank < scene.size; rank++) {
    made.append(element("option", { value: rank, selected: rank === state.get("rank") }, w.rank(rank)));
  }
  return element("label", { class: "choice" }, element("span", {}, w.choose), made);
}

/** Return the table of what everyone holds: { node, update }; `shown()` is the view, that after the last whole step if
 * nothing else is said. */
export function contentsPanel(
  scene,
  state,
  words,
  shown = () => viewAtLevel(scene, Math.floor(state.get("step") + 1e-9)),
) {
  const summary = element("summary");
  const body = element("div", { class: "scroll" });
  const node = element("details", { class: "panel contents" }, summary, body);
  const update = () => {
    const w = words();
    summary.textContent = w.contents;
    if (!node.open) return;
    const view = shown();
    const all = Array.from({ length: scene.size }, (_, rank) => rank);
    const ranks = scene.size <= MOST_IN_A_TABLE ? all : [state.get("rank") ?? 0];
    const head = element("tr", {}, element("td"));
    for (const part of scene.parts) {
      for (let at = 0; at < part.count; at++) head.append(element("th", { scope: "col" }, w.slot(part.name, at)));
    }
    const rows = ranks.map((rank) => {
      const row = element("tr", { "data-rank": rank }, element("th", { scope: "row" }, w.rank(rank)));
      scene.rows[rank][view.states[rank]].forEach((cell, slot) => {
        const value = cell ? (state.get("numbers") ? `${cell.value}` : expression(scene, cell, slot)) : "·";
        row.append(element("td", { class: isDone(scene, rank, slot, cell) ? "done" : "" }, value));
      });
      return row;
    });
    fill(body, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
  };
  node.addEventListener("toggle", update);
  update();
  return { node, update };
}
