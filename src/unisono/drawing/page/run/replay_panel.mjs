// The replay of a call of a recorded run on the stage, at its real times.

import { contentsPanel } from "../common/contents_panel.mjs";
import { element, fill } from "../common/dom.mjs";
import { LAYOUTS } from "../common/layouts.mjs";
import { legendItems } from "../common/legend.mjs";
import { MomentPlayer, POSITIONS } from "../common/moment_player.mjs";
import { choices } from "../common/playback_bar.mjs";
import { fillBar, playbackButtons, positionSlider, setIcon } from "../common/playback_buttons.mjs";
import { messageSentence } from "../common/sentences.mjs";
import { Stage } from "../common/stage.mjs";
import { stageFigure } from "../common/stage_figure.mjs";
import { watchPointer } from "../common/tip.mjs";
import { few } from "../common/units.mjs";
import { viewAtTime } from "../common/views.mjs";
import { replayClock, timesOf, waitsAt } from "./call_clock.mjs";

const SECONDS = 7; // the duration of a replay at speed 1
const MOST_SENTENCES = 8;

/** Return the replay: { node, story, player, update, draw, resize, refresh, view, now }. */
export function replayPanel(open, state, words) {
  const { figure, canvas, tip, legend } = stageFigure();
  const title = element("h2");
  const whyNot = element("p", { class: "why-not" });
  const heading = element("h2");
  const said = element("div", { class: "said" });
  const live = element("div", { class: "hidden", role: "status", "aria-live": "polite" });
  const contents = element("div");
  const bar = element("section", { class: "controls" });
  const story = element("section", { class: "panel story moment" }, heading, said, live);
  const node = element("div", { class: "main replay" }, title, whyNot, figure, bar, contents);
  const stages = new Map();
  let shown = null; // { call, scene, times, clock, stage, table }
  let told = "";

  const player = new MomentPlayer(state, () => shown?.clock.moments ?? [0], SECONDS);
  const time = () => shown.clock.timeAt(state.get("step"));
  const view = () => {
    const moment = time();
    const ended = state.get("step") >= POSITIONS;
    const seen = viewAtTime(shown.scene, shown.times, ended ? Number.POSITIVE_INFINITY : moment);
    return { ...seen, away: waitsAt(open.group(), shown.call, shown.call.begin + moment).away };
  };
  const look = () => ({
    layout: state.get("layout") ?? shown.scene.layout.best,
    numbers: state.get("numbers"),
    rank: state.get("rank"),
    names: {
      rank: (rank) => words().rank(open.group().names[rank]),
      node: words().node,
      row: (part) => words().row[part],
    },
  });
  const parts = {};

  /** Put another call on the stage; null if that is not possible. */
  const load = (call, scene) => {
    figure.hidden = bar.hidden = story.hidden = contents.hidden = !scene;
    shown = null;
    told = "";
    if (scene) {
      const times = timesOf(open.group(), call, scene);
      shown = { call, scene, times, clock: replayClock(open.group(), call, times.got) };
      if (!stages.has(scene)) stages.set(scene, new Stage(canvas, scene, look));
      shown.stage = stages.get(scene);
      shown.table = contentsPanel(scene, state, words, view);
      fill(contents, shown.table.node);
      shown.stage.resize();
    }
    refresh();
  };

  const refresh = () => {
    const w = words();
    const call = open.call();
    title.textContent = call ? w.replayOf(call.number, call.label) : w.replay;
    whyNot.textContent = call ? (w.whyNot[call.why] ?? "") : w.noCall;
    whyNot.hidden = Boolean(shown);
    told = "";
    if (!shown) return;
    canvas.setAttribute("aria-label", w.replayLabel(call.number, call.label, w.ranks(shown.scene.size)));
    shown.stage.refresh();
    fill(legend, ...legendItems(shown.scene, w, look().layout, shown.stage.hasTinyCells()));
    const buttons = playbackButtons(player, w, () => POSITIONS);
    parts.play = buttons.play;
    parts.slider = positionSlider(player, { max: POSITIONS, "aria-label": w.replay });
    parts.where = element("output", { class: "where", for: "position", "aria-live": "off" });
    const { slower, faster } = shown.clock;
    const speed = (SECONDS * 1e9 * slower) / state.get("speed");
    const note = w.slower(few(Number(speed.toPrecision(2))), faster > 1.5 ? few(Number(faster.toPrecision(2))) : "");
    const shownHow = choices(state, LAYOUTS, w, shown.scene.collective);
    fillBar(bar, { ...parts, buttons, choices: [...shownHow, element("span", { class: "note" }, note)] });
  };

  const draw = () => {
    if (!shown) return;
    const w = words();
    const step = state.get("step");
    const length = shown.call.end - shown.call.begin;
    shown.stage.draw(view());
    const playing = state.get("playing");
    setIcon(parts.play, playing ? "pause" : "play", playing ? w.pause : w.play);
    parts.slider.value = step;
    parts.slider.style.setProperty("--part", `${step}%`);
    parts.where.textContent = w.replayTime(time(), length);
    parts.slider.setAttribute("aria-valuetext", parts.where.textContent);
    tell(w);
    shown.table.update();
  };

  /** Describe the moment in words; announced when nothing moves. */
  const tell = (w) => {
    const lines = momentLines(open.group(), shown, view(), time(), state, w);
    heading.textContent = w.moment(parts.where.textContent);
    const key = lines.join("\n");
    if (key !== told) {
      told = key;
      const list = lines.slice(0, MOST_SENTENCES).map((text) => element("li", {}, text));
      const rest = lines.length - list.length;
      fill(said, element("ul", {}, ...list), rest > 0 ? element("p", { class: "note" }, w.more(rest)) : "");
    }
    const spoken = `${w.moment(parts.where.textContent)}. ${said.textContent}`;
    if (!state.get("playing") && live.textContent !== spoken) live.textContent = spoken;
  };

  watchPointer(canvas, tip, () => shown.stage, state, words, view);
  const resize = () => {
    shown?.stage.resize();
    if (shown) fill(legend, ...legendItems(shown.scene, words(), look().layout, shown.stage.hasTinyCells()));
  };
  const now = () => (shown ? shown.call.begin + time() : null);
  /** The slider position of a moment of the run. */
  const positionAt = (moment) => (shown ? shown.clock.positionAt(moment - shown.call.begin) : 0);
  return {
    node,
    story,
    player,
    load,
    draw,
    resize,
    refresh,
    now,
    positionAt,
    view: () => shown && view(),
    shown: () => shown,
  };
}

function momentLines(group, { scene, call }, view, time, state, w) {
  if (state.get("step") >= POSITIONS) return [w.over];
  const name = (rank) => group.names[rank];
  const rank = state.get("rank");
  const about = (...ranks) => rank === null || ranks.includes(rank);
  const { waits, away } = waitsAt(group, call, call.begin + time);
  const lines = away.length ? [w.away(away.map(name).join(", "), away.length > 1)] : [];
  for (const { message } of view.flying) {
    if (about(message.src, message.dst)) lines.push(messageSentence(scene, message, state.get("lang"), false));
  }
  for (const [waiter, peer] of waits) if (about(waiter)) lines.push(w.waiting(name(waiter), name(peer)));
  return lines.length ? lines : [w.quiet];
}
