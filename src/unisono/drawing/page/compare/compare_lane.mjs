// One of the compared algorithms: its stage, its name, and its progress.

import { element } from "../common/dom.mjs";
import { Stage } from "../common/stage.mjs";
import { secondsText } from "../common/units.mjs";
import { viewAtLevel, viewAtTime } from "../common/views.mjs";

/** Return a lane: update takes { step }, or { moment, times, place } with a clock. */
export function compareLane(scene, name, at, state, words) {
  const canvas = element("canvas", { role: "img" });
  const said = element("p", { class: "progress" });
  const node = element(
    "section",
    { class: `panel compare-lane series-${at % 6}`, "data-name": name },
    element("h2", {}, name),
    scene.on_stage ? canvas : "",
    said,
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
    else stage = new Stage(canvas, scene, look);
  };
  const refresh = () => {
    canvas.setAttribute("aria-label", words().stageLabel(scene.label, words().ranks(scene.size)));
    stage?.refresh();
  };
  const update = ({ step, moment, times, place }) => {
    const w = words();
    if (moment === undefined) {
      const position = Math.min(step, scene.levels);
      stage?.draw(viewAtLevel(scene, position));
      const level = Math.ceil(position - 1e-9);
      const text = level === 0 ? w.before : w.stepOf(level, scene.levels);
      said.textContent = position >= scene.levels ? w.doneAfterSteps(scene.levels) : text;
    } else {
      if (stage) stage.draw(viewAtTime(scene, times, moment));
      const over = moment >= times.finish * (1 - 1e-9);
      said.textContent = over ? w.doneAfter(secondsText(times.finish), place + 1) : secondsText(moment);
    }
    node.classList.toggle("over", moment === undefined ? step >= scene.levels : moment >= times.finish * (1 - 1e-9));
  };
  return { node, update, resize, refresh };
}
