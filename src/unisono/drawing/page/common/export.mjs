// Saves the step that is shown as an SVG file, and the animation as a GIF file, both in the theme of the page. Nothing
// leaves the browser: the page paints them itself.

import { animate } from "./animation.mjs";
import { element } from "./dom.mjs";
import { WORDS } from "./words.mjs";

const PIECE = 1 << 15; // bytes that are converted to text at once

/** Let the reader save pictures of an open page, with buttons in its bar and with keys.
 *
 * `opened` has picture(options), which may return null, frames(), fileName() and, if it belongs to the course,
 * captionAt(position). */
export function offerExports(root, opened) {
  if (!opened.picture) return;
  const { state } = opened;
  const words = () => WORDS[state.get("lang")];
  let saving = null; // the part of the animation that is done

  const step = () => download(`${opened.fileName(state.get("step"))}.svg`, "image/svg+xml", svgOf(opened));
  const animation = async () => {
    if (saving !== null) return;
    const told = (part) => {
      saving = part;
      tell();
    };
    told(0);
    try {
      download(`${opened.fileName(null)}.gif`, "image/gif", await gifOf(opened, told));
    } finally {
      saving = null;
      tell();
    }
  };
  const tell = () => {
    const button = root.querySelector("#save-gif");
    button?.replaceChildren(saving === null ? "GIF" : `${Math.floor(100 * saving)} %`);
    button?.toggleAttribute("disabled", saving !== null);
  };
  const button = (id, text, label, key, onclick) => {
    const said = `${label} (${key})`;
    return element("button", { type: "button", id, class: "save", title: said, "aria-label": said, onclick }, text);
  };
  /** Put the buttons into the bar and the keys into the footer, which are filled again. */
  const place = () => {
    const w = words();
    const room = root.querySelector(".savers");
    if (!room || room.childElementCount) return;
    room.replaceChildren(
      element("span", {}, w.save),
      button("save-svg", "SVG", w.saveStep, "s", step),
      button("save-gif", "GIF", w.saveAnimation, "g", animation),
    );
    tell();
  };
  const tellKeys = () => {
    const keys = root.querySelector(".foot .keys");
    if (keys) keys.textContent += ` ${words().saveKeys}`;
  };
  const actions = { s: step, g: animation };
  addEventListener("keydown", ({ key, target, ctrlKey, metaKey, altKey }) => {
    const typing =
      target instanceof HTMLSelectElement || (target instanceof HTMLInputElement && target.id !== "position");
    if (!ctrlKey && !metaKey && !altKey && !typing) actions[key]?.();
  });
  state.onChange((changed) => {
    place();
    if (changed.has("lang")) tellKeys();
  });
  place();
  tellKeys();
}

/** Replace the page by the bytes of a picture of it, in base64, for `Drawing.svg` and `Drawing.gif`: empty if it has
 * none. */
export async function writeOut(kind, opened) {
  const made = !opened.picture
    ? new Uint8Array()
    : kind === "gif"
      ? await gifOf(opened)
      : new TextEncoder().encode(svgOf(opened));
  let text = "";
  for (let at = 0; at < made.length; at += PIECE) text += String.fromCharCode(...made.subarray(at, at + PIECE));
  document.body.replaceChildren(element("pre", { id: "picture" }, btoa(text)));
}

function options(opened) {
  return { theme: document.documentElement.dataset.theme, caption: opened.captionAt };
}

function svgOf(opened) {
  return opened.picture(options(opened)).svg(opened.state.get("step"));
}

function gifOf(opened, told) {
  return animate(opened.picture(options(opened)), opened.frames(), told);
}

function download(name, type, content) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
