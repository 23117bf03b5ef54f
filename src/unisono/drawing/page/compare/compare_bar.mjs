// The bar of the page that compares: buttons, slider, and the choice between steps and clock.

import { element } from "../common/dom.mjs";
import { fillBar, playbackButtons, positionSlider, setIcon } from "../common/playback_buttons.mjs";
import { timeMarks } from "../common/time_marks.mjs";
import { secondsText } from "../common/units.mjs";

export const RACE = 10; // positions from the start to the end of a race by the clock

/** Return the bar: { node, update }; `ways` are the clocks to choose from, `seconds()` the duration of a race. */
export function compareBar(state, player, length, words, ways, seconds) {
  const node = element("section", { class: "controls" });
  const parts = {};
  const marks = timeMarks(seconds);

  const render = () => {
    const w = words();
    const buttons = playbackButtons(player, w, length);
    parts.play = buttons.play;
    parts.where = element("output", { class: "where", for: "position" });
    parts.slider = positionSlider(player, {});
    const names = { step: w.byStep, time: w.byTime };
    parts.ways = ways.length > 1 ? ways.map((way) => wayButton(way, names[way], state)) : [];
    const group = { class: "languages", role: "group", "aria-label": w.lockstep, hidden: !parts.ways.length };
    fillBar(node, { ...parts, buttons, above: [marks.node], choices: [element("div", group, ...parts.ways)] });
  };

  /** The name of a position. */
  const positionAt = (step) => {
    const w = words();
    const level = Math.ceil(step - 1e-9);
    if (state.get("by") === "time") return w.timeOf(secondsText((step / RACE) * seconds()), secondsText(seconds()));
    return level ? w.stepOf(level, length()) : w.before;
  };

  const update = (changed) => {
    if (changed.has("lang")) render();
    const w = words();
    const step = state.get("step");
    const byTime = state.get("by") === "time";
    const playing = state.get("playing");
    setIcon(parts.play, playing ? "pause" : "play", playing ? w.pause : w.play);
    parts.slider.max = length();
    parts.slider.value = step;
    parts.slider.style.setProperty("--part", `${length() ? (100 * step) / length() : 0}%`);
    parts.slider.setAttribute("aria-label", byTime ? w.byTime : w.position);
    const text = positionAt(step);
    marks.node.hidden = !byTime;
    if (byTime) marks.update();
    parts.slider.setAttribute("aria-valuetext", text);
    parts.where.setAttribute("aria-live", "off"); // the narration announces it
    parts.where.textContent = text;
    for (const way of parts.ways) way.setAttribute("aria-pressed", `${way.dataset.by === state.get("by")}`);
  };

  render();
  return { node, update, position: () => parts.where.textContent, positionAt };
}

function wayButton(way, name, state) {
  const press = () => state.set({ by: way, step: 0, playing: false });
  return element("button", { type: "button", "data-by": way, onclick: press }, name);
}
