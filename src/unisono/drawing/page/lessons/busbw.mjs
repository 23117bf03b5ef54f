// The page about bus bandwidth: counts the chunks that the ring sends, and derives the factor from them.

import { element, fill } from "../common/dom.mjs";
import { showError } from "../common/error_page.mjs";
import { footer, header } from "../common/header.mjs";
import { watchKeys } from "../common/keyboard.mjs";
import { legendItems } from "../common/legend.mjs";
import { narrationPanel } from "../common/narration_panel.mjs";
import { playbackBar } from "../common/playback_bar.mjs";
import { Player } from "../common/player.mjs";
import { offerModes } from "../common/reading_modes.mjs";
import { replayed } from "../common/replay.mjs";
import { Stage } from "../common/stage.mjs";
import { State, showLink } from "../common/state.mjs";
import { followTheme } from "../common/theme.mjs";
import { unpack } from "../common/unpack.mjs";
import { viewAtLevel } from "../common/views.mjs";
import { browserLanguage, WORDS } from "../common/words.mjs";
import { frameCourse } from "../course/frame.mjs";
import { chunksSent } from "./busbw_model.mjs";
import {
  BYTES,
  curvePanel,
  derivationPanel,
  examplePanel,
  factorsPanel,
  LINK,
  numbersPanel,
} from "./busbw_panels.mjs";
import { BUSBW_WORDS } from "./busbw_words.mjs";

const root = document.getElementById("page");
const NUMBERS = ["ranks", "bytes", "link"];

/** Build the page; return what tests inspect. */
async function open(page) {
  const columns = await Promise.all(page.rings.map(({ packed }) => unpack(packed)));
  const sizes = page.rings.map(({ size }) => size);
  const played = new Map();
  const sceneOf = (size) => {
    const at = sizes.indexOf(size);
    if (!played.has(size)) played.set(size, replayed(page.rings[at], columns[at]));
    return played.get(size);
  };
  const state = new State(
    {
      lang: page.settings.language ?? browserLanguage(navigator.languages),
      ranks: 4,
      bytes: 2 ** 30,
      link: 50,
    },
    (name, value) => {
      if (name === "step") return value >= 0 && value <= page.rings[page.rings.length - 1].levels;
      if (name === "ranks") return sizes.includes(value);
      if (name === "link") return LINK.values.includes(value);
      if (name === "bytes") return value >= BYTES.low && value <= BYTES.high;
      return name !== "lang" || Object.hasOwn(WORDS, value);
    },
  );
  state.follow(location.hash);
  const words = () => WORDS[state.get("lang")];
  const busWords = () => BUSBW_WORDS[state.get("lang")];
  const scene = () => sceneOf(state.get("ranks"));
  const player = new Player(state, () => scene().levels);
  if (state.get("step") > scene().levels) state.set({ step: 0 });

  const top = header(page, state, words, (language) => ({
    title: page.title[language],
    chips: [],
    story: page.words[language],
    idea: BUSBW_WORDS[language].idea,
  }));
  const ring = ringFigure(scene, state, words, busWords);
  const bar = element("div");
  let buttons = null;
  const equip = () => {
    buttons = playbackBar(scene(), state, player, [], words);
    fill(bar, buttons.node);
  };
  equip();
  const told = narrationPanel(
    state,
    (level) => headingOf(scene(), level, words(), state.get("lang")),
    (level) => paragraphsOf(scene(), level, busWords()),
  );
  told.node.classList.add("short");
  const derivation = derivationPanel(state, busWords);
  const numbers = numbersPanel(state, busWords, sizes);
  const curve = curvePanel(state, busWords, sizes[sizes.length - 1]);
  const example = examplePanel(state, busWords);
  const factors = factorsPanel(page, state, busWords);
  const foot = footer(state, words);
  root.append(
    top.node,
    element(
      "div",
      { class: "columns narrated" },
      element("div", { class: "main" }, ring.node, bar),
      element("aside", {}, told.node, numbers.node, curve.node, example.node),
      element("div", { class: "main" }, derivation.node, factors.node),
    ),
    foot.node,
  );

  state.onChange((changed) => {
    const spoken = changed.has("lang");
    if (changed.has("ranks")) {
      // A link may give both; moving the slider starts again.
      if (!changed.has("step") || state.get("step") > scene().levels) state.set({ step: 0, playing: false });
      equip();
      ring.equip();
    } else buttons.update(changed);
    if (spoken) for (const panel of [top, foot, numbers]) panel.update();
    if (spoken || NUMBERS.some((name) => changed.has(name))) {
      numbers.show();
      for (const panel of [derivation, curve, example, factors]) panel.update();
    }
    told.update();
    ring.update(spoken);
    if (!player.moving) showLink(state);
  });
  followTheme(() => ring.refresh());
  new ResizeObserver(() => ring.resize()).observe(ring.node);
  watchKeys(
    state,
    player,
    () => scene().size,
    () => scene().levels,
  );
  return {
    state,
    player,
    scene,
    sent: (rank) => chunksSent(scene().columns, Math.ceil(state.get("step") - 1e-9), rank),
  };
}

function headingOf(scene, level, w, language) {
  const phase = scene.phases.find(({ first, last }) => level >= first && level <= last);
  return level ? `${w.stepOf(level, scene.levels)} · ${phase.words[language]}` : w.before;
}

/** The counts at a step. */
function paragraphsOf(scene, level, w) {
  const p = scene.size;
  if (level === 0) return [element("p", {}, w.before(p))];
  const sent = chunksSent(scene.columns, level, 0);
  const [scatter] = scene.phases;
  const made = [element("p", {}, level <= scatter.last ? w.scattering(sent, p) : w.gathering(sent, p))];
  if (level === scatter.last) made.push(element("p", { class: "lead" }, w.half(p)));
  if (level === scene.levels) made.push(element("p", { class: "finished" }, w.end(p, scene.facts.bytes.text)));
  return made;
}

/** The ring itself, and a counter of chunks. */
function ringFigure(scene, state, words, busWords) {
  const canvas = element("canvas", { id: "stage", role: "img" });
  const legend = element("div", { class: "legend" });
  const counter = element("div", { class: "counter" });
  const node = element("figure", { class: "stage counting" }, canvas, counter, legend);
  let stage = null;
  const look = () => ({
    layout: "ring",
    numbers: false,
    rank: state.get("rank"),
    names: { rank: words().rank, node: words().node, row: (name) => words().row[name], ranks: words().manyRanks },
  });
  const relabel = () => {
    canvas.setAttribute("aria-label", words().stageLabel(scene().label, words().ranks(scene().size)));
    fill(legend, ...legendItems(scene(), words(), "ring", stage?.room ? stage.hasTinyCells() : false));
  };
  const draw = () => {
    stage?.draw(viewAtLevel(scene(), state.get("step")));
    const level = Math.floor(state.get("step") + 1e-9);
    const [sent, all] = [level, scene().levels].map((at) => chunksSent(scene().columns, at, 0));
    const dots = Array.from({ length: all }, (_, at) =>
      element("i", { class: `chunk ${at < sent ? "sent" : ""}${at === all / 2 ? " second" : ""}` }),
    );
    fill(
      counter,
      element("span", { class: "dots", "aria-hidden": "true" }, ...dots),
      element("span", { "data-fact": "chunks" }, busWords().sentBy(sent, all)),
    );
  };
  const equip = () => {
    stage = canvas.clientWidth ? new Stage(canvas, scene(), look) : null;
    relabel();
    draw();
  };
  return {
    node,
    equip,
    update: (spoken) => {
      if (spoken) {
        stage?.refresh();
        relabel();
      }
      draw();
    },
    resize: () => {
      if (stage) stage.resize();
      else equip();
      relabel();
      draw();
    },
    refresh: () => {
      stage?.refresh();
      if (stage) draw();
    },
  };
}

try {
  const page = JSON.parse(document.getElementById("data").textContent);
  globalThis.unisono = await open(page);
  offerModes(root, globalThis.unisono);
  frameCourse(root, page, globalThis.unisono);
  document.documentElement.dataset.ready = "true";
} catch (error) {
  showError(root, error);
  throw error;
}
