// A view: the picture of one moment. It has the state of every rank, the messages in flight with their progress, and
// those that have just arrived.

import { stepsBefore } from "./replay.mjs";

const NEVER = -1;
const STUCK_AT = 0.62; // the fraction of the path where a message that is never received stops

/** The view at a position between level 0 and the last one: 2.5 is halfway through level 3. */
export function viewAtLevel(scene, position) {
  const done = Math.floor(position + 1e-9);
  const moving = position - done > 1e-6;
  const level = moving ? done + 1 : done;
  const states = scene.steps.map((steps) => stepsBefore(steps, done + 1));
  const flying = [];
  const arrived = [];
  for (const message of scene.messages) {
    if (message.sent > level) continue;
    if (message.got === NEVER) {
      flying.push({ message, progress: Math.min(position - message.sent + 1, STUCK_AT), stuck: true });
    } else if (message.got === done && !moving) {
      arrived.push(message);
    } else if (message.got > done) {
      const span = message.got - message.sent + 1;
      flying.push({ message, progress: (position - message.sent + 1) / span, stuck: false });
    }
  }
  const locals = scene.locals.filter((local) => local.level === level);
  return { level, moving, states, flying, arrived, locals, part: moving ? position - done : 1 };
}

/** The view at a moment of a replay with a clock (see clock.mjs). If a call has several passes, `times` has the times of
 * all messages in the first pass, then in the second, and so on. */
export function viewAtTime(scene, times, moment) {
  const states = times.finished.map((finished) => {
    let done = 0;
    while (done < finished.length && finished[done] <= moment) done++;
    return done;
  });
  const flying = [];
  const count = scene.messages.length;
  for (let at = 0; at < times.sent.length; at++) {
    const begin = times.sent[at];
    const end = times.got[at];
    if (begin <= moment && moment < end) {
      const arrived = times.arrived?.[at] ?? end; // from then on its receiver stores or adds it
      const progress = moment < arrived ? (moment - begin) / (arrived - begin) : 1;
      flying.push({ message: scene.messages[at % count], progress, stuck: false, pass: Math.floor(at / count) });
    }
  }
  return { level: null, moving: true, states, flying, arrived: [], locals: [], part: 1 };
}
