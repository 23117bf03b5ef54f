// The page of a recorded run: the slow rank, the timeline, the calls, the waits and their causes, and a replay of each
// call.

import { element, fill } from "../common/dom.mjs";
import { footer, header } from "../common/header.mjs";
import { watchKeys } from "../common/keyboard.mjs";
import { LAYOUTS } from "../common/layouts.mjs";
import { POSITIONS } from "../common/moment_player.mjs";
import { select } from "../common/playback_bar.mjs";
import { replayed } from "../common/replay.mjs";
import { LINKED, State, showLink } from "../common/state.mjs";
import { followTheme } from "../common/theme.mjs";
import { unpack } from "../common/unpack.mjs";
import { browserLanguage } from "../common/words.mjs";
import { openGroup } from "./communicator.mjs";
import { replayPanel } from "./replay_panel.mjs";
import { callsPanel, waitsPanel } from "./run_panels.mjs";
import { RUN_WORDS } from "./run_words.mjs";
import { timelinePanel } from "./timeline_panel.mjs";

const root = document.getElementById("page");
const whole = (text) => (/^[0-9]{1,9}$/.test(text) ? Number(text) : null);
const micros = { initial: null, read: (text) => LINKED.step.read(text), write: (ns) => `${Math.round(ns) / 1000}` };
/** The values of a link: the number of the call, the position of its replay, the visible part of the run (in µs). */
const RUN_LINKED = {
  call: { initial: null, read: whole, write: (number) => `${number}` },
  step: { ...LINKED.step, key: "at" },
  group: { initial: 0, key: "comm", read: whole, write: (at) => `${at}` },
  from: { ...micros, read: (text) => inNs(micros.read(text)) },
  to: { ...micros, read: (text) => inNs(micros.read(text)) },
  rank: LINKED.rank,
  layout: LINKED.layout,
  numbers: LINKED.numbers,
  lang: LINKED.lang,
  speed: LINKED.speed,
};

function inNs(micros) {
  return micros === null ? null : micros * 1000;
}

/** Build the page; return what tests inspect. */
async function openRun(page) {
  const { run, settings } = page;
  const groups = [];
  const scenes = [];
  const load = async (at) => {
    groups[at] ??= openGroup(
      { ...run.groups[at], kinds: run.kinds, sentences: run.sentences },
      await unpack(run.groups[at].packed),
      run.scenes,
    );
    return groups[at];
  };
  const sceneOf = async (call) => {
    if (!call || call.scene < 0) return null;
    const data = run.scenes[call.scene];
    scenes[call.scene] ??= replayed(data, await unpack(data.packed));
    return scenes[call.scene];
  };
  const state = new State(
    { lang: settings.language ?? browserLanguage(navigator.languages), numbers: settings.numbers },
    (name, value) => {
      if (name === "group") return value < run.groups.length;
      if (name === "step") return value >= 0 && value <= POSITIONS;
      if (name === "layout") return LAYOUTS.includes(value);
      if (name === "rank") return Number.isInteger(value) && value >= 0;
      return name !== "lang" || Object.hasOwn(RUN_WORDS, value);
    },
    RUN_LINKED,
  );
  state.follow(location.hash);
  const words = () => RUN_WORDS[state.get("lang")];
  let current = await load(state.get("group"));
  const open = {
    group: () => current,
    call: () => current.calls.find(({ number }) => number === state.get("call")) ?? current.calls[0] ?? null,
    now: () => replay.now(),
  };
  tidy(state, open);

  const choose = (at, moment = null) => {
    const call = current.calls[at];
    if (!call) return;
    const fitted = timeline.fitted();
    const other = call.number !== open.call().number;
    pending = moment;
    state.set({ call: call.number, playing: false, ...(other ? { step: 0 } : {}) });
    if (other && fitted) timeline.fit(fitted);
    if (!other && moment !== null) replay.player.go(replay.positionAt(moment), false);
  };
  let pending = null; // the moment to show of a call that is not on the stage yet

  const top = header(page, state, words, (language) => about(run, current, RUN_WORDS[language], language));
  const replay = replayPanel(open, state, words);
  const timeline = timelinePanel(open, state, words, choose);
  const calls = callsPanel(open, state, words, choose);
  const waits = waitsPanel(open, state, words);
  const foot = footer(state, words);
  const notes = element("div", { class: "run-notes" });
  root.append(
    top.node,
    notes,
    timeline.node,
    element("div", { class: "columns" }, replay.node, element("aside", {}, replay.story, calls.node)),
    waits.node,
    foot.node,
  );

  const showNotes = () => {
    const language = state.get("lang");
    const lines = [current.overview, ...current.hosts, ...current.notes].map((line) =>
      element("p", {}, line[language]),
    );
    fill(notes, run.groups.length > 1 ? communicators(run, state, words()) : "", ...lines);
  };
  const showCall = async () => {
    const call = open.call();
    const scene = await sceneOf(call);
    if (call !== open.call()) return; // another call was selected in the meantime
    replay.load(call, scene);
    if (pending !== null) state.set({ step: replay.positionAt(pending) });
    pending = null;
    draw();
    document.documentElement.dataset.shown = `${call?.number}`;
  };
  const draw = () => {
    timeline.draw();
    replay.draw();
  };
  const showAll = () => {
    for (const panel of [top, foot, calls, waits]) panel.update();
    showNotes();
    timeline.refresh();
    timeline.resize();
  };
  state.onChange(async (changed) => {
    if (changed.has("group")) {
      current = await load(state.get("group"));
      state.set({ call: null, step: 0, from: null, to: null, rank: null, playing: false });
      tidy(state, open);
      showAll();
      await showCall();
      return;
    }
    tidy(state, open);
    if (changed.has("lang")) showAll();
    else if (changed.has("call")) calls.update();
    if (changed.has("call")) await showCall();
    if (["lang", "layout", "speed", "numbers"].some((name) => changed.has(name))) {
      const focused = replay.node.contains(document.activeElement) ? document.activeElement.id : "";
      replay.refresh();
      if (focused) document.getElementById(focused)?.focus();
    }
    draw();
    if (!replay.player.moving) showLink(state);
  });
  waits.update();
  calls.update();
  showNotes();
  await showCall();
  followTheme(() => {
    timeline.refresh();
    replay.refresh();
    draw();
  });
  new ResizeObserver(() => {
    timeline.resize();
    replay.resize();
    draw();
  }).observe(root);
  watchKeys(
    state,
    replay.player,
    () => current.size,
    () => POSITIONS,
    {
      ...timeline.keys,
      n: () => open.call() && choose(open.call().at + 1),
      p: () => open.call() && choose(open.call().at - 1),
    },
  );
  return { state, player: replay.player, open, replay, timeline: timeline.painter };
}

/** Drop values of a link that are invalid for this run. */
function tidy(state, open) {
  const { from, to, rank, call } = state.values;
  const changes = {};
  const { end } = open.group();
  if (from === null || to === null || !(to > from && from < end && to > 0))
    Object.assign(changes, { from: null, to: null });
  if (rank !== null && rank >= open.group().size) changes.rank = null;
  if (call === null || open.call()?.number !== call) changes.call = open.call()?.number ?? null;
  state.set(changes);
}

function about(run, group, w, language) {
  const { title, tale, why } = group.verdict;
  return {
    title: title[language],
    chips: [run.name, w.ranks(group.size)],
    story: tale?.[language] ?? group.overview[language],
    idea: why?.[language] ?? "",
  };
}

function communicators(run, state, w) {
  return select(
    "communicator",
    w.communicator,
    state.get("group"),
    run.groups.map((_, at) => at),
    (at) => w.communicatorOf(run.groups[at].names.join(", "), run.groups[at].call_count),
    (at) => state.set({ group: Number(at) }),
  );
}

try {
  globalThis.unisono = await openRun(JSON.parse(document.getElementById("data").textContent));
  document.documentElement.dataset.ready = "true";
} catch (error) {
  const said =
    "This page could not be drawn. It needs a browser of 2023 or newer. 页面无法显示，请使用 2023 年或更新的浏览器。";
  root.append(element("p", { class: "why" }, said, " ", element("code", {}, `${error}`)));
  throw error;
}
