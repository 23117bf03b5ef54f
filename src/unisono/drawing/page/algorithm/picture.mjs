// A step of an algorithm as a picture for paper, a file or an animation: the same stage, on white, without the page.

import { lightPaints } from "../common/palette.mjs";
import { phaseOf } from "../common/phase_names.mjs";
import { Stage } from "../common/stage.mjs";
import { SvgPen } from "../common/svg_pen.mjs";
import { viewAtLevel } from "../common/views.mjs";

const PICTURE = { width: 960, height: 540 };
const HEAD = 48; // pixels above the stage, for the names of the algorithm and the step
const FONT = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "PingFang SC", "Noto Sans CJK SC", sans-serif';

/** Return what paints a scene: paint(pen, position), and svg(position); `room` is the size of the picture, `title` is
 * written above the stage, or null for the stage alone. */
export function picture(scene, look, w, language, title = null, room = PICTURE) {
  const head = title === null ? 0 : HEAD;
  const stage = new Stage(document.createElement("canvas"), scene, look);
  stage.fit({ width: room.width, height: room.height - head }, lightPaints(document.documentElement));

  const paint = (pen, position) => {
    pen.fillStyle = stage.paint.surface;
    pen.fillRect(0, 0, room.width, room.height);
    if (head) write(pen, position);
    pen.save();
    pen.translate(0, head);
    stage.paintOn(pen, viewAtLevel(scene, position));
    pen.restore();
  };
  const write = (pen, position) => {
    pen.textBaseline = "middle";
    pen.fillStyle = stage.paint.ink;
    pen.textAlign = "left";
    pen.font = `600 19px ${FONT}`;
    pen.fillText(title, 20, head / 2);
    pen.font = `17px ${FONT}`;
    pen.fillStyle = stage.paint.muted;
    pen.textAlign = "right";
    pen.fillText(stepName(scene, position, w, language), room.width - 20, head / 2);
  };
  const svg = (position) => {
    const pen = new SvgPen();
    paint(pen, position);
    return pen.text(room, `${title ?? scene.label}: ${stepName(scene, position, w, language)}`);
  };
  return { paint, svg, room };
}

/** The number of the step, and its phase. */
export function stepName(scene, position, w, language) {
  const level = Math.ceil(position - 1e-9);
  if (level === 0) return w.before;
  const phase = scene.phases.length > 1 ? phaseOf(scene, level) : null;
  return phase ? `${w.stepOf(level, scene.levels)} · ${phase.words[language]}` : w.stepOf(level, scene.levels);
}
