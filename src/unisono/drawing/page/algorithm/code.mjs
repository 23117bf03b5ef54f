// The program beside the stage, with the line that yields the current step of the selected rank marked.

import { element, fill } from "../common/dom.mjs";
import { stepsBefore } from "../common/replay.mjs";

const TOKENS =
  /(#.*$)|("""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|\b(def|for|in|if|elif|else|while|yield|from|return|and|or|not|lambda|import|class|break|continue|pass|is|None|True|False)\b|\b(send|recv|recv_reduce|copy|combine)\b(?=\()|(@[\w.]+)|\b([0-9]+)\b/gm;
const KINDS = ["comment", "string", "keyword", "op", "decorator", "number"];

/** Return the panel: { node, update }. */
export function codePanel(scene, state, words) {
  const node = element("section", { class: "panel code" });
  const blocks = scene.code.sources.map(block);
  let shown = "";

  const update = () => {
    const w = words();
    const level = Math.ceil(state.get("step") - 1e-9);
    const rank = state.get("rank") ?? firstBusyRank(scene, level);
    const at = scene.steps[rank] ? stepsBefore(scene.steps[rank], level) : 0;
    const step = scene.steps[rank]?.[at];
    const active = level > 0 && step?.level === level ? step : null;
    const key = JSON.stringify([state.get("lang"), rank, active ? at : -1]);
    if (key === shown) return;
    shown = key;
    const title = element("h2", {}, scene.size > 1 ? w.codeOf(rank) : w.code);
    if (scene.code.text) {
      fill(
        node,
        title,
        element("p", { class: "note" }, w.noCode),
        textBlock(scene.code.text[rank], active ? at : -1),
      );
      return;
    }
    const stack = active && active.stack >= 0 ? scene.code.stacks[active.stack] : [];
    const order = [...stack.map(([source]) => source), ...blocks.keys()];
    fill(node, title, ...[...new Set(order)].map((source) => blocks[source].node));
    for (const made of blocks) made.mark([], false, "");
    for (const [source] of stack) {
      const entries = stack.filter(([other]) => other === source);
      const innermost = stack[stack.length - 1][0] === source;
      blocks[source].mark(
        entries.map(([, line]) => line),
        innermost,
        entries.some(([, , reverse]) => reverse) ? w.backwards : "",
      );
    }
    scrollToLine(node);
  };

  node.hidden = !scene.code.text && !blocks.length;
  update();
  return { node, update };
}

/** The first rank that does something on a level: its program is shown if no rank is selected. */
function firstBusyRank(scene, level) {
  const found = scene.steps.findIndex((steps) => steps[stepsBefore(steps, level)]?.level === level);
  return Math.max(0, found);
}

function block(source) {
  const texts = source.text.split("\n");
  const lines = highlighted(source.text).map((pieces, at) => {
    const indent = texts[at].length - texts[at].trimStart().length;
    return element("span", { class: "code-line", style: `--indent: ${indent}ch` }, ...pieces);
  });
  const tag = element("span", { class: "tag" });
  const pre = element("pre", { tabindex: "0", "aria-label": source.name }, element("code", {}, ...lines));
  const node = element(
    "div",
    { class: "source" },
    element("div", { class: "source-name" }, element("span", {}, `${source.file} · ${source.name}`), tag),
    pre,
  );
  const mark = (at, innermost, note) => {
    node.classList.toggle("active", at.length > 0);
    tag.textContent = note;
    lines.forEach((line, index) => {
      line.classList.toggle("here", at.includes(index) && innermost);
      line.classList.toggle("on-the-way", at.includes(index) && !innermost);
    });
  };
  return { node, mark };
}

function textBlock(lines, at) {
  const shown = lines
    .slice(1)
    .map((line, index) =>
      element("span", { class: index === at ? "code-line here" : "code-line" }, `${line.trim()}\n`),
    );
  return element("div", { class: "source active" }, element("pre", { tabindex: "0" }, element("code", {}, ...shown)));
}

/** The lines of a Python text, each as a list of pieces with a class. */
function highlighted(text) {
  const pieces = [];
  let last = 0;
  for (const match of text.matchAll(TOKENS)) {
    if (match.index > last) pieces.push(["", text.slice(last, match.index)]);
    pieces.push([KINDS[match.slice(1).findIndex((group) => group !== undefined)], match[0]]);
    last = match.index + match[0].length;
  }
  pieces.push(["", text.slice(last)]);
  const lines = [[]];
  for (const [kind, piece] of pieces) {
    piece.split("\n").forEach((part, at) => {
      if (at > 0) lines.push([]);
      if (part) lines[lines.length - 1].push(kind ? element("span", { class: kind }, part) : part);
    });
  }
  for (const line of lines) line.push("\n");
  return lines;
}

function scrollToLine(node) {
  const here = node.querySelector(".here");
  if (!here) return;
  const box = here.closest("pre");
  const below = here.offsetTop + here.offsetHeight - box.offsetTop - box.clientHeight;
  if (below > 0 || here.offsetTop - box.offsetTop < box.scrollTop) box.scrollTop = Math.max(0, below + 24);
}
