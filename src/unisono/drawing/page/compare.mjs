// The page that compares several algorithms: side by side, step by step or by a simple clock.

import { drawChart, LARGEST, SMALLEST } from "./chart.mjs";
import { costPerChunk, tell, windUp } from "./clock.mjs";
import { button } from "./controls.mjs";
import { element, fill, shape } from "./dom.mjs";
import { footer, header } from "./head.mjs";
import { Player } from "./player.mjs";
import { remember, watchKeys } from "./reader.mjs";
import { Stage } from "./stage.mjs";
import { State } from "./state.mjs";
import { followTheme } from "./theme.mjs";
import { bandwidthText, bytesText, few, secondsText } from "./units.mjs";
import { viewAtLevel, viewAtTime } from "./views.mjs";
import { browserLanguage, WORDS } from "./words.mjs";

const RACE = 10; // positions from the start to the end of a race by the clock
const RANGES = {
  alpha: { low: 1e-7, high: 1e-3, unit: 1e-6 }, // seconds for a message; written in µs
  beta: { low: 1e-12, high: 1e-8, unit: 1e-9 }, // seconds for a byte; written in ns
  bytes: { low: SMALLEST, high: LARGEST, unit: 1 },
};

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
      if (name in RANGES) return isIn(RANGES[name], value * RANGES[name].unit);
      if (name === "by") return value === "step" || (value === "time" && !relay);
      if (name === "lang") return value in WORDS;
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
  const foot = footer(state, words);
  const race = element(
    "div",
    { class: "columns even" },
    element("div", { class: "main" }, sliders.node, board.node),
    chart.node,
  );
  race.hidden = relay;
  root.append(
    top.node,
    element("div", { class: relay ? "tracks relay" : "tracks" }, ...tracks.map(({ node }) => node)),
    bar.node,
    race,
    foot.node,
  );

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
  watchKeys(state, player, Math.min(...scenes.map(({ size }) => size)), length);
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

function orderOf(times) {
  return times.map((_, at) => at).sort((one, other) => times[one].finish - times[other].finish);
}

function isIn({ low, high }, value) {
  return value >= low * 0.999 && value <= high * 1.001;
}

/** One algorithm: its stage, its name, and how far it is. */
function track(scene, name, at, state, words) {
  const canvas = element("canvas", { role: "img" });
  const said = element("p", { class: "progress" });
  const node = element(
    "section",
    { class: `panel track series-${at % 6}`, "data-name": name },
    element("h2", {}, name),
    scene.on_stage ? canvas : "",
    said,
  );
  const look = () => ({
    layout: scene.layout.best,
    numbers: state.get("numbers"),
    rank: state.get("rank"),
    names: { rank: words().rank, node: words().node, row: (part) => words().row[part] },
  });
  let stage = null;
  const resize = () => {
    if (!scene.on_stage) return;
    if (stage) stage.resize();
    else stage = new Stage(canvas, scene, look);
  };
  const refresh = () => {
    canvas.setAttribute("aria-label", words().stageLabel(scene.label, words().ranks(scene.size)));
    stage?.refresh();
  };
  const update = ({ step, moment, times, place }) => {
    const w = words();
    if (moment === undefined) {
      const position = Math.min(step, scene.levels);
      stage?.draw(viewAtLevel(scene, position));
      const level = Math.ceil(position - 1e-9);
      const text = level === 0 ? w.before : w.stepOf(level, scene.levels);
      said.textContent = position >= scene.levels ? w.doneAfterSteps(scene.levels) : text;
    } else {
      if (stage) stage.draw(viewAtTime(scene, times, moment));
      const over = moment >= times.finish * (1 - 1e-9);
      said.textContent = over ? w.doneAfter(secondsText(times.finish), place + 1) : secondsText(moment);
    }
    node.classList.toggle("over", moment === undefined ? step >= scene.levels : moment >= times.finish * (1 - 1e-9));
  };
  return { node, update, resize, refresh };
}

/** The bar: buttons, slider, and the choice between steps and the clock. */
function transport(state, player, length, words, relay) {
  const node = element("section", { class: "controls" });
  const slider = element("input", {
    type: "range",
    id: "position",
    min: 0,
    step: "any",
    oninput: () => player.go(Number(slider.value), false),
  });
  const where = element("output", { class: "where", for: "position" });
  let shown = "";
  const update = () => {
    const w = words();
    const byTime = state.get("by") === "time";
    const key = `${state.get("lang")} ${state.get("playing")} ${state.get("by")}`;
    slider.max = length();
    slider.value = state.get("step");
    slider.setAttribute("aria-label", byTime ? w.byTime : w.position);
    slider.style.setProperty("--part", `${(100 * state.get("step")) / length()}%`);
    const level = Math.ceil(state.get("step") - 1e-9);
    where.textContent = byTime
      ? `${Math.round((100 * state.get("step")) / RACE)} %`
      : level === 0
        ? w.before
        : w.stepOf(level, length());
    if (key === shown) return;
    shown = key;
    const playing = state.get("playing");
    const ways = element("div", { class: "languages", role: "group", "aria-label": w.lockstep });
    for (const [way, name] of [
      ["step", w.byStep],
      ["time", w.byTime],
    ]) {
      ways.append(
        element(
          "button",
          {
            type: "button",
            "data-by": way,
            "aria-pressed": `${state.get("by") === way}`,
            onclick: () => state.set({ by: way, step: 0, playing: false }),
          },
          name,
        ),
      );
    }
    fill(
      node,
      element(
        "div",
        { class: "transport", role: "group" },
        button("first", w.first, () => player.go(0, false)),
        button("back", w.back, () => player.back()),
        button(playing ? "pause" : "play", playing ? w.pause : w.play, () => player.toggle(), "primary"),
        button("forward", w.forward, () => player.forward()),
        button("last", w.last, () => player.go(length(), false)),
      ),
      element("div", { class: "scrubber" }, slider),
      where,
      relay ? "" : element("div", { class: "choices" }, ways),
    );
  };
  return { node, update };
}

/** Sliders for alpha, beta and the size, each on a logarithmic scale. */
function slidersPanel(state, words) {
  const node = element("section", { class: "panel sliders" });
  const inputs = {};
  const texts = {
    alpha: (value) => secondsText(value),
    beta: (value) => `${few(value * 1e9)} ns/B = ${bandwidthText(value)}`,
    bytes: (value) => bytesText(value),
  };
  const update = () => {
    const w = words();
    const rows = Object.entries(RANGES).map(([name, { low, high, unit }]) => {
      const input = element("input", {
        type: "range",
        id: `slider-${name}`,
        min: 0,
        max: 1000,
        oninput: () => {
          const value = low * (high / low) ** (Number(input.value) / 1000);
          state.set({ [name]: name === "bytes" ? Math.round(value) : Number((value / unit).toPrecision(3)) });
        },
      });
      const output = element("output", { for: `slider-${name}` });
      inputs[name] = { input, output };
      return element("label", { class: "slider" }, element("span", {}, w.sliders[name]), input, output);
    });
    fill(node, element("h2", {}, w.clock), element("p", { class: "note" }, w.clockNote), ...rows);
    show();
  };
  const show = () => {
    for (const [name, { low, high, unit }] of Object.entries(RANGES)) {
      const value = state.get(name) * unit;
      const part = Math.round((1000 * Math.log(value / low)) / Math.log(high / low));
      const { input, output } = inputs[name];
      if (Number(input.value) !== part) input.value = part;
      input.style.setProperty("--part", `${part / 10}%`);
      output.textContent = texts[name](value);
      input.setAttribute("aria-valuetext", texts[name](value));
    }
  };
  update();
  return { node, update, show };
}

/** Who finishes when, the quickest first, and what is to be learnt from it. */
function boardPanel(words) {
  const node = element("section", { class: "panel board" });
  const update = (scenes, names, times, bytes, changes) => {
    const w = words();
    const order = orderOf(times);
    const last = times[order[order.length - 1]].finish || 1;
    const rows = order.map((at) => {
      const bar = element("span", { class: `lane series-${at % 6}`, "aria-hidden": "true" });
      bar.style.setProperty("--full", `${(100 * times[at].finish) / last}%`);
      return element(
        "li",
        { "data-name": names[at] },
        element("span", { class: "who" }, names[at]),
        bar,
        element("span", { class: "when" }, secondsText(times[at].finish)),
        scenes[at].facts ? element("span", { class: "note" }, w.costs(scenes[at].facts)) : "",
      );
    });
    const sentences = [w.winner(names[order[0]], bytesText(bytes), secondsText(times[order[0]].finish))];
    for (const change of changes) sentences.push(w.crossing(names[change.after], bytesText(change.bytes)));
    fill(
      node,
      element("h2", {}, w.finish),
      element("ol", {}, ...rows),
      element("p", { role: "status", "aria-live": "polite" }, sentences.join(" ")),
    );
  };
  return { node, update };
}

function chartPanel(words) {
  const svg = shape("svg", { role: "img", class: "chart" });
  const title = element("h2");
  const note = element("p", { class: "note" });
  const node = element("section", { class: "panel" }, title, svg, note);
  const made = { node, changes: [] };
  made.update = (clocks, names, costs, choose) => {
    const w = words();
    title.textContent = w.chart;
    note.textContent = w.chartNote;
    made.changes = drawChart(svg, clocks, names, costs, choose, w.chartLabel(names.join(", ")));
    return made.changes;
  };
  return made;
}
