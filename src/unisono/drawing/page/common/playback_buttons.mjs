// The controls of a player: five round buttons with icons, and a slider.

import { element, fill } from "./dom.mjs";

const ICONS = {
  first: "M6 5v14M19 5l-9 7 9 7z",
  back: "M15 5l-9 7 9 7z",
  play: "M7 4l13 8-13 8z",
  pause: "M7 4h4v16H7zM14 4h4v16h-4z",
  forward: "M9 5l9 7-9 7z",
  last: "M18 5v14M5 5l9 7-9 7z",
};

/** Return { node, play }: first, back, play, forward, last; `length` returns the number of positions. */
export function playbackButtons(player, w, length) {
  const play = button("play", w.play, () => player.toggle(), "primary");
  const node = element(
    "div",
    { class: "playback", role: "group" },
    button("first", w.first, () => player.go(0, false)),
    button("back", w.back, () => player.back()),
    play,
    button("forward", w.forward, () => player.forward()),
    button("last", w.last, () => player.go(length(), false)),
  );
  return { node, play };
}

/** The position slider, with properties that are specific to this page. */
export function positionSlider(player, special) {
  const made = element("input", {
    type: "range",
    id: "position",
    min: 0,
    step: "any",
    oninput: () => player.go(Number(made.value), false),
    ...special,
  });
  return made;
}

/** Fill the bar of a player: its buttons, the row above its slider, the slider, the position in words, and choices. */
export function fillBar(bar, { buttons, above = [], slider, where, choices }) {
  fill(
    bar,
    buttons.node,
    element("div", { class: "scrubber" }, ...above, slider),
    where,
    element("div", { class: "choices" }, ...choices, element("span", { class: "savers" })), // export.mjs
  );
}

/** A round button with an icon. */
function button(icon, label, press, kind = "") {
  const made = element("button", { type: "button", class: `round ${kind}`, id: `button-${icon}`, onclick: press });
  setIcon(made, icon, label);
  return made;
}

/** Replace the icon of a button. */
export function setIcon(made, icon, label) {
  if (made.dataset.icon === icon && made.getAttribute("aria-label") === label) return;
  made.dataset.icon = icon;
  made.setAttribute("aria-label", label);
  made.title = label;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[icon]);
  svg.append(path);
  fill(made, svg);
}
