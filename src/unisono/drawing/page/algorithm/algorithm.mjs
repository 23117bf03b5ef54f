// The page of one algorithm.

import { framesOfSteps } from "../common/animation.mjs";
import { clockTimes, prepareClock } from "../common/clock.mjs";
import { contentsPanel } from "../common/contents_panel.mjs";
import { element } from "../common/dom.mjs";
import { footer, header } from "../common/header.mjs";
import { watchKeys } from "../common/keyboard.mjs";
import { LAYOUTS } from "../common/layouts.mjs";
import { legendItems } from "../common/legend.mjs";
import { outlineSentences } from "../common/outline.mjs";
import { stepName } from "../common/phase_names.mjs";
import { fileName, picture } from "../common/picture.mjs";
import { playbackBar } from "../common/playback_bar.mjs";
import { Player } from "../common/player.mjs";
import { stepSentences } from "../common/sentences.mjs";
import { Stage } from "../common/stage.mjs";
import { lookOf, stageFigure } from "../common/stage_figure.mjs";
import { State, showLink } from "../common/state.mjs";
import { followTheme } from "../common/theme.mjs";
import { watchPointer } from "../common/tip.mjs";
import { viewAtLevel } from "../common/views.mjs";
import { browserLanguage, WORDS } from "../common/words.mjs";
import { codePanel } from "./code.mjs";
import { factsPanel } from "./facts.mjs";
import { Matrix } from "./matrix.mjs";
import { captionAt, storyPanel } from "./story.mjs";

/** Build the page; return what tests inspect. */
export function openAlgorithm(root, page, scene) {
  const layouts = scene.on_stage ? [...LAYOUTS, "matrix"] : ["matrix"];
  const state = new State(
    {
      lang: page.settings.language ?? browserLanguage(navigator.languages),
      layout: scene.on_stage ? scene.layout.best : "matrix",
      numbers: page.settings.numbers,
      step: scene.failure ? scene.levels : undefined, // a page about an error opens at the error
    },
    (name, value) => {
      if (name === "step") return value >= 0 && value <= scene.levels;
      if (name === "rank") return Number.isInteger(value) && value >= 0 && value < scene.size;
      if (name === "layout") return layouts.includes(value);
      return name !== "lang" || Object.hasOwn(WORDS, value);
    },
  );
  state.follow(location.hash);
  const words = () => WORDS[state.get("lang")];
  const player = new Player(state, () => scene.levels);
  const { figure, canvas, tip, legend } = stageFigure();
  const look = () => lookOf(state, words());

  const top = header(page, state, words, (language) => about(page, scene, language));
  const facts = factsPanel(scene, state, words);
  const foot = footer(state, words, ["keys", "numbersKey"]);
  const bar = playbackBar(scene, state, player, layouts, words);
  const code = codePanel(scene, state, words);
  const sentences = scene.on_stage ? stepSentences : outlineSentences;
  const story = storyPanel(scene, state, words, sentences);
  const contents = scene.on_stage ? contentsPanel(scene, state, words) : null;
  const main = element("div", { class: "main" }, figure, bar.node);
  const aside = element("aside", {}, story.node, code.node);
  const below = element("div", { class: "main" }, ...(contents ? [contents.node] : []), facts.node);
  root.append(top.node, element("div", { class: "columns narrated" }, main, aside, below), foot.node);

  const painters = {};
  const painter = () => {
    const Kind = state.get("layout") === "matrix" ? Matrix : Stage;
    painters[Kind.name] ??= new Kind(canvas, scene, look);
    return painters[Kind.name];
  };
  const viewAt = (position) => (scene.on_stage ? viewAtLevel(scene, position) : null);
  const draw = () => painter().draw(viewAt(state.get("step")), state.get("step"));
  const relabel = () => {
    canvas.setAttribute("aria-label", words().stageLabel(scene.label, words().ranks(scene.size)));
    legend.replaceChildren(...legendItems(scene, words(), state.get("layout"), painter().hasTinyCells()));
  };
  state.onChange((changed) => {
    if (changed.has("layout") || changed.has("lang")) {
      painter().resize();
      relabel();
    }
    if (changed.has("lang")) for (const panel of [top, facts, foot]) panel.update();
    for (const panel of [bar, code, story, contents]) panel?.update(changed);
    draw();
    if (!player.moving) showLink(state);
  });
  watchPointer(canvas, tip, painter, state, words, () => viewAtLevel(scene, Math.floor(state.get("step") + 1e-9)));
  new ResizeObserver(() => {
    painter().resize();
    relabel();
    draw();
  }).observe(canvas);
  followTheme(() => {
    painter().refresh();
    relabel();
    draw();
  });
  watchKeys(
    state,
    player,
    () => scene.size,
    () => scene.levels,
  );
  const clock = prepareClock(scene);
  /** A picture of the stage (picture.mjs) in this language and layout; `caption` may return the text of a position. */
  const pictureOf = ({ caption, ...options }) => {
    const [language, w] = [state.get("lang"), words()];
    const { title, chips } = about(page, scene, language);
    const texts = (position) => ({
      titles: [title, ...chips],
      where: stepName(scene, position, w, language),
      caption: caption?.(position) ?? captionAt(scene, position, language, w, sentences),
    });
    const Kind = state.get("layout") === "matrix" ? Matrix : Stage;
    return picture(new Kind(document.createElement("canvas"), scene, look), viewAt, texts, options);
  };
  return {
    state,
    player,
    scene,
    painter,
    picture: pictureOf,
    sheet: true,
    frames: () => framesOfSteps(scene.levels),
    fileName: (step) => fileName(scene.label, scene.size, step),
    finish: (alpha, perChunk) => clockTimes(clock, alpha, perChunk).finish,
  };
}

function about({ settings }, scene, language) {
  const w = WORDS[language];
  const { collective, algorithm } = scene;
  const name = `${collective.title} · ${algorithm.name.replaceAll("_", " ")}`;
  const chips = [w.ranks(scene.size)];
  if (scene.root !== null) chips.push(w.root(scene.root));
  for (const [name, value] of Object.entries(algorithm.options)) chips.push(`${name} = ${value}`);
  return {
    title: settings.title?.[language] ?? name,
    chips: settings.title ? [name, ...chips] : chips,
    story: (settings.story ?? collective.story)[language],
    idea: algorithm.idea[language] || algorithm.idea.en,
  };
}
