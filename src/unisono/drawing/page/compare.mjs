// The page that compares several algorithms: side by side, step by step or by a simple clock.

import { costPerChunk, tell, windUp } from "./clock.mjs";
import { element } from "./dom.mjs";
import { footer, header } from "./head.mjs";
import { Player } from "./player.mjs";
import { boardPanel, chartPanel, isInRange, orderOf, RANGES, slidersPanel } from "./race.mjs";
import { remember, watchKeys } from "./reader.mjs";
import { State } from "./state.mjs";
import { followTheme } from "./theme.mjs";
import { track } from "./track.mjs";
import { RACE, transport } from "./transport.mjs";
import { browserLanguage, WORDS } from "./words.mjs";

/** Build the page and return what a test may look at. */
export function openCompare(root, page, scenes) {
  const offsets = page.settings.offsets ?? scenes.map(() => 0);
  const relay = Boolean(page.settings.offsets); // one takes over from another: then it is no race
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
  const clocks = scenes.map(windUp);
  const names = namesOf(scenes);
  const cost = (name) => state.get(name) * RANGES[name].unit;
  const told = () =>
    clocks.map((clock) => tell(clock, cost("alpha"), costPerChunk(clock.scene, cost("beta"), cost("bytes"))));
  let times = told();

  const top = header(page, state, words, (language) => about(page, scenes, names, language));
  const tracks = scenes.map((scene, at) => track(scene, names[at], at, state, words));
  const bar = transport(state, player, length, words, relay);
  const board = boardPanel(words);
  const sliders = slidersPanel(state, words);
  const chart = chartPanel(words);
  const foot = footer(state, words, ["keys", "numbersKey"]);
  const columns = [1, 1, 2, 3, 2, 3, 3][Math.min(scenes.length, 6)]; // where there is room for them
  const lanes = element("div", {
    class: relay ? "tracks relay" : "tracks",
    style: `--columns: ${relay ? 2 : columns}`,
  });
  lanes.append(...tracks.map(({ node }) => node));
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
    tracks.forEach(({ update }, at) => {
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
    if (changed.has("lang")) for (const one of tracks) one.refresh();
    bar.update(changed);
    draw();
    if (!player.moving) remember(state);
  });
  measure();
  bar.update(new Set());
  followTheme(() => {
    for (const one of tracks) one.refresh();
    draw();
  });
  new ResizeObserver(() => {
    for (const one of tracks) one.resize();
    draw();
  }).observe(root);
  const fewest = Math.min(...scenes.map(({ size }) => size));
  watchKeys(state, player, () => fewest, length);
  const crossing = () =>
    chart.changes.map(({ bytes, before, after }) => ({ bytes, before: names[before], after: names[after] }));
  const finish = (alpha, perChunk) => clocks.map((clock) => tell(clock, alpha, perChunk).finish);
  return { state, player, scenes, crossing, finish };
}

/** Short names where they tell the algorithms apart, else whole labels. */
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
