// The timeline: a canvas with a row for each rank, and time from left to right.
//
// Everything but the playhead is painted into a separate picture, which is repainted only when it changes.

import { paints } from "../common/palette.mjs";
import { marksOf } from "../common/time_axis.mjs";
import { doing } from "./communicator.mjs";
import { FONT, paintOps, paintTransfers, paintVisits, paintWaits } from "./timeline_bars.mjs";
import { paintMessages, paintPath, paintTransferArrows } from "./timeline_lines.mjs";

const AXIS = 24; // the marks of the axis
const STRIP = 20; // the names of the calls
const BELOW = 8;
const NARROW = 560; // pixels; below that, the names of ranks are shorter

export class Timeline {
  /** `look` is called for every frame: { group, range, call, rank, words, now }; `now`: the playhead, or null. */
  constructor(canvas, look) {
    this.canvas = canvas;
    this.look = look;
    this.base = document.createElement("canvas");
    this.messages = { shown: 0, all: 0, ofCall: false };
    this.transfers = { shown: 0, all: 0 };
    this.painted = "";
  }

  /** Adapt to the room that the canvas has on the page; its height follows from its rows. */
  resize() {
    const { group } = this.look();
    const width = this.canvas.clientWidth;
    if (width < 10) return;
    this.row = Math.max(4, Math.min(width < NARROW ? 40 : 46, 560 / group.size));
    const height = AXIS + STRIP + this.row * group.size + BELOW;
    this.canvas.style.height = `${height}px`;
    this.ratio = globalThis.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.base]) {
      canvas.width = Math.round(width * this.ratio);
      canvas.height = Math.round(height * this.ratio);
    }
    this.left = width < NARROW ? 50 : 92;
    this.width = width - this.left;
    this.height = height;
    this.refresh();
  }

  /** Repaint with other colours or in another language. */
  refresh() {
    this.paint = paints(document.documentElement);
    this.patterns = new Map();
    this.painted = "";
  }

  /** The x coordinate of a moment, in pixels. */
  x(moment) {
    const { from, to } = this.range;
    return this.left + ((moment - from) / (to - from)) * this.width;
  }

  /** The moment at an x coordinate. */
  momentAt(x) {
    const { from, to } = this.look().range;
    return from + ((x - this.left) / this.width) * (to - from);
  }

  /** The top of the row of a rank. */
  y(rank) {
    return AXIS + STRIP + rank * this.row;
  }

  /** The event at a point: { rank, moment, found } (see `doing`), rank null above the rows; null beside them. */
  at({ x, y }) {
    const { group, range } = this.look();
    if (x < this.left || y < 0 || y > this.height - BELOW) return null;
    const moment = this.momentAt(x);
    if (y < AXIS + STRIP) return { rank: null, moment, found: null };
    const rank = Math.min(group.size - 1, Math.floor((y - AXIS - STRIP) / this.row));
    const slack = (2 * (range.to - range.from)) / this.width;
    return { rank, moment, found: doing(group, rank, moment, slack) };
  }

  draw() {
    if (!this.row) return;
    const look = this.look();
    this.range = look.range;
    const key = `${look.range.from} ${look.range.to} ${look.call?.at} ${look.rank}`;
    if (key !== this.painted) {
      this.paintBase(look);
      this.painted = key;
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.base, 0, 0);
    if (look.now === null) return;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.paintPlayhead(pen, this.x(look.now));
  }

  paintPlayhead(pen, x) {
    if (x < this.left - 1 || x > this.left + this.width + 1) return;
    pen.strokeStyle = pen.fillStyle = this.paint.accent;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(x, AXIS - 4);
    pen.lineTo(x, this.height - 2);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x - 6, AXIS - 11);
    pen.lineTo(x + 6, AXIS - 11);
    pen.lineTo(x, AXIS - 1);
    pen.closePath();
    pen.fill();
  }

  paintBase(look) {
    const pen = this.base.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.base.width, this.base.height);
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.textBaseline = "middle";
    this.paintRows(pen, look);
    pen.save();
    pen.beginPath();
    pen.rect(this.left, 0, this.width, this.height);
    pen.clip();
    this.paintCalls(pen, look);
    this.labels = []; // of waits; painted last, so that no arrow crosses them
    for (let rank = 0; rank < look.group.size; rank++) {
      paintVisits(pen, this, look, rank);
      paintWaits(pen, this, look, rank);
      paintOps(pen, this, look, rank);
      paintTransfers(pen, this, look, rank);
    }
    this.messages = paintMessages(pen, this, look);
    this.transfers = paintTransferArrows(pen, this, look);
    paintPath(pen, this, look);
    for (const label of this.labels) label();
    this.paintAxis(pen, look);
    pen.restore();
  }

  /** The rows with the names of their ranks; the row of the slow rank is marked. */
  paintRows(pen, { group, words, rank: chosen }) {
    const narrow = this.left < 60;
    for (let rank = 0; rank < group.size; rank++) {
      const top = this.y(rank);
      const slow = rank === group.slow;
      if (slow) {
        pen.fillStyle = this.paint["wrong-paper"];
        pen.fillRect(0, top, this.left + this.width, this.row);
        pen.fillStyle = this.paint.wrong;
        pen.fillRect(0, top, 4, this.row);
      }
      pen.fillStyle = this.paint.line;
      pen.fillRect(0, top, this.left + this.width, this.row >= 8 ? 1 : 0.3);
      // If rows are low, every eighth has its name, except where it would touch that of the slow rank.
      const hidden = rank % 8 || (group.slow !== null && Math.abs(rank - group.slow) * this.row < 11);
      if (this.row < 11 && !slow && hidden) continue;
      const name = narrow ? group.names[rank] : words.rank(group.names[rank]);
      const mark = slow ? words.slowMark : group.missing.includes(rank) ? words.missingMark : "";
      const size = Math.max(9, Math.min(14, this.row * 0.42));
      const middle = top + this.row / 2 - (mark && this.row > 30 ? 7 : 0);
      pen.fillStyle = slow ? this.paint.wrong : rank === chosen ? this.paint.accent : this.paint.ink;
      pen.font = `${slow || rank === chosen ? 700 : 500} ${size}px ${FONT}`;
      pen.fillText(name, 11, middle);
      if (!mark) continue;
      pen.font = `${slow ? 600 : 400} ${Math.max(9, size - 2)}px ${FONT}`;
      if (!slow) pen.fillStyle = this.paint.muted;
      if (this.row > 30) pen.fillText(mark, 11, middle + 15);
      else if (!narrow) pen.fillText(mark, 14 + pen.measureText(`${name}  `).width, middle);
    }
  }

  /** The calls as zones over all rows, with their numbers above; the selected one is highlighted. */
  paintCalls(pen, { group, range, call: chosen, words }) {
    const bottom = this.y(group.size);
    let free = this.left - 10; // the x coordinate at which the next name may begin
    for (const call of group.calls) {
      if (call.end < range.from || call.begin > range.to) continue;
      const here = call === chosen;
      const [begin, end] = [this.x(call.begin), this.x(call.end)];
      if (here) {
        pen.globalAlpha = 0.1;
        pen.fillStyle = this.paint.accent;
        pen.fillRect(begin, AXIS, Math.max(2, end - begin), bottom - AXIS);
        pen.globalAlpha = 1;
        pen.fillRect(begin, AXIS + STRIP - 3, Math.max(2, end - begin), 3);
      } else if (end - begin > 3) {
        pen.fillStyle = this.paint.line;
        pen.fillRect(begin, AXIS + STRIP - 3, end - begin - 1, 3);
      }
      const from = Math.max(begin, this.left + 2);
      const following = group.calls[call.at + 1];
      const room = Math.min(end, following ? this.x(following.begin) : end) - from;
      if (!here && (room < 8 || from < free)) continue;
      pen.font = `${here ? 700 : 500} 11.5px ${FONT}`;
      const long = `${call.number} ${call.label}`;
      const text = pen.measureText(long).width < room ? long : words.call(call.number);
      const name = pen.measureText(text).width < room ? text : `${call.number}`;
      const width = pen.measureText(name).width;
      if (!here && width > room) continue;
      pen.fillStyle = here ? this.paint.accent : this.paint.muted;
      pen.fillText(name, Math.min(from, this.left + this.width - width), AXIS + STRIP / 2 - 2);
      free = from + width + 6;
    }
  }

  band(rank) {
    const high = Math.max(2, this.row * 0.72);
    return { top: this.y(rank) + (this.row - high) / 2, high };
  }

  paintAxis(pen, { group, range }) {
    const { base, marks } = marksOf(range, this.width);
    pen.fillStyle = this.paint.muted;
    pen.font = `400 11px ${FONT}`;
    if (base) pen.fillText(base.text, this.left + 2, AXIS / 2 - 2);
    const taken = base ? this.left + pen.measureText(base.text).width + 10 : this.left - 1;
    for (const { at, text } of marks) {
      const x = this.x(at);
      pen.globalAlpha = 0.5;
      pen.fillStyle = this.paint.line;
      pen.fillRect(x, AXIS - 4, 1, this.y(group.size) - AXIS + 4);
      pen.globalAlpha = 1;
      const width = pen.measureText(text).width;
      if (x - width / 2 < taken || x + width / 2 > this.left + this.width) continue;
      pen.fillStyle = this.paint.muted;
      pen.fillText(text, x - width / 2, AXIS / 2 - 2);
    }
  }
}
