// The bar below the stage: buttons, the slider with the phases above it, and the display options.

import { element } from "./dom.mjs";
import { meaningOf } from "./legend.mjs";
import { fitNames } from "./phase_names.mjs";
import { fillBar, playbackButtons, positionSlider, setIcon } from "./playback_buttons.mjs";
import { SPEEDS } from "./state.mjs";

/** Return the bar: { node, update }; `options` are the available layouts, empty if there is no stage. */
export function playbackBar(scene, state, player, options, words) {
  const node = element("section", { class: options.length ? "controls" : "controls brief" });
  const parts = {};

  const render = () => {
    const w = words();
    parts.slider = positionSlider(player, {
      max: scene.levels,
      "aria-label": w.position,
      onchange: () => player.go(Math.round(Number(parts.slider.value)), false),
    });
    const buttons = playbackButtons(player, w, () => scene.levels);
    parts.play = buttons.play;
    parts.where = element("output", { class: "where", for: "position", "aria-live": "off" });
    parts.phases = phaseBar(scene, player, w, state.get("lang"));
    const shownHow = choices(state, options, w, scene.collective);
    fillBar(node, { ...parts, buttons, above: [parts.phases.node], choices: shownHow });
    update(new Set(["step", "playing"]));
  };

  const update = (changed) => {
    if (changed.has("lang") || changed.has("layout") || changed.has("numbers") || changed.has("speed")) {
      const focused = node.contains(document.activeElement) ? document.activeElement.id : "";
      render();
      if (focused) document.getElementById(focused)?.focus();
      return;
    }
    const w = words();
    const step = state.get("step");
    const level = Math.ceil(step - 1e-9);
    parts.slider.value = step;
    parts.slider.style.setProperty("--part", `${scene.levels ? (100 * step) / scene.levels : 0}%`);
    const text = level === 0 ? w.before : w.stepOf(level, scene.levels);
    parts.slider.setAttribute("aria-valuetext", text);
    parts.where.textContent = text;
    const playing = state.get("playing");
    setIcon(parts.play, playing ? "pause" : "play", playing ? w.pause : w.play);
    parts.phases.mark(level);
  };

  render();
  return { node, update };
}

/** Buttons for the phases, each as wide as its part of the slider. */
function phaseBar(scene, player, w, language) {
  const node = element("div", { class: "phases", role: "group", "aria-label": w.phases });
  const buttons = scene.phases.map(({ words, first, last }) => {
    const made = element(
      "button",
      {
        type: "button",
        style: `flex: ${last - first + 1} 1 0`,
        title: `${words[language]}${language === "zh" ? "：" : ": "}${first}–${last}`,
        onclick: () => player.go(first, false),
      },
      element("span", {}, words[language]),
    );
    node.append(made);
    return { made, first, last, name: words[language] };
  });
  fitNames(node, buttons);
  const mark = (level) => {
    for (const { made, first, last } of buttons) {
      if (level >= first && level <= last) made.setAttribute("aria-current", "true");
      else made.removeAttribute("aria-current");
    }
  };
  return { node, mark };
}

/** The display options: the layout, the texts in cells of this collective, the speed. */
export function choices(state, options, w, collective) {
  const speed = select(
    "speed",
    w.speed,
    state.get("speed"),
    SPEEDS,
    (value) => `${value}×`,
    (value) => state.set({ speed: Number(value) }),
  );
  if (!options.length) return [speed];
  const layouts = select(
    "layout",
    w.layout,
    state.get("layout"),
    options,
    (name) => w.layouts[name],
    (layout) => state.set({ layout }),
  );
  const shown = select(
    "labels",
    w.labels,
    state.get("numbers") ? "numbers" : "sets",
    ["sets", "numbers"],
    (name) => (name === "numbers" ? w.numbers : w.sets[meaningOf(collective)]),
    (name) => state.set({ numbers: name === "numbers" }),
  );
  return [layouts, shown, speed];
}

/** A choice with its label. */
export function select(id, label, value, values, name, choose) {
  const made = element("select", { id, onchange: () => choose(made.value) });
  for (const one of values) made.append(element("option", { value: one, selected: one === value }, name(one)));
  return element("label", { class: "choice" }, element("span", {}, label), made);
}
