// The page that compares several algorithms: side by side, step by step or by a simple clock.

import { clockTimes, costPerChunk, prepareClock } from "../common/clock.mjs";
import { element } from "../common/dom.mjs";
import { footer, header } from "../common/header.mjs";
import { watchKeys } from "../common/keyboard.mjs";
import { Player } from "../common/player.mjs";
import { State, showLink } from "../common/state.mjs";
import { followTheme } from "../common/theme.mjs";
import { browserLanguage, WORDS } from "../common/words.mjs";
import { compareBar, RACE } from "./compare_bar.mjs";
import { compareLane } from "./compare_lane.mjs";
import { boardPanel, chartPanel, isInRange, orderOf, RANGES, slidersPanel } from "./race.mjs";

/** Build the page; return what tests inspect. */
export function openCompare(root, page, scenes) {
  const offsets = page.settings.offsets ?? scenes.map(() => 0);
  const relay = Boolean(page.settings.offsets); // each part continues where the one before ended: no comparison
  const most = Math.max(...scenes.map(({ levels }, at) => levels + offsets[at]));
  const state = new State(
    {
      lang: page.settings.language ?? browserLanguage(navigator.languages),
      numbers: page.settings.numbers,
      alpha: 5,
      beta: 0.1,
      bytes: 262144,
    },
    (name, value) => {
      if (name in RANGES) return isInRange(name, value);
      if (name === "by") return value === "step" || (value === "time" && !relay);
      if (name === "lang") return Object.hasOwn(WORDS, value);
      if (name === "rank") return Number.isInteger(value) && value >= 0 && scenes.every(({ size }) => value < size);
      return name !== "step" || (value >= 0 && value <= Math.max(most, RACE));
    },
  );
  state.follow(location.hash);
  const words = () => WORDS[state.get("lang")];
  const length = () => (state.get("by") === "time" ? RACE : most);
  const player = new Player(state, length);
  const clocks = scenes.map(prepareClock);
  const names = namesOf(scenes);
  const cost = (name) => state.get(name) * RANGES[name].unit;
  const told = () =>
    clocks.map((clock) => clockTimes(clock, cost("alpha"), costPerChunk(clock.scene, cost("beta"), cost("bytes"))));
  let times = told();

  const top = header(page, state, words, (language) => about(page, scenes, names, language));
  const lanePanels = scenes.map((scene, at) => compareLane(scene, names[at], at, state, words));
  const bar = compareBar(state, player, length, words, relay);
  const board = boardPanel(words);
  const sliders = slidersPanel(state, words);
  const chart = chartPanel(words);
  const foot = footer(state, words, ["keys", "numbersKey"]);
  const columns = [1, 1, 2, 3, 2, 3, 3][Math.min(scenes.length, 6)]; // if there is room for them
  const lanes = element("div", {
    class: relay ? "compare-lanes relay" : "compare-lanes",
    style: `--columns: ${relay ? 2 : columns}`,
  });
  lanes.append(...lanePanels.map(({ node }) => node));
  const race = element(
    "div",
    { class: "columns even" },
    element("div", { class: "main" }, sliders.node, board.node),
    chart.node,
  );
  race.hidden = relay;
  root.append(top.node, lanes, bar.node, race, foot.node);

  const draw = () => {
    const step = state.get("step");
    const last = Math.max(...times.map(({ finish }) => finish));
    const order = orderOf(times);
    lanePanels.forEach(({ update }, at) => {
      const byTime = state.get("by") === "time";
      update(
        byTime
          ? { moment: (step / RACE) * last, times: times[at], place: order.indexOf(at) }
          : { step: Math.max(0, step - offsets[at]) },
      );
    });
  };
  const measure = () => {
    times = told();
    const changes = chart.update(
      clocks,
      names,
      { alpha: cost("alpha"), beta: cost("beta"), bytes: cost("bytes") },
      (bytes) => state.set({ bytes: Math.round(bytes) }),
    );
    board.update(scenes, names, times, cost("bytes"), changes);
  };
  state.onChange((changed) => {
    if (changed.has("by") && state.get("step") > length()) state.set({ step: length() });
    if (changed.has("lang")) for (const panel of [top, sliders, foot]) panel.update();
    if (["lang", "alpha", "beta", "bytes"].some((name) => changed.has(name))) {
      sliders.show();
      measure();
    }
    if (changed.has("lang")) for (const one of lanePanels) one.refresh();
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
    draw();
  }).observe(root);
  const fewest = Math.min(...scenes.map(({ size }) => size));
  watchKeys(state, player, () => fewest, length);
  const crossing = () =>
    chart.changes.map(({ bytes, before, after }) => ({ bytes, before: names[before], after: names[after] }));
  const finish = (alpha, perChunk) => clocks.map((clock) => clockTimes(clock, alpha, perChunk).finish);
  return { state, player, scenes, crossing, finish };
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
        ? `${first.collective.title} · ${w.compared(scenes.length)}`
        : w.compared(scenes.length),
    chips: [w.ranks(first.size)],
    story: (settings.story ?? first.collective.story)[language],
    idea: names.join(" · "),
  };
}
