// A page on paper: black on white whatever the theme, and one sheet for one algorithm (print.css).

import { element } from "./dom.mjs";
import { chooseTheme, chosenTheme } from "./theme.mjs";
import { WORDS } from "./words.mjs";

const ROOM = { width: 800, height: 430 }; // of the stage on paper
const ROOM_OF_LANES = { width: 800, height: 300 }; // of one row of compared stages
const MOST_IN_A_ROW = 4;

/** Prepare a page for paper when it is printed, and take it back afterwards. What is on its stages is printed as a
 * picture, if `opened` can make one; `opened.sheet` says whether there is a single stage, which takes the room that the
 * texts leave. */
export function watchPrint(root, scenes, course, opened) {
  const { state } = opened;
  let theme = "auto";
  let added = [];
  addEventListener("beforeprint", () => {
    theme = chosenTheme();
    chooseTheme("light");
    for (const one of added) one.remove();
    added = [element("p", { class: "origin" }, ...origin(scenes, course, state))];
    root.append(added[0]);
    root.classList.toggle("sheet", Boolean(opened.sheet));
    const picture = opened.picture?.({ room: opened.sheet ? ROOM : lanesRoom(scenes.length), bare: true });
    if (!picture) return;
    const svg = new DOMParser().parseFromString(picture.svg(state.get("step")), "image/svg+xml");
    added.push(element("div", { class: "printed" }, document.importNode(svg.documentElement, true)));
    if (opened.sheet) root.querySelector(".stage").prepend(added[1]);
    else root.querySelector(".compare-lanes").before(added[1]);
  });
  addEventListener("afterprint", () => {
    for (const one of added) one.remove();
    added = [];
    chooseTheme(theme);
  });
}

function lanesRoom(count) {
  return { ...ROOM_OF_LANES, height: ROOM_OF_LANES.height * (count > MOST_IN_A_ROW ? 1.8 : 1) };
}

/** How to see this page again: the command that draws it, and its address if others can open it. */
function origin(scenes, course, state) {
  const w = WORDS[state.get("lang")];
  const step = Math.ceil(state.get("step") - 1e-9);
  const rank = state.get("rank");
  const view = `${step ? ` --step ${step}` : ""}${rank === null ? "" : ` --rank ${rank}`}`;
  const [scene] = scenes;
  const several = `unisono draw ${scenes.map(({ label }) => label.replace(/\(.*/, "")).join(" ")} -n ${scene.size}`;
  const alone = scenes.length > 1 ? several : scene.command && scene.command + view;
  const command = course ? `unisono draw --lesson ${course.name}` : alone;
  const address = location.protocol.startsWith("http") ? location.href.replace(/#.*$/, "") + state.link() : "";
  return [command ? element("code", {}, command) : w.madeBy, address ? ` · ${address}` : ""];
}
