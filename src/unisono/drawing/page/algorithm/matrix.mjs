// The matrix: a row for each rank, a column for each step, a point for what the rank does in it. It works for too many
// ranks for a stage, and shows the pattern of an algorithm at a glance.

import { paints } from "../common/palette.mjs";

const FONT = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "PingFang SC", "Noto Sans CJK SC", sans-serif';
const ROOM = { left: 46, right: 14, top: 26, bottom: 14 };
const ADDED = 0.46; // lightness of data that is added
const STORED = 0.74; // lightness of data that is stored

export class Matrix {
  /** Has the interface of Stage (stage.mjs). */
  constructor(canvas, scene, look) {
    this.canvas = canvas;
    this.scene = scene;
    this.look = look;
    this.resize();
  }

  resize() {
    const room = { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
    if (room.width < 10 || room.height < 10) return;
    this.ratio = globalThis.devicePixelRatio || 1;
    this.canvas.width = Math.round(room.width * this.ratio);
    this.canvas.height = Math.round(room.height * this.ratio);
    this.room = room;
    this.refresh();
  }

  refresh() {
    if (!this.room) return;
    this.paint = paints(document.documentElement);
    this.picture = picture(this.scene, this.paint);
    const { width, height } = this.room;
    const cell = Math.min(96, (width - ROOM.left - ROOM.right) / this.scene.levels);
    const row = Math.min(30, (height - ROOM.top - ROOM.bottom) / this.scene.size);
    this.picture = shrunk(this.picture, cell * this.scene.levels * this.ratio, row * this.scene.size * this.ratio);
    this.box = { x: ROOM.left, y: ROOM.top, width: cell * this.scene.levels, height: row * this.scene.size };
  }

  hasTinyCells() {
    return false;
  }

  /** Paint everything up to the position at full strength, the rest faintly. */
  draw(_view, position) {
    if (!this.room || !this.scene.levels) return;
    const pen = this.canvas.getContext("2d");
    const { box, paint, scene } = this;
    const look = this.look();
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.room.width, this.room.height);
    pen.fillStyle = paint.empty;
    pen.fillRect(box.x, box.y, box.width, box.height);
    const cell = box.width / scene.levels;
    const until = Math.min(scene.levels, position) * cell;
    pen.imageSmoothingEnabled = false;
    pen.globalAlpha = 0.22;
    pen.drawImage(this.picture, box.x, box.y, box.width, box.height);
    pen.globalAlpha = 1;
    pen.save();
    pen.beginPath();
    pen.rect(box.x, box.y, until, box.height);
    pen.clip();
    pen.drawImage(this.picture, box.x, box.y, box.width, box.height);
    pen.restore();
    pen.strokeStyle = paint.line;
    pen.lineWidth = 1;
    pen.strokeRect(box.x - 0.5, box.y - 0.5, box.width + 1, box.height + 1);
    this.paintNames(pen, look);
    pen.fillStyle = paint.ink;
    pen.fillRect(box.x + until - 1, box.y - 5, 2, box.height + 10);
    if (look.rank !== null) {
      const row = box.height / scene.size;
      pen.strokeStyle = paint.ink;
      pen.strokeRect(box.x - 2, box.y + look.rank * row - 0.5, box.width + 4, Math.max(2, row) + 1);
    }
  }

  /** The rank and level at a point. */
  at(point) {
    const { box, scene } = this;
    const rank = Math.floor(((point.y - box.y) / box.height) * scene.size);
    const level = Math.floor(((point.x - box.x) / box.width) * scene.levels) + 1;
    const inside = rank >= 0 && rank < scene.size && level >= 1 && level <= scene.levels;
    return inside ? { rank, slot: null, level } : null;
  }

  paintNames(pen, look) {
    const { box, paint, scene } = this;
    pen.font = `11px ${FONT}`;
    pen.fillStyle = paint.muted;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    const row = box.height / scene.size;
    const every = spacing(scene.size, Math.ceil(16 / row));
    for (let rank = 0; rank < scene.size; rank += every) {
      pen.fillText(`${rank}`, box.x - 8, box.y + (rank + 0.5) * row);
    }
    pen.textAlign = "center";
    const cell = box.width / scene.levels;
    const often = spacing(scene.levels, Math.ceil(44 / cell));
    for (let level = often; level <= scene.levels; level += often) {
      pen.fillText(`${level}`, box.x + (level - 0.5) * cell, box.y - 13);
    }
    pen.textAlign = "right";
    pen.fillText(look.names.ranks, box.x - 8, box.y - 13);
  }
}

/** The smallest round distance between labels that is at least `least`. */
function spacing(count, least) {
  for (const step of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]) if (step >= least) return step;
  return count;
}

/** A picture with a point for each rank and step. A receiver has the hue of the sender, strong if the data is added and
 * pale if it is stored; a rank that only sends, or works alone, is grey. */
function picture(scene, paint) {
  const { columns, size, levels } = scene;
  const colours = [paint.faint, paint.muted].map(bytesOfHex);
  for (let peer = 0; peer < size; peer++)
    colours.push(bytesOfHue(peer / size, STORED), bytesOfHue(peer / size, ADDED));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, levels);
  canvas.height = size;
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(canvas.width, size);
  const paintPoint = (rank, level, colour) => {
    if (level > 0) image.data.set(colours[colour], 4 * (rank * canvas.width + level - 1));
  };
  columns.message_src.forEach((src, id) => {
    paintPoint(src, columns.message_sent[id], 0);
  });
  columns.local_rank.forEach((rank, id) => {
    paintPoint(rank, columns.local_level[id], 1);
  });
  columns.message_src.forEach((src, id) => {
    paintPoint(columns.message_dst[id], columns.message_got[id], 2 + 2 * src + columns.message_reduce[id]);
  });
  pen.putImageData(image, 0, 0);
  return canvas;
}

/** Shrink a picture to the room available: neighbouring points are mixed only if there are too many. */
function shrunk(whole, width, height) {
  const made = document.createElement("canvas");
  made.width = Math.max(1, Math.min(whole.width, Math.round(width)));
  made.height = Math.max(1, Math.min(whole.height, Math.round(height)));
  made.getContext("2d").drawImage(whole, 0, 0, made.width, made.height);
  return made;
}

function bytesOfHex(colour) {
  return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)).concat(255);
}

function bytesOfHue(part, lightness) {
  const chroma = 0.5 * Math.min(lightness, 1 - lightness);
  const channel = (shift) => {
    const at = (shift + part * 12) % 12;
    return Math.round(255 * (lightness - chroma * Math.max(-1, Math.min(at - 3, 9 - at, 1))));
  };
  return [channel(0), channel(8), channel(4), 255];
}
