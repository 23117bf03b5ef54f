// The page that compares several algorithms: side by side, step by step or by a clock. The clock is that of the
// simulator, on one of several networks, or a simple cost model.

import { framesOfSteps, framesOfTime } from "../common/animation.mjs";
import { clockTimes, costPerChunk, prepareClock } from "../common/clock.mjs";
import { element } from "../common/dom.mjs";
import { footer, header } from "../common/header.mjs";
import { watchKeys } from "../common/keyboard.mjs";
import { legendItems } from "../common/legend.mjs";
import { fileName, picture } from "../common/picture.mjs";
import { Player, STEPS_PER_SECOND } from "../common/player.mjs";
import { State, showLink } from "../common/state.mjs";
import { followTheme } from "../common/theme.mjs";
import { browserLanguage, WORDS } from "../common/words.mjs";
import { modelChart } from "./chart.mjs";
import { compareBar, RACE } from "./compare_bar.mjs";
import { compareLane } from "./compare_lane.mjs";
import { LanesPicture } from "./lanes_picture.mjs";
import { raceNarration, stepSentences, timeSentences } from "./narration.mjs";
import { boardPanel, chartPanel, clockPanel, isInRange, MODEL, orderOf, RANGES } from "./race.mjs";
import { nearestSize, raceClock } from "./race_clock.mjs";
import { RACE_WORDS } from "./race_words.mjs";

/** Build the page; `columns` are the simulated times of page.race, if there are any. Return what tests inspect. */
export function openCompare(root, page, scenes, columns) {
  const { race } = page;
  const offsets = page.settings.offsets ?? scenes.map(() => 0);
  const relay = Boolean(page.settings.offsets); // each part continues where the one before ended: no comparison
  const failing = scenes.filter(({ failure }) => failure);
  const drawn = scenes.every(({ packed }) => packed); // otherwise there are only times
  const most = Math.max(...scenes.map(({ levels }, at) => levels + offsets[at]));
  const hasModel = drawn && scenes.length > 1 && !failing.length; // what fails its proof takes part in no race
  const networks = [...(race?.networks.map(({ name }) => name) ?? []), ...(hasModel ? [MODEL] : [])];
  const ways =
    relay || failing.length
      ? ["step"]
      : drawn && (!race || race.animated)
        ? ["step", "time"]
        : drawn
          ? ["step"]
          : ["time"];
  const state = new State(
    {
      lang: page.settings.language ?? browserLanguage(navigator.languages),
      numbers: page.settings.numbers,
      step: failing.length ? Math.max(...failing.map((scene) => scene.levels)) : undefined, // it opens at the error
      by: race?.animated || !drawn ? "time" : undefined,
      network: networks[0],
      alpha: 5,
      beta: 0.1,
      bytes: race?.bytes ?? 262144,
    },
    (name, value) => {
      if (name in RANGES) return isInRange(name, value) || (name === "bytes" && Boolean(race?.sizes.includes(value)));
      if (name === "network") return networks.includes(value);
      if (name === "by") return ways.includes(value);
      if (name === "lang") return Object.hasOwn(WORDS, value);
      if (name === "rank") return Number.isInteger(value) && value >= 0 && scenes.every(({ size }) => value < size);
      return name !== "step" || (value >= 0 && value <= Math.max(most, RACE));
    },
  );
  state.follow(location.hash);
  const words = () => WORDS[state.get("lang")];
  const length = () => (state.get("by") === "time" ? RACE : most);
  const player = new Player(state, length);
  const clocks = drawn ? scenes.map(prepareClock) : [];
  const simulated = race ? raceClock(race, columns, scenes) : null;
  const names = namesOf(scenes);
  const cost = (name) => state.get(name) * RANGES[name].unit;
  /** The index of the chosen network of the simulator; -1 in the model. */
  const network = () => race?.networks.findIndex(({ name }) => name === state.get("network")) ?? -1;
  /** On a network of the simulator, only some sizes were simulated. */
  const snap = () => {
    if (network() >= 0) state.set({ bytes: race.sizes[nearestSize(race.sizes, state.get("bytes"))] });
  };
  const told = () => {
    const size = race ? nearestSize(race.sizes, state.get("bytes")) : 0;
    if (network() >= 0) return scenes.map((_, at) => simulated.timesAt(network(), at, size));
    const perChunk = ({ scene }) => costPerChunk(scene, cost("beta"), cost("bytes"));
    return clocks.map((clock) => clockTimes(clock, cost("alpha"), perChunk(clock)));
  };
  const charted = () => {
    if (network() < 0) return modelChart(clocks, cost("alpha"), cost("beta"));
    const { chart, crossovers } = race.networks[network()];
    return { sizes: race.chart_sizes, series: chart, changes: crossovers };
  };
  snap();
  let times = told();
  let data = charted();
  const last = () => Math.max(...times.map(({ finish }) => finish));

  const top = header(page, state, words, (language) => about(page, scenes, names, language));
  const lanePanels = drawn ? scenes.map((scene, at) => compareLane(scene, names[at], at, state, words)) : [];
  const bar = compareBar(state, player, length, words, ways, last);
  const board = boardPanel(words);
  const clock = clockPanel(state, words, race, hasModel);
  const chart = chartPanel(words);
  const foot = footer(state, words, drawn ? ["keys", "numbersKey"] : []);
  const columnCount = [1, 1, 2, 3, 4, 3, 3][Math.min(scenes.length, 6)]; // if there is room for them
  const lanes = element("div", {
    class: `compare-lanes ${columnCount === scenes.length ? "one-row" : ""}`,
    style: `--columns: ${columnCount}`,
  });
  lanes.append(...lanePanels.map(({ node }) => node));
  const narration = raceNarration(state);
  const legend = element("div", { class: "legend lane-legend" });
  const explain = () => {
    const items = lanePanels.flatMap(({ stage }, at) =>
      legendItems(scenes[at], words(), scenes[at].layout.best, Boolean(stage()?.hasTinyCells())),
    );
    if (lanePanels.some(({ stage }) => stage()?.plan?.places[0].name)) {
      items.push(element("span", { class: "key" }, RACE_WORDS[state.get("lang")].outside));
    }
    const texts = items.map(({ textContent }) => textContent);
    legend.replaceChildren(...items.filter((_, at) => texts.indexOf(texts[at]) === at));
  };
  const isRace = !relay && !failing.length && scenes.length > 1;
  const sentenceAt = (step) => {
    const language = state.get("lang");
    if (!isRace) return "";
    return state.get("by") === "time"
      ? timeSentences(scenes, names, times, (step / RACE) * last(), language)
      : stepSentences(scenes, names, step, language);
  };
  const narrate = () => narration.update(sentenceAt(state.get("step")), bar.position());
  const below = element(
    "div",
    { class: "columns even" },
    element("div", { class: "main" }, clock.node, board.node),
    chart.node,
  );
  below.hidden = relay || failing.length > 0;
  root.append(top.node, ...(drawn ? [narration.node, lanes, bar.node, legend] : []), below, foot.node);

  /** What the stage of an algorithm shows at a position. */
  const shownAt = (step, at) =>
    state.get("by") === "time"
      ? { moment: (step / RACE) * last(), times: times[at], place: orderOf(times).indexOf(at) }
      : { step: Math.max(0, step - offsets[at]) };
  const draw = () => {
    lanePanels.forEach(({ update }, at) => {
      update(shownAt(state.get("step"), at));
    });
    if (drawn) narrate();
  };
  const measure = () => {
    const name = network() < 0 ? "" : state.get("network");
    times = told();
    data = charted();
    chart.update(data, names, cost("bytes"), (bytes) => state.set({ bytes: chosenSize(bytes) }), name);
    board.update(scenes, names, times, data.sizes.length ? cost("bytes") : null, data.changes, name);
  };
  const chosenSize = (bytes) => (network() < 0 ? Math.round(bytes) : race.sizes[nearestSize(race.sizes, bytes)]);
  state.onChange((changed) => {
    if (changed.has("by") && state.get("step") > length()) state.set({ step: length() });
    if (changed.has("network")) snap();
    if (changed.has("lang")) for (const panel of [top, foot]) panel.update();
    if (changed.has("lang") || changed.has("network")) clock.update();
    if (["lang", "network", "alpha", "beta", "bytes"].some((name) => changed.has(name))) {
      clock.show();
      measure();
    }
    if (changed.has("lang")) {
      for (const one of lanePanels) one.refresh();
      explain();
    }
    bar.update(changed);
    draw();
    if (!player.moving) showLink(state);
  });
  measure();
  bar.update(new Set());
  followTheme(() => {
    for (const one of lanePanels) one.refresh();
    draw();
  });
  new ResizeObserver(() => {
    for (const one of lanePanels) one.resize();
    explain();
    bar.update(new Set());
    measure();
    draw();
  }).observe(root);
  const fewest = Math.min(...scenes.map(({ size }) => size));
  watchKeys(state, player, () => fewest, length);
  const crossing = () =>
    data.changes.map(({ bytes, before, after }) => ({ bytes, before: names[before], after: names[after] }));
  const finish = (alpha, perChunk) => clocks.map((clock) => clockTimes(clock, alpha, perChunk).finish);
  /** A picture of all stages (picture.mjs); `caption` may return the text of a position. */
  const pictureOf = ({ caption, ...options }) => {
    const looks = lanePanels.map(({ look }) => look);
    const { title, chips } = about(page, scenes, names, state.get("lang"));
    const texts = (step) => ({
      titles: [title, ...chips, ...(state.get("by") === "time" ? [state.get("network")] : [])],
      where: bar.positionAt(step),
      caption: caption?.(step) ?? sentenceAt(step),
    });
    const views = (step) => lanePanels.map(({ viewOf }, at) => viewOf(shownAt(step, at)));
    return picture(new LanesPicture(scenes, names, looks, columnCount), views, texts, options);
  };
  const hasPicture = drawn && scenes.every((scene) => scene.on_stage);
  return {
    state,
    player,
    scenes,
    lanes: lanePanels,
    crossing,
    finish,
    times: () => times,
    picture: hasPicture ? pictureOf : null,
    frames: () => (state.get("by") === "time" ? framesOfTime(RACE, RACE / STEPS_PER_SECOND) : framesOfSteps(most)),
    fileName: (step) => fileName(`compare-${names.join("-")}`, scenes[0].size, step),
  };
}

/** Short names if they distinguish the algorithms, else full labels. */
function namesOf(scenes) {
  const short = scenes.map(({ algorithm }) => algorithm.name.replaceAll("_", " "));
  const alike =
    new Set(scenes.map(({ collective }) => collective.name)).size > 1 || new Set(short).size < short.length;
  return alike ? scenes.map(({ label }) => label) : short;
}

function about({ settings }, scenes, names, language) {
  const w = WORDS[language];
  const [first] = scenes;
  const same = scenes.every(({ collective }) => collective.name === first.collective.name);
  return {
    title: settings.title
      ? settings.title[language]
      : same
        ? `${first.collective.title} · ${scenes.length > 1 ? w.compared(scenes.length) : names[0]}`
        : w.compared(scenes.length),
    chips: [w.ranks(first.size)],
    story: (settings.story ?? first.collective.story)[language],
    idea: names.join(" · "),
  };
}
