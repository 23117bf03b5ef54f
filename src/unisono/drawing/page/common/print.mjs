// A page on paper: black on white whatever the theme, and one sheet for one algorithm (print.css).

import { element } from "./dom.mjs";
import { chooseTheme, chosenTheme } from "./theme.mjs";
import { WORDS } from "./words.mjs";

const ROOM = { width: 800, height: 430 }; // of the stage on paper

/** Prepare a page for paper when it is printed, and take it back afterwards. `opened.sheet` says whether its stage is
 * printed as a picture, so that the page fits on one sheet. */
export function watchPrint(root, scene, course, opened) {
  const { state } = opened;
  let theme = "auto";
  let added = [];
  addEventListener("beforeprint", () => {
    theme = chosenTheme();
    chooseTheme("light");
    for (const one of added) one.remove();
    added = [element("p", { class: "origin" }, ...origin(scene, course, state))];
    root.append(added[0]);
    root.classList.toggle("sheet", Boolean(opened.sheet));
    const picture = opened.sheet ? opened.picture({ room: ROOM, bare: true }) : null;
    if (!picture) return;
    const svg = new DOMParser().parseFromString(picture.svg(state.get("step")), "image/svg+xml");
    added.push(element("div", { class: "printed" }, document.importNode(svg.documentElement, true)));
    root.querySelector(".stage").prepend(added[1]);
  });
  addEventListener("afterprint", () => {
    for (const one of added) one.remove();
    added = [];
    chooseTheme(theme);
  });
}

/** How to see this page again: the command that draws it, and its address if others can open it. */
function origin(scene, course, state) {
  const w = WORDS[state.get("lang")];
  const step = Math.ceil(state.get("step") - 1e-9);
  const rank = state.get("rank");
  const view = `${step ? ` --step ${step}` : ""}${rank === null ? "" : ` --rank ${rank}`}`;
  const command = course ? `unisono draw --lesson ${course.name}` : scene.command && scene.command + view;
  const address = location.protocol.startsWith("http") ? location.href.replace(/#.*$/, "") + state.link() : "";
  return [command ? element("code", {}, command) : w.madeBy, address ? ` · ${address}` : ""];
}
