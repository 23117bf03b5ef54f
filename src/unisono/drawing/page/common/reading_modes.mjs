// The reading modes of a page: the whole page; "present" for a lecture, with the stage, its bar and one caption on the
// full screen in large type; "embed" for slides and notebooks, with the same three parts in normal type. The style sheet
// (reading_modes.css) selects the parts by data-mode of the document.

import { element } from "./dom.mjs";
import { WORDS } from "./words.mjs";

/** Let the reader change the mode of an open page: with a button, with keys, or with the link that opens it. `opened` has
 * its state and its player, and later its place in the course. */
export function offerModes(root, opened) {
  if (!root.querySelector(".controls")) return; // a page of charts alone has nothing to present
  const { state, player } = opened;
  const html = document.documentElement;
  const words = () => WORDS[state.get("lang")];
  const leave = element("button", { type: "button", id: "leave-mode", onclick: () => end() });
  let before = null; // the mode to return to from a presentation
  let awaited = false; // the full screen is requested with the next gesture of the reader

  if (state.get("mode") === null && html.dataset.mode) state.set({ mode: html.dataset.mode });
  awaited = state.get("mode") === "present";
  root.append(leave);

  const setMode = (mode) => {
    state.set({ mode });
    if (mode === "present") requestFullScreen();
    else if (document.fullscreenElement) document.exitFullscreen();
  };
  const end = () => setMode(state.get("mode") === "present" ? before : null);
  const toggle = () => {
    if (state.get("mode") === "present") return end();
    before = state.get("mode");
    return setMode("present");
  };

  const show = () => {
    const mode = state.get("mode");
    if (mode) html.dataset.mode = mode;
    else delete html.dataset.mode;
    const w = words();
    const label = mode === "embed" ? w.wholePage : w.leavePresentation;
    leave.textContent = mode === "embed" ? "⤢" : "×";
    leave.title = label;
    leave.setAttribute("aria-label", label);
  };
  /** Put the button and its key into the header and the footer, which are filled again in another language. */
  const place = () => {
    const w = words();
    const start = { type: "button", id: "present", class: "text", title: `${w.present} (f)`, onclick: toggle };
    root.querySelector(".switches")?.prepend(element("button", start, w.present));
    const keys = root.querySelector(".foot .keys");
    if (keys) keys.textContent += ` ${w.presentKey}`;
  };

  const present = () => state.get("mode") === "present";
  const walk = (name) => () => opened.course?.[name]() ?? player[name]();
  // A presenter's remote control sends Page Up and Page Down.
  const keys = { Escape: end, PageDown: walk("forward"), PageUp: walk("back") };
  const gesture = (event) => {
    if (!awaited || event.key === "Escape") return;
    awaited = false;
    if (present()) requestFullScreen();
  };
  addEventListener("pointerdown", gesture, true);
  addEventListener(
    "keydown",
    (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement) return;
      const action = event.key === "f" ? toggle : present() ? keys[event.key] : null;
      if (event.key !== "f") gesture(event);
      if (!action) return;
      event.preventDefault();
      event.stopPropagation(); // Escape clears the selected rank elsewhere
      action();
    },
    true,
  );
  // In full screen, the browser takes Escape and ends the full screen itself.
  addEventListener("fullscreenchange", () => {
    if (!document.fullscreenElement && present()) state.set({ mode: before });
  });
  state.onChange((changed) => {
    if (changed.has("mode") || changed.has("lang")) show();
    if (changed.has("lang")) place();
  });
  place();
  show();
}

/** A browser may refuse the full screen, such as in a frame; the page is presented all the same. */
function requestFullScreen() {
  document.documentElement.requestFullscreen?.().catch(() => {});
}
