// One of the compared algorithms: its name, its progress, what it is doing, and its stage.

import { element, fill } from "../common/dom.mjs";
import { failureDetails } from "../common/failure.mjs";
import { ending } from "../common/sentences.mjs";
import { secondsText } from "../common/units.mjs";
import { viewAtLevel, viewAtTime } from "../common/views.mjs";
import { LaneStage } from "./lane_stage.mjs";
import { describeLane } from "./narration.mjs";

/** Return a lane: update takes { step }, or { moment, times, place } with a clock. */
export function compareLane(scene, name, at, state, words) {
  const canvas = element("canvas", { role: "img" });
  const said = element("p", { class: "progress" });
  const doing = element("p", { class: "doing" });
  const reason = element("div", { class: "reason facts", hidden: !scene.failure });
  const node = element(
    "section",
    { class: `panel compare-lane series-${at % 6}${scene.failure ? " failing" : ""}`, "data-name": name },
    element("div", { class: "lane-head" }, element("h2", {}, name), said),
    scene.on_stage ? doing : "",
    scene.on_stage ? canvas : "",
    reason,
  );
  const look = () => ({
    layout: scene.layout.best,
    numbers: state.get("numbers"),
    rank: state.get("rank"),
    names: { rank: words().rank, node: words().node, row: (part) => words().row[part] },
  });
  let stage = null;
  const resize = () => {
    if (!scene.on_stage) return;
    if (stage) stage.resize();
    else stage = new LaneStage(canvas, scene, look);
  };
  const explain = () => {
    if (scene.failure) fill(reason, ...failureDetails(scene.failure, words(), state.get("lang")));
  };
  const refresh = () => {
    canvas.setAttribute("aria-label", words().stageLabel(scene.label, words().ranks(scene.size)));
    stage?.refresh();
    explain();
  };
  const describe = (view, over) => {
    if (!stage) return;
    stage.draw(view);
    const language = state.get("lang");
    describeLane(doing, scene, view, language, over && !scene.failure ? ending(scene, language) : null);
  };
  /** What the stage shows at a step, or at a moment of a race. */
  const viewOf = ({ step, moment, times }) =>
    moment === undefined ? viewAtLevel(scene, Math.min(step, scene.levels)) : viewAtTime(scene, times, moment);
  const update = (shown) => {
    const { step, moment, times, place } = shown;
    const w = words();
    if (moment === undefined) {
      const position = Math.min(step, scene.levels);
      if (scene.on_stage) describe(viewOf(shown), position >= scene.levels);
      const level = Math.ceil(position - 1e-9);
      const text = level === 0 ? w.before : w.stepOf(level, scene.levels);
      const ended = scene.failure ? `✗ ${w.failed}` : w.doneAfterSteps(scene.levels);
      said.textContent = position >= scene.levels ? ended : text;
    } else {
      const over = moment >= times.finish * (1 - 1e-9);
      if (scene.on_stage) describe(viewOf(shown), over);
      said.textContent = over ? w.doneAfter(secondsText(times.finish), place + 1) : secondsText(moment);
    }
    node.classList.toggle("over", moment === undefined ? step >= scene.levels : moment >= times.finish * (1 - 1e-9));
  };
  explain();
  return { node, update, resize, refresh, look, viewOf, stage: () => stage };
}
