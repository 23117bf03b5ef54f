// The row of a rank on the timeline: its calls, its waits and its ops. Ops narrower than a pixel are merged: the pixel
// has the colour of the longest one.

import { rankColour } from "../common/palette.mjs";
import { between, endOf } from "./communicator.mjs";

export const KIND_COLOURS = {
  send: "series-green",
  receive: "copy",
  reduce: "reduce",
  copy: "series-purple",
  combine: "series-pink",
  results: "series-brown",
};
export const FONT =
  'system-ui, -apple-system, "Segoe UI", "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';
const TEXT = 0.36; // of a band from its top: the height of the names of awaited ranks; the critical path is below

/** The time that a rank spends in calls, and the delay of the slow rank. */
export function paintVisits(pen, timeline, look, rank) {
  const { group, range, words } = look;
  const { top, high } = timeline.band(rank);
  const list = group.rows[rank].entered;
  const [first, last] = between(group, rank, "entered", range.from, range.to);
  let drawn = Number.NEGATIVE_INFINITY;
  for (let place = first; place < last; place++) {
    const at = list[place];
    const begin = timeline.x(group.columns.entered_begin[at]);
    const end = timeline.x(endOf(group, "entered", at));
    const call = group.calls[group.columns.entered_call[at]];
    if (rank === group.slow || (call === look.call && rank === call.culprit)) {
      const before = place > 0 ? endOf(group, "entered", list[place - 1]) : call.begin; // until then it was busy
      const late = words.lateMark(group.columns.entered_begin[at] - call.begin);
      paintLate(pen, timeline, timeline.x(Math.max(before, call.begin)), begin, top, high, late);
    }
    if (end < drawn + 0.5) continue;
    pen.fillStyle = group.columns.entered_failed[at] ? timeline.paint["wrong-paper"] : timeline.paint.cell;
    pen.fillRect(begin, top, Math.max(0.75, end - begin), high);
    if (end - begin > 5) {
      pen.strokeStyle = timeline.paint.line;
      pen.lineWidth = 1;
      pen.strokeRect(begin + 0.5, top + 0.5, end - begin - 1, high - 1);
    }
    drawn = end;
  }
}

function paintLate(pen, timeline, from, to, top, high, text) {
  if (to - from < 0.5) return;
  pen.globalAlpha = 0.2;
  pen.fillStyle = timeline.paint.wrong;
  pen.fillRect(from, top, to - from, high);
  pen.globalAlpha = 1;
  pen.fillRect(from, top + high / 2 - 1, to - from, 2);
  pen.fillRect(from, top, 1.5, high);
  const begin = Math.max(from, timeline.left);
  const end = Math.min(to, timeline.left + timeline.width);
  pen.font = `600 ${Math.min(12, high * 0.5)}px ${FONT}`;
  const width = pen.measureText(text).width;
  if (end - begin < width + 12 || high < 14) return;
  const { font } = pen;
  const [left, middle] = [(begin + end - width) / 2, top + high / 2];
  timeline.labels.push(() => {
    pen.font = font;
    pen.fillStyle = timeline.paint["wrong-paper"];
    pen.fillRect(left - 4, middle - 8, width + 8, 16);
    pen.fillStyle = timeline.paint.wrong;
    pen.fillText(text, left, middle + 0.5);
  });
}

/** The waits of a rank, with the ranks that it waits for. */
export function paintWaits(pen, timeline, { group, range, words }, rank) {
  const { top, high } = timeline.band(rank);
  const { columns } = group;
  const list = group.rows[rank].wait;
  const [first, last] = between(group, rank, "wait", range.from, range.to);
  let drawn = Number.NEGATIVE_INFINITY;
  for (let place = first; place < last; place++) {
    const at = list[place];
    const begin = timeline.x(columns.wait_begin[at]);
    const end = timeline.x(endOf(group, "wait", at));
    if (end < drawn + 0.75) continue;
    drawn = end;
    const peer = columns.wait_peer[at];
    const wide = end - begin > 3; // narrower stripes would not be visible
    pen.fillStyle = wide ? hatch(pen, timeline, peer, group.size) : timeline.paint.line;
    pen.fillRect(begin, top + 1, Math.max(0.75, end - begin), high - 2);
    if (high < 14 || end - begin < 26) continue;
    const from = Math.max(begin, timeline.left);
    const to = Math.min(end, timeline.left + timeline.width);
    pen.font = `500 ${Math.min(11.5, high * 0.5)}px ${FONT}`;
    const fits = (one) => pen.measureText(one).width + 12 <= to - from;
    const text = words.waitsFor(group.names[peer]).find(fits);
    if (!text) continue;
    const { font } = pen;
    const width = pen.measureText(text).width;
    const left = (from + to - width) / 2;
    timeline.labels.push(() => {
      pen.font = font;
      pen.fillStyle = timeline.paint.cell;
      pen.globalAlpha = 0.85;
      pen.fillRect(left - 4, top + high * TEXT - 8, width + 8, 16);
      pen.globalAlpha = 1;
      pen.fillStyle = timeline.paint.muted;
      pen.fillText(text, left, top + high * TEXT + 0.5);
    });
  }
}

/** Stripes in the colour of the awaited rank. */
function hatch(pen, timeline, peer, size) {
  if (!timeline.patterns.has(peer)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const small = tile.getContext("2d");
    small.strokeStyle = rankColour(peer, size);
    small.globalAlpha = 0.5;
    small.lineWidth = 1.6;
    small.beginPath();
    for (const shift of [-8, 0, 8]) {
      small.moveTo(shift - 1, 9);
      small.lineTo(shift + 9, -1);
    }
    small.stroke();
    timeline.patterns.set(peer, pen.createPattern(tile, "repeat"));
  }
  return timeline.patterns.get(peer);
}

/** The ops of a rank. */
export function paintOps(pen, timeline, { group, range }, rank) {
  const { top, high } = timeline.band(rank);
  const { columns, details } = group;
  const list = group.rows[rank].op;
  const [first, last] = between(group, rank, "op", range.from, range.to);
  const perPixel = (range.to - range.from) / timeline.width;
  let [pixel, widest, most, all] = [Number.NaN, "", 0, 0]; // what is merged into this pixel
  const flush = () => {
    if (!all) return;
    pen.globalAlpha = Math.max(0.35, Math.min(1, all / perPixel));
    pen.fillStyle = colourOf(timeline, widest);
    pen.fillRect(pixel, top, 1, high);
    pen.globalAlpha = 1;
    [widest, most, all] = ["", 0, 0];
  };
  for (let place = first; place < last; place++) {
    const at = list[place];
    const [kind] = details[columns.op_detail[at]];
    const begin = timeline.x(columns.op_begin[at]);
    const ns = Math.max(1, columns.op_end[at]);
    const width = ns / perPixel;
    if (width < 1) {
      if (Math.floor(begin) !== pixel) flush();
      pixel = Math.floor(begin);
      all += ns;
      if (ns > most) [widest, most] = [kind, ns];
      continue;
    }
    flush();
    pen.fillStyle = colourOf(timeline, kind);
    if (width < 4) {
      pen.fillRect(begin, top, width, high);
      continue;
    }
    pen.beginPath();
    pen.roundRect(begin, top, width - 0.75, high, Math.min(3, width / 3));
    pen.fill();
  }
  flush();
}

function colourOf(timeline, kind) {
  return timeline.paint[KIND_COLOURS[kind] ?? "muted"];
}

/** Send and recv outside of calls: a line below the calls. */
export function paintTransfers(pen, timeline, { group, range }, rank) {
  const list = group.rows[rank].transfer;
  const [first, last] = between(group, rank, "transfer", range.from, range.to);
  const high = Math.max(1, timeline.row * 0.1);
  for (let place = first; place < last; place++) {
    const at = list[place];
    pen.fillStyle = group.columns.transfer_sending[at] ? timeline.paint["series-green"] : timeline.paint.copy;
    const begin = timeline.x(group.columns.transfer_begin[at]);
    pen.fillRect(
      begin,
      timeline.y(rank) + timeline.row - high,
      Math.max(1.5, timeline.x(endOf(group, "transfer", at)) - begin),
      high,
    );
  }
}
