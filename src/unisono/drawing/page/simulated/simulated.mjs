// The page of one algorithm in simulated time: the stage with coloured links, the load of every link over time, and the
// prediction.

import { codePanel } from "../algorithm/code.mjs";
import { factsPanel } from "../algorithm/facts.mjs";
import { rankChoice } from "../algorithm/story.mjs";
import { framesOfTime } from "../common/animation.mjs";
import { contentsPanel } from "../common/contents_panel.mjs";
import { element } from "../common/dom.mjs";
import { footer, header } from "../common/header.mjs";
import { watchKeys } from "../common/keyboard.mjs";
import { LAYOUTS } from "../common/layouts.mjs";
import { legendItems } from "../common/legend.mjs";
import { MomentPlayer, POSITIONS } from "../common/moment_player.mjs";
import { loadColour } from "../common/palette.mjs";
import { fileName, picture } from "../common/picture.mjs";
import { choices } from "../common/playback_bar.mjs";
import { fillBar, playbackButtons, positionSlider, setIcon } from "../common/playback_buttons.mjs";
import { inChannelOrder } from "../common/replay.mjs";
import { lookOf, stageFigure } from "../common/stage_figure.mjs";
import { State, showLink } from "../common/state.mjs";
import { followTheme } from "../common/theme.mjs";
import { timeMarks } from "../common/time_marks.mjs";
import { watchPointer } from "../common/tip.mjs";
import { bytesText, secondsText } from "../common/units.mjs";
import { viewAtTime } from "../common/views.mjs";
import { browserLanguage } from "../common/words.mjs";
import { linkLoads } from "./link_loads.mjs";
import { linksPanel } from "./links_panel.mjs";
import { momentPanel } from "./moment_panel.mjs";
import { NetworkStage } from "./network_stage.mjs";
import { predictionPanel } from "./prediction_panel.mjs";
import { SIMULATED_WORDS } from "./simulated_words.mjs";

const SECONDS = 14; // the duration of a replay at speed 1
const LEVELS = 20; // of load that the stage distinguishes

/** Build the page; `columns` are the unpacked times. Return what tests inspect. */
export function openSimulated(root, page, scene, columns) {
  const { simulated } = page;
  const duration = simulated.prediction.time_s;
  const times = timesOf(simulated, scene, columns);
  const loads = linkLoads(simulated, columns);
  const state = new State(
    {
      lang: page.settings.language ?? browserLanguage(navigator.languages),
      layout: scene.layout.best,
      numbers: page.settings.numbers,
    },
    (name, value) => {
      if (name === "step") return value >= 0 && value <= POSITIONS;
      if (name === "rank") return Number.isInteger(value) && value >= 0 && value < scene.size;
      if (name === "layout") return LAYOUTS.includes(value);
      return name !== "lang" || Object.hasOwn(SIMULATED_WORDS, value);
    },
  );
  state.follow(location.hash);
  const words = () => SIMULATED_WORDS[state.get("lang")];
  const position = (seconds) => (duration ? (POSITIONS * seconds) / duration : POSITIONS);
  const moments = [0, ...[...new Set(Array.from(times.got, position))].sort((one, other) => one - other), POSITIONS];
  const player = new MomentPlayer(state, () => moments, SECONDS);
  const timeAt = (step) => (duration * step) / POSITIONS;
  const time = () => timeAt(state.get("step"));
  const viewAt = (step) => {
    const ended = step >= POSITIONS;
    const moment = timeAt(step);
    const seen = viewAtTime(scene, times, ended ? Number.POSITIVE_INFINITY : moment);
    const rounded = (route) => Math.ceil(loads.ofRoute(route, moment) * LEVELS - 1e-9) / LEVELS;
    return { ...seen, loads: simulated.pairs.map(([, , , route]) => (ended ? 0 : rounded(route))) };
  };
  const view = () => viewAt(state.get("step"));
  const { figure, canvas, tip, legend } = stageFigure("stage network");
  const look = () => lookOf(state, words());

  const top = header(page, state, words, (language) => about(page, scene, language));
  const bar = playbackBar(scene, state, player, words, time, duration);
  const links = linksPanel(simulated, loads, words, state, time, (seconds) => player.go(position(seconds)));
  const prediction = predictionPanel(simulated, state, words);
  const story = momentPanel(scene, simulated, loads, state, words, timeAt, viewAt, () =>
    rankChoice(scene, state, words()),
  );
  const code = codePanel(scene, stepState(scene, state, times, time), words);
  const contents = contentsPanel(scene, state, words, view);
  const facts = factsPanel(scene, state, words);
  const foot = footer(state, words, ["keys", "numbersKey"]);
  const main = element("div", { class: "main" }, figure, bar.node);
  const aside = element("aside", {}, story.node, prediction.node, code.node);
  const below = element("div", { class: "main" }, links.node, contents.node, facts.node);
  root.append(top.node, element("div", { class: "columns narrated" }, main, aside, below), foot.node);

  const stage = new NetworkStage(canvas, scene, look, simulated.pairs);
  const draw = () => stage.draw(view());
  const relabel = () => {
    const w = words();
    canvas.setAttribute("aria-label", w.stageLabel(scene.label, w.ranks(scene.size)));
    const items = legendItems(scene, w, state.get("layout"), stage.hasTinyCells());
    legend.replaceChildren(...loadLegend(simulated, w), ...items);
  };
  state.onChange((changed) => {
    if (changed.has("layout") || changed.has("lang")) {
      stage.resize();
      relabel();
    }
    if (changed.has("lang")) for (const panel of [top, prediction, facts, foot]) panel.update();
    if (changed.has("lang")) links.refresh();
    for (const panel of [bar, code, story, contents, links]) panel.update(changed);
    draw();
    if (!player.moving) showLink(state);
  });
  watchPointer(canvas, tip, () => stage, state, words, view);
  new ResizeObserver(() => {
    stage.resize();
    links.resize();
    relabel();
    draw();
  }).observe(canvas);
  followTheme(() => {
    stage.refresh();
    links.refresh();
    relabel();
    draw();
  });
  watchKeys(
    state,
    player,
    () => scene.size,
    () => POSITIONS,
  );
  /** The roads at this moment. */
  const roads = () => {
    const shown = view().loads;
    return simulated.pairs.map(([src, dst, far], at) => ({
      src,
      dst,
      far: far === 1,
      load: shown[at],
      colour: loadColour(shown[at], stage.paint),
    }));
  };
  /** A picture of the stage (picture.mjs) at a moment; `caption` may return the text of a position. */
  const pictureOf = ({ caption, ...options }) => {
    const [language, w] = [state.get("lang"), words()];
    const { title, chips } = about(page, scene, language);
    const texts = (step) => ({
      titles: [title, ...chips],
      where: w.timeOf(secondsText(timeAt(step)), secondsText(duration)),
      caption: caption?.(step) ?? story.leadAt(step),
    });
    const copy = new NetworkStage(document.createElement("canvas"), scene, look, simulated.pairs);
    return picture(copy, viewAt, texts, options);
  };
  return {
    state,
    player,
    scene,
    times,
    simulated,
    roads,
    painter: () => stage,
    picture: pictureOf,
    sheet: true,
    frames: () => framesOfTime(POSITIONS, SECONDS),
    fileName: (step) => fileName(`${scene.label} ${simulated.name}`, scene.size, step),
  };
}

/** The times of all messages and steps in seconds, as viewAtTime takes them. */
function timesOf(simulated, scene, columns) {
  const finish = simulated.prediction.time_s;
  const unit = finish / simulated.parts;
  const count = scene.messages.length;
  const order = inChannelOrder(scene.messages);
  const inOrder = (column) => {
    const made = new Float64Array(column.length);
    column.forEach((time, at) => {
      made[at - (at % count) + order[at % count].id] = time * unit;
    });
    return made;
  };
  const [sent, arrived, got] = ["sent", "arrived", "got"].map((name) => inOrder(columns[name]));
  let start = 0;
  const finished = scene.steps.map(({ length }) => {
    start += length;
    return Float64Array.from(columns.step.subarray(start - length, start), (value) => value * unit);
  });
  return { sent, arrived, got, finished, finish };
}

/** The state for the program beside the stage: its position is the level of the step that a rank executes. */
function stepState(scene, state, times, time) {
  const levelOf = (rank) => {
    const done = times.finished[rank].findIndex((end) => end > time());
    return done < 0 ? scene.levels : scene.steps[rank][done].level;
  };
  const values = {
    step: () => (state.get("step") === 0 ? 0 : levelOf(values.rank())),
    rank: () => state.get("rank") ?? 0,
  };
  return { get: (name) => values[name]?.() ?? state.get(name) };
}

/** The bar below the stage. */
function playbackBar(scene, state, player, words, time, duration) {
  const node = element("section", { class: "controls" });
  const parts = {};
  const marks = timeMarks(() => duration);
  const render = () => {
    const w = words();
    const buttons = playbackButtons(player, w, () => POSITIONS);
    parts.play = buttons.play;
    parts.slider = positionSlider(player, { max: POSITIONS, "aria-label": w.time });
    parts.where = element("output", { class: "where", for: "position", "aria-live": "off" });
    const speed = SECONDS / (duration || 1) / state.get("speed");
    const note = duration ? w.slower(Number(speed.toPrecision(2)).toLocaleString("en-US")) : "";
    const shownHow = choices(state, LAYOUTS, w, scene.collective);
    const all = [...shownHow, element("span", { class: "note" }, note)];
    fillBar(node, { ...parts, buttons, above: [marks.node], choices: all });
  };
  const update = (changed) => {
    if (["lang", "layout", "numbers", "speed"].some((name) => changed.has(name))) {
      const focused = node.contains(document.activeElement) ? document.activeElement.id : "";
      render();
      if (focused) document.getElementById(focused)?.focus();
    }
    const w = words();
    const playing = state.get("playing");
    setIcon(parts.play, playing ? "pause" : "play", playing ? w.pause : w.play);
    parts.slider.value = state.get("step");
    parts.slider.style.setProperty("--part", `${state.get("step")}%`);
    parts.where.textContent = w.timeOf(secondsText(time()), secondsText(duration));
    parts.slider.setAttribute("aria-valuetext", parts.where.textContent);
  };
  render();
  update(new Set());
  return { node, update };
}

/** The legend of roads: the scale of loads, near and far. */
function loadLegend(simulated, w) {
  const scale = element("i", { class: "load-scale", "aria-hidden": "true" });
  const kinds = new Set(simulated.pairs.map(([, , far]) => far));
  const road = (kind, text) =>
    element("span", { class: "key" }, element("i", { class: `road ${kind}`, "aria-hidden": "true" }), text);
  return [
    element("span", { class: "key" }, "0", scale, "100 %", element("span", {}, w.legendLoad)),
    ...(kinds.has(0) ? [road("near", w.legendNear)] : []),
    ...(kinds.has(1) ? [road("far", w.legendFar)] : []),
  ];
}

function about({ settings, simulated }, scene, language) {
  const w = SIMULATED_WORDS[language];
  const { collective, algorithm } = scene;
  const name = `${collective.title} · ${algorithm.name.replaceAll("_", " ")}`;
  const chips = [w.ranks(scene.size), simulated.name];
  if (collective.carries_data) chips.push(bytesText(simulated.bytes));
  if (scene.root !== null) chips.push(w.root(scene.root));
  for (const [option, value] of Object.entries(algorithm.options)) chips.push(`${option} = ${value}`);
  return {
    title: settings.title?.[language] ?? name,
    chips,
    story: (settings.story ?? collective.story)[language],
    idea: algorithm.idea[language] || algorithm.idea.en,
  };
}
