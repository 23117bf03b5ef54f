// The page of one algorithm.

import { codePanel } from "./code.mjs";
import { controls } from "./controls.mjs";
import { element } from "./dom.mjs";
import { expression } from "./expressions.mjs";
import { factsPanel } from "./facts.mjs";
import { footer, header } from "./head.mjs";
import { LAYOUTS } from "./layouts.mjs";
import { rankColour } from "./palette.mjs";
import { Player } from "./player.mjs";
import { Stage } from "./stage.mjs";
import { nextSpeed, State } from "./state.mjs";
import { contentsPanel, storyPanel } from "./story.mjs";
import { followTheme } from "./theme.mjs";
import { viewAtLevel } from "./views.mjs";
import { browserLanguage, WORDS } from "./words.mjs";

/** Build the page and return what a test may look at. */
export function openAlgorithm(root, page, scene) {
  const layouts = LAYOUTS;
  const state = new State(
    {
      lang: page.settings.language ?? browserLanguage(navigator.languages),
      layout: scene.layout.best,
      numbers: page.settings.numbers,
    },
    (name, value) =>
      ({
        step: () => value >= 0 && value <= scene.levels,
        rank: () => Number.isInteger(value) && value >= 0 && value < scene.size,
        layout: () => layouts.includes(value),
        lang: () => value in WORDS,
      })[name]?.() ?? true,
  );
  state.follow(location.hash);
  const words = () => WORDS[state.get("lang")];
  const player = new Player(state, () => scene.levels);
  const canvas = element("canvas", { id: "stage", role: "img", tabindex: "0" });
  const tip = element("div", { class: "tip", hidden: true });
  const legend = element("div", { class: "legend" });
  const look = () => ({
    layout: state.get("layout"),
    numbers: state.get("numbers"),
    rank: state.get("rank"),
    names: { rank: words().rank, node: words().node, row: (name) => words().row[name] },
  });

  const panels = [
    header(page, state, words, (language) => about(scene, language)),
    controls(scene, state, player, layouts, words),
    storyPanel(scene, state, words),
    factsPanel(scene, words),
    codePanel(scene, state, words),
    contentsPanel(scene, state, words),
    footer(state, words),
  ];
  const [top, bar, story, facts, code, contents, foot] = panels.map(({ node }) => node);
  root.append(
    top,
    element(
      "div",
      { class: "columns" },
      element(
        "div",
        { class: "main" },
        element("figure", { class: "stage" }, canvas, tip, legend),
        bar,
        story,
        contents,
      ),
      element("aside", {}, facts, code),
    ),
    foot,
  );

  const stage = new Stage(canvas, scene, look);
  const draw = () => stage.draw(viewAtLevel(scene, state.get("step")));
  const relabel = () => {
    canvas.setAttribute("aria-label", words().stageLabel(scene.label, words().ranks(scene.size)));
    legend.replaceChildren(...legendItems(scene, words(), stage.isCrowded()));
  };
  state.onChange((changed) => {
    if (changed.has("layout") || changed.has("lang")) {
      stage.refresh();
      relabel();
    }
    for (const panel of panels) if (touches(panel, panels, changed)) panel.update(changed);
    draw();
    if (!player.moving) remember(state);
  });
  relabel();
  draw();
  watch(canvas, tip, stage, scene, state, words);
  new ResizeObserver(() => {
    stage.resize();
    relabel();
    draw();
  }).observe(canvas);
  followTheme(() => {
    stage.refresh();
    draw();
  });
  addEventListener("hashchange", () => state.follow(location.hash));
  addEventListener("keydown", (event) => press(event, state, player, scene));
  return { state, player, scene, stage };
}

/** Header, facts and footer only know languages; everything else is about the moment. */
function touches(panel, panels, changed) {
  const still = [panels[0], panels[3], panels[6]].includes(panel);
  return still ? changed.has("lang") : true;
}

function about(scene, language) {
  const w = WORDS[language];
  const { collective, algorithm } = scene;
  const chips = [w.ranks(scene.size)];
  if (scene.root !== null) chips.push(w.root(scene.root));
  for (const [name, value] of Object.entries(algorithm.options)) chips.push(`${name} = ${value}`);
  return {
    title: `${collective.title} · ${algorithm.name.replaceAll("_", " ")}`,
    chips,
    story: collective.story[language],
    idea: algorithm.idea[language] || algorithm.idea.en,
  };
}

function legendItems(scene, w, crowded) {
  const item = (kind, text) => element("span", { class: "key" }, element("i", { class: kind, "aria-hidden": "true" }), text);
  const colours = element("i", { class: "swatches", "aria-hidden": "true" });
  for (let rank = 0; rank < Math.min(scene.size, 8); rank++) {
    const swatch = element("b");
    swatch.style.background = rankColour(rank, scene.size);
    colours.append(swatch);
  }
  const { collective } = scene;
  const meaning = crowded ? w.legendHeat : !collective.carries_data ? w.legendHeard : collective.reduces ? w.legendSegments : w.legendWhose;
  const items = [];
  const messages = scene.messages;
  if (messages.some(({ reduce }) => reduce)) items.push(item("reduce", w.legendReduce));
  if (messages.some(({ reduce }) => !reduce)) items.push(item("copy", w.legendCopy));
  items.push(element("span", { class: "key" }, colours, meaning), item("done", w.legendDone));
  return items;
}

/** The link to this view in the address bar; in a frame inside a notebook there may be none. */
function remember(state) {
  try {
    history.replaceState(null, "", state.link());
  } catch {
    // nothing is lost: the button below the page still has the link
  }
}

/** Point at a chunk to read what it holds; press a card to select its rank. */
function watch(canvas, tip, stage, scene, state, words) {
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const hide = () => {
    tip.hidden = true;
  };
  canvas.addEventListener("pointermove", (event) => {
    const found = stage.at(place(event));
    canvas.style.cursor = found ? "pointer" : "";
    if (found === null || found.slot === null) {
      hide();
      return;
    }
    const view = viewAtLevel(scene, Math.floor(state.get("step") + 1e-9));
    const cell = scene.rows[found.rank][view.states[found.rank]][found.slot];
    tip.replaceChildren(...tipLines(scene, found, cell, words()));
    tip.hidden = false;
    const middle = stage.middle(found.rank, found.slot);
    const half = tip.offsetWidth / 2;
    tip.style.left = `${Math.max(half + 4, Math.min(canvas.clientWidth - half - 4, middle.x))}px`;
    const above = middle.y - tip.offsetHeight - 14;
    tip.style.top = `${above > 0 ? above : middle.y + 16}px`;
  });
  canvas.addEventListener("pointerleave", hide);
  canvas.addEventListener("click", (event) => {
    const found = stage.at(place(event));
    state.set({ rank: found && found.rank !== state.get("rank") ? found.rank : null });
  });
}

function tipLines(scene, { rank, slot }, cell, w) {
  const part = scene.parts.find(({ first, count }) => slot >= first && slot < first + count);
  const where = element("small", {}, `${w.rank(rank)} · ${w.slot(part.name, slot - part.first)}`);
  if (!cell) return [where, element("div", {}, w.nothing)];
  const text = expression(scene, cell, slot);
  const value = scene.collective.carries_data ? ` = ${cell.value}` : "";
  return [where, element("div", {}, `${text}${value}`)];
}

function press(event, state, player, scene) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { target } = event;
  const typing = target instanceof HTMLSelectElement || (target instanceof HTMLInputElement && target.type !== "range");
  if (typing) return;
  const onButton = target instanceof HTMLButtonElement || target instanceof HTMLElement && target.tagName === "SUMMARY";
  const rank = state.get("rank");
  const actions = {
    " ": onButton ? null : () => player.toggle(),
    ArrowRight: () => player.forward(),
    ArrowLeft: () => player.back(),
    ArrowDown: () => state.set({ rank: rank === null ? 0 : (rank + 1) % scene.size }),
    ArrowUp: () => state.set({ rank: rank === null ? scene.size - 1 : (rank + scene.size - 1) % scene.size }),
    Escape: () => state.set({ rank: null }),
    Home: () => player.go(0, false),
    End: () => player.go(scene.levels, false),
    n: () => state.set({ numbers: !state.get("numbers") }),
    "+": () => state.set({ speed: nextSpeed(state.get("speed"), 1) }),
    "-": () => state.set({ speed: nextSpeed(state.get("speed"), -1) }),
  };
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}
