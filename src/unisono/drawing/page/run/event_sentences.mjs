// Sentences about points of the timeline, about waits, and about the critical path of a call. Sentences that the
// terminal prints too come with the data of the page (unisono/tracing/sentences.py).

import { bytesText, durationText } from "../common/units.mjs";
import { endOf } from "./communicator.mjs";

const MOST_STRETCHES = 12;

/** Fill in a template such as { en: "rank {rank} was slow", zh: … }. */
function say(template, language, parameters) {
  return template[language].replaceAll(/\{(\w+)\}/g, (_, name) => parameters[name]);
}

/** Describe how long a rank waited for another one, directly or because of it. */
export function pairSentence(group, { waiter, peer, ns }, direct, language) {
  const names = { rank: group.names[waiter], cause: group.names[peer], time: durationText(ns) };
  const { pair, pairIndirect } = group.sentences;
  return direct
    ? say(pair, language, { ...names, direct: durationText(direct) })
    : say(pairIndirect, language, names);
}

/** The lines about an event of a rank: { name, at }, as returned by `doing`. */
export function linesAbout(group, { name, at }, w, language) {
  const { columns, names } = group;
  const who = names[columns[`${name}_rank`][at]];
  const long = columns[`${name}_end`][at];
  if (name === "op") return opLines(group, at, w, language);
  if (name === "wait") {
    const reason = w.reasons[group.reasons[columns.wait_reason[at]]];
    return [`${reason(who, names[columns.wait_peer[at]])} (${durationText(long)})`];
  }
  if (name === "transfer") {
    const said = w.transfer(who, names[columns.transfer_peer[at]], columns.transfer_sending[at] === 1);
    return [`${said} (${durationText(long)})`, bytesText(columns.transfer_bytes[at])];
  }
  const call = group.calls[columns.entered_call[at]];
  const more = [columns.entered_background[at] ? w.background : "", columns.entered_failed[at] ? w.failed : ""];
  return [
    w.inCall(who, `${w.call(call.number)}, ${call.label}`),
    [durationText(long), ...more.filter(Boolean)].join(" · "),
  ];
}

function opLines(group, at, w, language) {
  const { columns } = group;
  const [, , chunks, bytes] = group.details[columns.op_detail[at]];
  const call = group.calls[columns.op_call[at]];
  const facts = [w.call(call.number)];
  if (chunks) facts.push(w.chunks(chunks));
  if (bytes) facts.push(bytesText(bytes));
  if (call.passes > 1) facts.push(w.pass(columns.op_pass[at]));
  const lines = [workSentence(group, at, columns.op_end[at], language), facts.join(" · ")];
  const waits = waitsBefore(group, at);
  if (waits.length) {
    const ns = waits.reduce((sum, one) => sum + columns.wait_end[one], 0);
    const whom = [...new Set(waits.map((one) => group.names[columns.wait_peer[one]]))].join(", ");
    lines.push(w.waitedBefore(ns, whom));
  }
  return lines;
}

/** The waits of an op: those of its rank between it and the op before. */
function waitsBefore(group, op) {
  const { columns } = group;
  const rank = columns.op_rank[op];
  const begin = columns.op_begin[op];
  const { op: ops, wait: waits } = group.rows[rank];
  const place = ops.indexOf(op);
  const since = place > 0 ? endOf(group, "op", ops[place - 1]) : Number.NEGATIVE_INFINITY;
  return Array.from(waits).filter((at) => {
    const over = endOf(group, "wait", at);
    return columns.wait_call[at] === columns.op_call[op] && over <= begin + 1 && columns.wait_begin[at] >= since - 1;
  });
}

function workSentence(group, op, ns, language) {
  const { columns, names } = group;
  const [kind, , , , sources, to] = group.details[columns.op_detail[op]];
  const listed = (ranks) => ranks.map((rank) => names[rank]).join(", ");
  let work = group.kinds[kind]?.[language] ?? kind;
  if (sources.length) work = say(group.sentences.from, language, { work, ranks: listed(sources) });
  if (to.length) work = say(group.sentences.to, language, { work, ranks: listed(to) });
  return say(group.sentences.work, language, { rank: names[columns.op_rank[op]], work, time: durationText(ns) });
}

/** Describe a part of a critical path. */
function stretchSentence(group, at, language) {
  const { columns, names } = group;
  const what = group.whats[columns.path_what[at]];
  const ns = columns.path_end[at];
  if (what === "work") return workSentence(group, columns.path_op[at], ns, language);
  const call = group.calls[columns.path_call[at]];
  return say(group.sentences[what], language, {
    rank: names[columns.path_rank[at]],
    time: durationText(ns),
    late: durationText(columns.path_begin[at] - call.begin),
  });
}

/** The critical path of a call: its first stretch and the longest others, in order, as [{ at, text }]. */
export function pathLines(group, call, language) {
  const { columns } = group;
  const path = Array.from(group.pathsOf[call.at]);
  const longest = path.slice(1).sort((one, other) => columns.path_end[other] - columns.path_end[one]);
  const shown = [...path.slice(0, 1), ...longest.slice(0, MOST_STRETCHES - 1)].sort((one, other) => one - other);
  const lines = shown.map((at) => ({ at, text: stretchSentence(group, at, language) }));
  if (shown.length < path.length) {
    const total = (list) => list.reduce((sum, at) => sum + columns.path_end[at], 0);
    const rest = { count: path.length - shown.length, time: durationText(total(path) - total(shown)) };
    lines.push({ at: null, text: say(group.sentences.shorter, language, rest) });
  }
  return lines;
}
