// The bar of the page that compares: buttons, slider, and the choice between steps and clock.

import { element } from "../common/dom.mjs";
import { fillBar, playbackButtons, positionSlider, setIcon } from "../common/playback_buttons.mjs";

export const RACE = 10; // positions from the start to the end of a race by the clock

/** Return the bar: { node, update }; a relay has no choices. */
export function compareBar(state, player, length, words, relay) {
  const node = element("section", { class: "controls" });
  const parts = {};

  const render = () => {
    const w = words();
    const buttons = playbackButtons(player, w, length);
    parts.play = buttons.play;
    parts.where = element("output", { class: "where", for: "position" });
    parts.slider = positionSlider(player, {});
    parts.ways = relay ? [] : [wayButton("step", w.byStep, state), wayButton("time", w.byTime, state)];
    const group = { class: "languages", role: "group", "aria-label": w.lockstep, hidden: relay };
    fillBar(node, { ...parts, buttons, choices: [element("div", group, ...parts.ways)] });
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
    const level = Math.ceil(step - 1e-9);
    const text = byTime ? `${Math.round((100 * step) / RACE)} %` : level ? w.stepOf(level, length()) : w.before;
    parts.slider.setAttribute("aria-valuetext", text);
    parts.where.textContent = text;
    for (const way of parts.ways) way.setAttribute("aria-pressed", `${way.dataset.by === state.get("by")}`);
  };

  render();
  return { node, update };
}

function wayButton(way, name, state) {
  const press = () => state.set({ by: way, step: 0, playing: false });
  return element("button", { type: "button", "data-by": way, onclick: press }, name);
}
