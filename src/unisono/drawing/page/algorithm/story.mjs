// The panel that describes the current step in words.

import { element, withCode } from "../common/dom.mjs";
import { narrationPanel } from "../common/narration_panel.mjs";
import { phaseOf, stepName } from "../common/phase_names.mjs";
import { beginning, ending, stepSentences } from "../common/sentences.mjs";
import { stepSummary } from "../common/step_summary.mjs";
import { viewAtLevel } from "../common/views.mjs";

const MOST_SENTENCES = 8;

/** Return the panel with the words of the step: { node, update }. */
export function storyPanel(scene, state, words, sentencesOf = stepSentences) {
  const headingOf = (level) => stepName(scene, level, words(), state.get("lang"));
  const paragraphsOf = (level) =>
    paragraphs(scene, level, state.get("lang"), state.get("rank"), words(), sentencesOf);
  return narrationPanel(state, headingOf, paragraphsOf, () => [rankChoice(scene, state, words())]);
}

function paragraphs(scene, level, language, rank, w, sentencesOf) {
  if (level === 0) return [element("p", { class: "lead" }, w.beforeWords(beginning(scene, language)))];
  const view = scene.on_stage ? viewAtLevel(scene, level) : { level };
  const made = [];
  const idea = phaseOf(scene, level)?.idea?.[language];
  if (idea) made.push(element("p", { class: "phase-idea" }, idea));
  if (rank === null && scene.on_stage) {
    const summary = stepSummary(scene, view, language);
    if (summary) made.push(element("p", { class: "lead" }, summary));
  }
  const sentences = sentencesOf(scene, view, language, rank);
  if (rank !== null && !sentences.length) made.push(element("p", {}, w.idle(rank)));
  const list = sentences.slice(0, MOST_SENTENCES).map((text) => element("li", {}, text));
  made.push(element("ul", {}, ...list));
  if (sentences.length > MOST_SENTENCES) {
    made.push(element("p", { class: "note" }, w.more(sentences.length - MOST_SENTENCES)));
  }
  if (level === scene.levels && !scene.failure)
    made.push(element("p", { class: "finished" }, ending(scene, language)));
  if (level === scene.levels && scene.failure) {
    const { rank: failing, step, said } = scene.failure;
    const { what, found, hint } = said[language];
    const location = failing === undefined || step === undefined ? "" : w.failureAt(failing, step + 1, level);
    made.push(
      element("p", { class: "why" }, w.failure[scene.failure.error] ?? w.failure.ScheduleError),
      element("p", {}, location),
      ...[what, found, hint].filter(Boolean).map((text) => element("p", { class: "note" }, ...withCode(text))),
    );
  }
  return made;
}

/** The words of a position in one paragraph, for a picture: the idea of the phase, and what happens. */
export function captionAt(scene, position, language, w, sentencesOf = stepSentences) {
  const level = Math.ceil(position - 1e-9);
  if (level === 0) return w.beforeWords(beginning(scene, language));
  const view = scene.on_stage ? viewAtLevel(scene, level) : { level };
  const summary = scene.on_stage ? stepSummary(scene, view, language) : "";
  const said = [
    phaseOf(scene, level)?.idea?.[language],
    summary || sentencesOf(scene, view, language, null)[0],
    level < scene.levels ? "" : scene.failure ? w.failure[scene.failure.error] : ending(scene, language),
  ];
  return said.filter(Boolean).join(language === "zh" ? "" : " ");
}

/** The choice of a rank. */
export function rankChoice(scene, state, w) {
  const made = element("select", {
    id: "rank",
    "aria-label": w.choose,
    onchange: () => state.set({ rank: made.value === "" ? null : Number(made.value) }),
  });
  made.append(element("option", { value: "" }, w.everyone));
  for (let rank = 0; rank < scene.size; rank++) {
    made.append(element("option", { value: rank, selected: rank === state.get("rank") }, w.rank(rank)));
  }
  return element("label", { class: "choice" }, element("span", {}, w.choose), made);
}
