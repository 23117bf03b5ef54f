// The captions of a page of the course: one at a time, chosen by the position and the choices of the reader.

import { element, fill, withCode } from "../common/dom.mjs";

const NEARLY = 1e-6;

/** The number of the caption to show; -1 if none is about what the reader has chosen. A caption about a step is shown
 * while the messages of that step move, so a position between two steps counts as the later one. */
export function currentCaption(captions, state, bySteps) {
  const step = state.get("step");
  const position = bySteps ? Math.ceil(step - NEARLY) : step + NEARLY;
  return captions.findLastIndex(
    ({ at, view }) => at <= position && Object.entries(view).every(([name, value]) => state.get(name) === value),
  );
}

/** Return the strip with the caption: { node, update, current, forward, back }; `advance` and `retreat` are what its
 * buttons do. */
export function captionStrip(course, state, player, words, advance, retreat) {
  const { captions, by_steps: bySteps } = course;
  const shown = element("p", { class: "caption" }); // announced by frame.mjs;
  const sizers = element("div", { class: "sizers", "aria-hidden": "true" }); // all texts: the strip keeps its height
  const where = element("output", { class: "where", "aria-live": "off" });
  const buttons = element("div", { class: "caption-steps" });
  const node = element(
    "section",
    { class: "captions" },
    element("div", { class: "caption-room" }, shown, sizers),
    buttons,
  );
  const current = () => currentCaption(captions, state, bySteps);
  let said = "";

  const update = (changed) => {
    const language = state.get("lang");
    const w = words();
    if (!changed || changed.has("lang")) {
      node.setAttribute("aria-label", w.captions);
      fill(sizers, ...captions.map((one) => element("p", { class: "sizer" }, ...withCode(one.words[language]))));
      fill(
        buttons,
        button("caption-back", w.captionBack, "‹", retreat),
        where,
        button("caption-forward", w.captionForward, "›", advance),
      );
    }
    const number = current();
    const text = number < 0 ? w.elsewhere : captions[number].words[language];
    if (text !== said) {
      fill(shown, ...withCode(text));
      said = text;
    }
    where.textContent = `${number < 0 ? "–" : number + 1} / ${captions.length}`;
  };

  const go = (number) => {
    const { at, view } = captions[number];
    state.set({ ...view, playing: false });
    if (bySteps && at >= 1 && !player.still) state.set({ step: at - 1 });
    player.go(at);
  };
  const move = (by) => {
    const number = current() + by;
    if (number < 0 || number >= captions.length) return false;
    go(number);
    return true;
  };
  /** The caption of another position, with the same choices of the reader; null if there is none. */
  const textAt = (step) => {
    const there = { get: (name) => (name === "step" ? step : state.get(name)) };
    const number = currentCaption(captions, there, bySteps);
    return number < 0 ? null : captions[number].words[state.get("lang")].replaceAll("`", "");
  };
  update();
  return { node, update, current, textAt, forward: () => move(1), back: () => move(-1) };
}

function button(id, label, text, onclick) {
  return element("button", { type: "button", id, "aria-label": label, title: label, onclick }, text);
}
