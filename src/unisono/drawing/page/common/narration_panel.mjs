// The panel that describes the view in words; also announces it to screen readers when the position is at rest.

import { element, fill } from "./dom.mjs";

/** Return { node, update }; `headingOf(level)`, `paragraphsOf(level)` and `besides()` return the contents. */
export function narrationPanel(state, headingOf, paragraphsOf, besides = () => []) {
  const title = element("h2");
  const said = element("div", { class: "said" });
  const chosen = element("div", { class: "chosen" });
  const live = element("div", { class: "hidden", role: "status", "aria-live": "polite" });
  const node = element(
    "section",
    { class: "panel story" },
    element("div", { class: "story-head" }, title, chosen),
    said,
    live,
  );
  let shown = "";

  const update = () => {
    const level = Math.ceil(state.get("step") - 1e-9);
    const key = ["lang", "rank", "ranks"].map((name) => state.get(name)).join(" ");
    if (`${key} ${level}` !== shown) {
      shown = `${key} ${level}`;
      title.textContent = headingOf(level);
      fill(said, ...paragraphsOf(level));
      fill(chosen, ...besides());
    }
    if (!state.get("playing") && Number.isInteger(state.get("step"))) {
      const stop = state.get("lang") === "zh" ? "。" : ". ";
      const text = `${title.textContent}${stop}${said.textContent}`;
      if (live.textContent !== text) live.textContent = text;
    }
  };

  update();
  return { node, update };
}
