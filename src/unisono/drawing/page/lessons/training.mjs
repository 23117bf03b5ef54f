// The page of a training step: reads the recorded data and builds the elements.

import { element } from "../common/dom.mjs";
import { showError } from "../common/error_page.mjs";
import { footer, header } from "../common/header.mjs";
import { watchKeys } from "../common/keyboard.mjs";
import { narrationPanel } from "../common/narration_panel.mjs";
import { playbackBar } from "../common/playback_bar.mjs";
import { Player } from "../common/player.mjs";
import { offerModes } from "../common/reading_modes.mjs";
import { notchOf } from "../common/sliders.mjs";
import { State, showLink } from "../common/state.mjs";
import { followTheme } from "../common/theme.mjs";
import { exactBytes } from "../common/units.mjs";
import { browserLanguage, WORDS } from "../common/words.mjs";
import { frameCourse } from "../course/frame.mjs";
import { rowsPanel } from "./experts_panel.mjs";
import { whyPanel } from "./tensor_picture.mjs";
import { countParameters, memoryAt, mostUpTo, PRECISIONS, phasesOf, sentUpTo } from "./training_model.mjs";
import { momentSentences } from "./training_narration.mjs";
import { trainingStage } from "./training_stage.mjs";
import { allOnOneOf, timelinePanel } from "./training_timeline.mjs";
import { logPanel, recordedPanel, SLIDERS, yourNumbers, yoursPanel } from "./training_totals.mjs";
import { TRAINING_WORDS } from "./training_words.mjs";

const root = document.getElementById("page");

/** Build the page; return what tests inspect. */
function open(page) {
  const data = page.training;
  const levels = data.moments.length - 1;
  const state = new State(
    {
      lang: page.settings.language ?? browserLanguage(navigator.languages),
      ranks: 8,
      parameters: 7e9,
      tokens: 8192,
      depth: 32,
      precision: "mixed",
    },
    (name, value) => {
      if (name === "step") return value >= 0 && value <= levels;
      if (name === "rank") return Number.isInteger(value) && value >= 0 && value < data.ranks;
      if (name === "precision") return value in PRECISIONS;
      const slider = SLIDERS.find((one) => one.name === name);
      if (slider) return isOnSlider(slider, value);
      return name !== "lang" || Object.hasOwn(WORDS, value);
    },
  );
  state.follow(location.hash);
  const words = () => WORDS[state.get("lang")];
  const trainingWords = () => TRAINING_WORDS[state.get("lang")];
  const player = new Player(state, () => levels);
  const allOnOne = allOnOneOf(countParameters(data));
  const most = Math.max(allOnOne, mostUpTo(data, levels, 0));
  const both = (phase) => ({ en: TRAINING_WORDS.en.phase[phase], zh: TRAINING_WORDS.zh.phase[phase] });
  const scene = { levels, phases: phasesOf(data, both) };

  const top = header(page, state, words, (language) => ({
    title: page.title[language],
    chips: [WORDS[language].ranks(data.ranks), TRAINING_WORDS[language].data],
    story: page.words[language],
    idea: TRAINING_WORDS[language].recorded(data.ranks),
  }));
  const stage = trainingStage(data, state, words, trainingWords, most);
  const bar = playbackBar(scene, state, player, [], words);
  const recorded = recordedPanel(data, trainingWords);
  const told = narrationPanel(state, headingOf, paragraphsOf);
  told.node.classList.add("short");
  const timeline = timelinePanel(data, state, player, trainingWords, allOnOne);
  const why = { tensor_parallel: whyPanel, experts: rowsPanel }[data.strategy]?.(data, state, trainingWords) ?? null;
  const log = logPanel(data, page, state, player, trainingWords);
  const yours = yoursPanel(data, state, trainingWords);
  const foot = footer(state, words);
  const main = element("div", { class: "main" }, stage.node, bar.node);
  const below = element("div", { class: "main" }, timeline.node, ...(why ? [why.node] : []), yours.node);
  const aside = element("aside", {}, told.node, log.node, recorded.node);
  root.append(top.node, element("div", { class: "columns narrated" }, main, aside, below), foot.node);

  function headingOf(level) {
    const phase = scene.phases.find(({ first, last }) => level >= first && level <= last);
    return level ? `${words().stepOf(level, levels)} · ${phase.words[state.get("lang")]}` : words().before;
  }

  function paragraphsOf(level) {
    const [first, ...rest] = momentSentences(data, level, state.get("lang"));
    const made = [
      element("p", { class: "moment" }, first),
      ...rest.map((text) => element("p", { class: "lead" }, text)),
    ];
    if (level === levels) {
      const texts = [recorded.sent, recorded.held, allOnOne].map(exactBytes);
      made.push(element("p", { class: "finished" }, trainingWords().total(...texts)));
    }
    return made;
  }

  let shown = "";
  state.onChange((changed) => {
    const spoken = changed.has("lang");
    if (spoken) {
      for (const panel of [top, foot, recorded, yours]) panel.update();
      for (const panel of [stage, log, timeline]) panel.render();
    }
    if (SLIDERS.some(({ name }) => changed.has(name)) || changed.has("precision")) yours.show();
    const now = ["rank", "lang"].map((name) => state.get(name)).join(" ") + Math.ceil(state.get("step") - 1e-9);
    if (now !== shown) for (const panel of [stage, log, timeline, why]) panel?.update();
    shown = now;
    if (changed.has("rank")) timeline.render();
    told.update();
    bar.update(changed);
    if (!player.moving) showLink(state);
  });
  followTheme(() => {});
  log.render();
  for (const panel of [recorded, yours, why]) panel?.update();
  new ResizeObserver(() => timeline.render()).observe(timeline.node);
  watchKeys(
    state,
    player,
    () => data.ranks,
    () => levels,
  );
  return {
    state,
    player,
    data,
    memory: (rank) => memoryAt(data, Math.ceil(state.get("step") - 1e-9), rank),
    sent: () => sentUpTo(data, Math.ceil(state.get("step") - 1e-9)),
    yours: () => yourNumbers(data.strategy, state),
  };
}

function isOnSlider(slider, value) {
  const notch = notchOf(slider, value);
  return notch >= 0 && notch <= (slider.values ? slider.values.length : 1000);
}

try {
  const page = JSON.parse(document.getElementById("data").textContent);
  globalThis.unisono = open(page);
  offerModes(root, globalThis.unisono);
  frameCourse(root, page, globalThis.unisono);
  document.documentElement.dataset.ready = "true";
} catch (error) {
  showError(root, error);
  throw error;
}
