// The lines between rows of the timeline: messages, and the critical paths of calls.

import { endOf } from "./communicator.mjs";

const MOST_OF_ALL = 500; // visible messages that are all drawn; with more, only those of the selected call
const MOST_OF_CALL = 1500; // messages of a call that are all drawn; with more, only every n-th
const HEIGHT = 0.76; // of a band: the height of the path, below the text
const NARROWEST = 8; // pixels of the selected call from which its messages and its path are drawn
const NARROWEST_BESIDE = 24; // pixels of another call from which its path is drawn

/** Draw the visible messages; return their numbers: { shown, all, ofCall }. */
export function paintMessages(pen, timeline, { group, range, call }) {
  const inView = (at) => {
    const { columns } = group;
    return (
      columns.op_begin[columns.message_sent[at]] <= range.to &&
      endOf(group, "op", columns.message_received[at]) >= range.from
    );
  };
  const calls = group.calls.filter(({ begin, end }) => begin <= range.to && end >= range.from);
  const many = calls.reduce((sum, { at }) => sum + group.messagesOf[at].length, 0);
  let found = [];
  let ofCall = false;
  if (many <= 20 * MOST_OF_ALL) found = calls.flatMap(({ at }) => Array.from(group.messagesOf[at]).filter(inView));
  const all = found.length || many;
  if (all > MOST_OF_ALL && call) {
    found = Array.from(group.messagesOf[call.at]).filter(inView);
    ofCall = true;
  }
  if (ofCall && timeline.x(call.end) - timeline.x(call.begin) < NARROWEST) found = [];
  const step = Math.ceil(found.length / MOST_OF_CALL);
  let shown = 0;
  pen.save();
  pen.strokeStyle = pen.fillStyle = timeline.paint.muted;
  pen.lineWidth = 1;
  for (let at = 0; at < found.length; at += step) {
    paintMessage(pen, timeline, group, found[at]);
    shown += 1;
  }
  pen.restore();
  return { shown, all, ofCall };
}

function paintMessage(pen, timeline, group, at) {
  const { columns } = group;
  const [sent, received] = [columns.message_sent[at], columns.message_received[at]];
  const arrival = columns.op_begin[received];
  const leaves = Math.min(endOf(group, "op", sent), arrival);
  const [src, dst] = [columns.op_rank[sent], columns.op_rank[received]];
  paintArrow(
    pen,
    timeline,
    { x: timeline.x(leaves), y: edge(timeline, src, dst) },
    { x: timeline.x(arrival), y: edge(timeline, dst, src) },
  );
}

/** Draw messages outside of collectives, unless there are too many; return their numbers: { shown, all }. A recv ends
 * when its message has arrived. */
export function paintTransferArrows(pen, timeline, { group, range }) {
  const { transfer_rank: rank, transfer_begin: begin } = group.columns;
  const inView = ([sent, received]) => begin[sent] <= range.to && endOf(group, "transfer", received) >= range.from;
  const found = group.transferPairs.filter(inView);
  if (found.length > MOST_OF_ALL) return { shown: 0, all: found.length };
  pen.save();
  pen.strokeStyle = pen.fillStyle = timeline.paint.muted;
  pen.lineWidth = 1;
  const place = (moment, row) => ({ x: timeline.x(moment), y: timeline.y(row) + timeline.row });
  for (const [sent, received] of found) {
    const arrival = endOf(group, "transfer", received);
    const leaves = Math.min(endOf(group, "transfer", sent), arrival);
    paintArrow(pen, timeline, place(leaves, rank[sent]), place(arrival, rank[received]));
  }
  pen.restore();
  return { shown: found.length, all: found.length };
}

function paintArrow(pen, timeline, from, to) {
  pen.globalAlpha = 0.75;
  pen.beginPath();
  pen.moveTo(from.x, from.y);
  const bend = (to.y - from.y) * 0.35;
  pen.bezierCurveTo(from.x, from.y + bend, to.x, to.y - bend, to.x, to.y);
  pen.stroke();
  const down = Math.sign(to.y - from.y);
  const tip = Math.min(4.5, timeline.row * 0.12);
  pen.beginPath();
  pen.moveTo(to.x, to.y);
  pen.lineTo(to.x - tip * 0.7, to.y - tip * 1.4 * down);
  pen.lineTo(to.x + tip * 0.7, to.y - tip * 1.4 * down);
  pen.closePath();
  pen.fill();
}

/** The edge of the band of a rank that faces another one. */
function edge(timeline, rank, other) {
  const { top, high } = timeline.band(rank);
  return other > rank ? top + high : top;
}

/** Draw the critical paths of the visible calls, that of the selected one more strongly. */
export function paintPath(pen, timeline, { group, range, call: chosen }) {
  pen.save();
  pen.lineJoin = pen.lineCap = "round";
  for (const call of group.calls) {
    if (call.end < range.from || call.begin > range.to) continue;
    const here = call === chosen;
    const width = timeline.x(call.end) - timeline.x(call.begin);
    if (width < (here ? NARROWEST : NARROWEST_BESIDE)) continue;
    const line = new Path2D();
    let first = true;
    for (const at of group.pathsOf[call.at]) {
      const { columns } = group;
      const { top, high } = timeline.band(columns.path_rank[at]);
      const y = top + high * HEIGHT;
      const begin = timeline.x(columns.path_begin[at]);
      if (first) line.moveTo(begin, y);
      else line.lineTo(begin, y);
      line.lineTo(timeline.x(columns.path_begin[at] + columns.path_end[at]), y);
      first = false;
    }
    pen.globalAlpha = here ? 0.9 : 0.6;
    pen.strokeStyle = timeline.paint.surface;
    pen.lineWidth = here ? 6 : 4;
    pen.stroke(line);
    pen.globalAlpha = here ? 1 : 0.7;
    pen.strokeStyle = timeline.paint.ink;
    pen.lineWidth = here ? 2.8 : 1.6;
    pen.stroke(line);
  }
  pen.restore();
}
