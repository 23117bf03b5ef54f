// The clock of a replay: the times of all events of a call, and the mapping of slider positions (0 to 100) to these
// times. If one rank comes late, nothing moves for most of a call: such intervals are shown faster.

import { POSITIONS } from "../common/moment_player.mjs";
import { inChannelOrder } from "../common/replay.mjs";
import { endOf, visitsOf } from "./communicator.mjs";

const MOST_IDLE = 0.2; // the share of the positions for intervals in which no rank does anything

/** The times at which every message was sent and received and every step finished, since the call began; for viewAtTime.
 * */
export function timesOf(group, call, scene) {
  const { columns } = group;
  const sent = new Float64Array(scene.messages.length).fill(Number.POSITIVE_INFINITY);
  const got = sent.slice();
  inChannelOrder(scene.messages).forEach(({ id }, at) => {
    const place = call.firstMessage + at;
    if (columns.time_sent[place] < 0) return; // empty: it was not sent
    sent[id] = columns.time_sent[place];
    got[id] = sent[id] + columns.time_taken[place];
  });
  let start = call.firstStep;
  const finished = scene.steps.map(({ length }) => {
    start += length;
    return columns.time_finished.subarray(start - length, start);
  });
  return { sent, got, finished, finish: call.end - call.begin };
}

/** Return the clock of a call: { timeAt, positionAt, moments, slower, faster }; times since the call began.
 * `moments`: positions at which something was received. `slower`: how many times slower than in reality the call would
 * be shown in a second; `faster`: how many times faster than the rest idle intervals are shown. */
export function replayClock(group, call, received = []) {
  const length = Math.max(1, call.end - call.begin);
  const stretches = stretchesOf(group, call, length);
  const idle = stretches.reduce((sum, { begin, end, busy }) => sum + (busy ? 0 : end - begin), 0);
  const share = idle < length ? Math.min(MOST_IDLE, idle / length) : 1;
  const perIdle = idle ? (share * POSITIONS) / idle : 0;
  const perBusy = idle < length ? ((1 - share) * POSITIONS) / (length - idle) : 0;
  const times = [0];
  const positions = [0];
  for (const { begin, end, busy } of stretches) {
    times.push(end);
    positions.push(positions[positions.length - 1] + (end - begin) * (busy ? perBusy : perIdle));
  }
  positions[positions.length - 1] = POSITIONS;
  const clock = {
    timeAt: (position) => between(positions, times, position),
    positionAt: (time) => between(times, positions, time),
    slower: perBusy / POSITIONS,
    faster: perIdle && perBusy ? perBusy / perIdle : 1,
  };
  const reached = new Set(Array.from(received, clock.positionAt).filter(Number.isFinite));
  clock.moments = [0, ...[...reached].sort((one, other) => one - other), POSITIONS];
  return clock;
}

/** The waits at a moment of the run, and the ranks that are not in the call: { waits: [[rank, peer]], away: [rank] }. */
export function waitsAt(group, call, moment) {
  const { columns } = group;
  const waits = [];
  for (const at of group.waitsOf[call.at]) {
    if (columns.wait_begin[at] <= moment && moment < endOf(group, "wait", at)) {
      waits.push([columns.wait_rank[at], columns.wait_peer[at]]);
    }
  }
  waits.sort(([one], [other]) => one - other);
  const visits = visitsOf(group, call);
  const away = [...visits.keys()].filter((rank) => !visits[rank] || moment < visits[rank].begin);
  return { waits, away };
}

/** Divide the call into intervals in which some rank does something, and the idle ones between them. */
function stretchesOf(group, call, length) {
  const made = [];
  let reached = 0;
  const add = (end, busy) => {
    const last = made[made.length - 1];
    if (end <= reached) return;
    if (last?.busy === busy) last.end = end;
    else made.push({ begin: reached, end, busy });
    reached = end;
  };
  for (const at of group.opsOf[call.at]) {
    add(Math.min(length, group.columns.op_begin[at] - call.begin), false);
    add(Math.min(length, endOf(group, "op", at) - call.begin), true);
  }
  add(length, false);
  return made;
}

/** The value of a key, by linear interpolation between the known ones. */
function between(keys, values, key) {
  let low = 1;
  let high = keys.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keys[middle] < key) low = middle + 1;
    else high = middle;
  }
  const span = keys[low] - keys[low - 1];
  const part = span > 0 ? (key - keys[low - 1]) / span : 1;
  return values[low - 1] + (values[low] - values[low - 1]) * Math.max(0, Math.min(1, part));
}
