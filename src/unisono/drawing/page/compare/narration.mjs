// What is said about a race: which algorithm leads, and what each one is doing.

import { element, fill } from "../common/dom.mjs";
import { few, secondsText } from "../common/units.mjs";
import { RACE_WORDS } from "./race_words.mjs";

const SAME = 1.0005; // the ratio below which two times are equal

/** The part of the data of an algorithm that has been delivered at a moment, from 0 to 1. */
export function deliveredPart(scene, times, moment) {
  let done = 0;
  let all = 0;
  scene.messages.forEach(({ id, chunks }) => {
    all += chunks.length;
    if (times.got[id] <= moment) done += chunks.length;
  });
  return all ? done / all : 1;
}

/** The phase that an algorithm is in: that of most messages in transit, else of the last step that is done. */
export function currentPhase(scene, view) {
  const counts = new Map();
  const phaseOf = (level) => scene.phases.find(({ first, last }) => level >= first && level <= last);
  for (const { message } of view.flying) {
    const phase = phaseOf(message.sent);
    counts.set(phase, (counts.get(phase) ?? 0) + 1);
  }
  for (const message of view.arrived) {
    const phase = phaseOf(message.got);
    counts.set(phase, (counts.get(phase) ?? 0) + 1);
  }
  if (counts.size) return [...counts].reduce((most, one) => (one[1] > most[1] ? one : most))[0];
  const levels = scene.steps.map((steps, rank) => (view.states[rank] ? steps[view.states[rank] - 1].level : 1));
  return phaseOf(Math.max(1, ...levels));
}

/** The sentences about a race by time: `times` has the times of each algorithm, `moment` is in seconds. */
export function timeSentences(scenes, names, times, moment, language) {
  const w = RACE_WORDS[language];
  if (moment <= 0) return w.startTime;
  const order = names.map((_, at) => at).sort((one, other) => times[one].finish - times[other].finish);
  const best = times[order[0]].finish;
  const isOver = (at) => moment >= times[at].finish * (1 - 1e-9);
  const first = order.filter((at) => times[at].finish <= best * SAME);
  const rest = order.filter((at) => !first.includes(at));
  if (isOver(first[0])) {
    const said = [
      w.finished(
        first.map((at) => names[at]),
        secondsText(best),
      ),
    ];
    const done = rest.filter(isOver).map((at) => [names[at], few(times[at].finish / best)]);
    if (done.length) said.push(w.slower(done));
    const running = rest.filter((at) => !isOver(at));
    if (running.length) said.push(w.others(running.map((at) => [names[at], shareAt(scenes, times, moment, at)])));
    return said.join(w.joint);
  }
  const parts = order.map((at) => Math.round(100 * deliveredPart(scenes[at], times[at], moment)));
  const most = Math.max(...parts);
  const leading = order.filter((_, place) => parts[place] === most).map((at) => names[at]);
  const behind = order.flatMap((at, place) => (parts[place] < most ? [[names[at], percent(parts[place])]] : []));
  behind.sort((one, other) => Number.parseInt(other[1], 10) - Number.parseInt(one[1], 10));
  return [w.leads(leading, percent(most)), ...(behind.length ? [w.others(behind)] : [])].join(w.joint);
}

/** The sentences about algorithms that advance step by step. */
export function stepSentences(scenes, names, step, language) {
  const w = RACE_WORDS[language];
  if (step <= 0) return w.startStep;
  const all = scenes.map(({ levels }, at) => [names[at], levels, Math.max(0, levels - Math.floor(step + 1e-9))]);
  all.sort((one, other) => one[1] - other[1]);
  const running = all.filter(([, , left]) => left > 0);
  if (running.length) {
    const done = all.filter(([, , left]) => left === 0).map(([name, levels]) => [name, levels]);
    const left = running.map(([name, , count]) => [name, count]);
    return [...(done.length ? [w.stepsDone(done)] : []), w.stepsLeft(left)].join(w.joint);
  }
  const fewest = all[0][1];
  const others = all.filter(([, levels]) => levels > fewest).map(([name, levels]) => [name, levels]);
  const first = all.filter(([, levels]) => levels === fewest).map(([name]) => name);
  return [w.fewest(first, fewest), ...(others.length ? [w.steps(others)] : [])].join(w.joint);
}

function shareAt(scenes, times, moment, at) {
  return percent(Math.round(100 * deliveredPart(scenes[at], times[at], moment)));
}

function percent(part) {
  return `${part} %`;
}

/** The panel of the sentences about a race: update(text, position) shows the text and announces both when the position
 * is at rest. */
export function raceNarration(state) {
  const said = element("p");
  const live = element("div", { class: "hidden", role: "status", "aria-live": "polite" });
  const node = element("section", { class: "panel race-said" }, said, live);
  const update = (text, position) => {
    if (said.textContent !== text) said.textContent = text;
    node.classList.toggle("hidden", !text);
    if (state.get("playing")) return;
    const announced = [position, text].filter(Boolean).join(state.get("lang") === "zh" ? "。" : ". ");
    if (live.textContent !== announced) live.textContent = announced;
  };
  return { node, update };
}

/** Fill a paragraph with what an algorithm is doing: its phase and the idea of it; with `ending` when it is done. */
export function describeLane(paragraph, scene, view, language, ending) {
  const key = ending ?? `${language} ${currentPhase(scene, view)?.first}`;
  if (paragraph.dataset.key === key) return;
  paragraph.dataset.key = key;
  if (ending !== null) {
    paragraph.textContent = ending;
    return;
  }
  const phase = currentPhase(scene, view);
  const idea = phase?.idea?.[language] ?? RACE_WORDS[language].transit(view.flying.length);
  const name = phase && scene.phases.length > 1 ? phase.words[language] : "";
  const joint = language === "zh" ? "：" : ": ";
  fill(paragraph, ...(name ? [element("strong", {}, name), joint] : []), idea);
}
