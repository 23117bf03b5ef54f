// The matrix: a row for each rank, a column for each chunk. Its colour shows how many ranks are summed in the chunk. It
// works for too many ranks for a stage, and shows the pattern of an algorithm at a glance.

import { FONT } from "../common/cards.mjs";
import { slotLabel } from "../common/data_names.mjs";
import { heat, paints, rankColour } from "../common/palette.mjs";
import { Holdings } from "./holdings.mjs";

const TOP = 30; // pixels above the rows, for the names of chunks
const BOTTOM = 10;
const LEFT = 8;
const BETWEEN = 14; // pixels between two parts of the slots, and between two blocks
const NAME = { width: 21, height: 10.5 }; // the room that the number of a rank takes
const MOST_STAGGERED = 3; // numbers of ranks side by side, where rows are lower than a number
const LARGEST = { width: 96, height: 40 }; // a cell
const BLOCKS = [1, 2, 4, 8, 16, 32]; // with few chunks, the ranks are in several blocks of rows
const OUTLINED = 5; // pixels of a cell that has an outline when it is written

export class Matrix {
  /** Has the interface of Stage (stage.mjs). */
  constructor(canvas, scene, look) {
    this.canvas = canvas;
    this.scene = scene;
    this.look = look;
    this.holdings = new Holdings(scene);
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

  /** Take a room that is not on the page, and its colours, as a stage does. */
  fit(room, paint) {
    Object.assign(this, { room, ratio: 2 });
    this.refresh();
    this.paint = paint;
  }

  refresh() {
    if (!this.room) return;
    this.paint = paints(document.documentElement);
    this.plan = BLOCKS.map((blocks) => planOf(this.scene, this.room, blocks)).reduce((best, one) =>
      Math.min(one.cell, one.row) > 1.2 * Math.min(best.cell, best.row) ? one : best,
    );
    this.shown = null;
  }

  hasTinyCells() {
    return true;
  }

  draw(view, position) {
    if (!this.room) return;
    const pen = this.canvas.getContext("2d");
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.room.width, this.room.height);
    this.paintOn(pen, view, position);
  }

  /** Paint what all ranks hold after the last whole step. */
  paintOn(pen, _view, position) {
    const level = Math.floor(position + 1e-9);
    const { paint, plan, scene } = this;
    if (this.shown?.level !== level) this.shown = { level, pictures: this.pictures(level) };
    pen.imageSmoothingEnabled = false;
    for (const [at, block] of plan.blocks.entries()) {
      for (const [index, part] of plan.parts.entries()) {
        const box = [block.x + part.x, TOP, part.count * plan.cell, block.count * plan.row];
        pen.drawImage(this.shown.pictures[at][index], ...box);
        pen.strokeStyle = paint.line;
        pen.lineWidth = 1;
        pen.strokeRect(box[0] - 0.5, box[1] - 0.5, box[2] + 1, box[3] + 1);
      }
    }
    pen.strokeStyle = paint.ink;
    pen.lineWidth = 1.2;
    if (Math.min(plan.cell, plan.row) >= OUTLINED) {
      for (const cell of this.holdings.written(level)) {
        const { x, y } = this.corner(Math.floor(cell / scene.slots), cell % scene.slots);
        pen.strokeRect(x + 0.6, y + 0.6, plan.cell - 1.2, plan.row - 1.2);
      }
    }
    const { rank } = this.look();
    if (rank !== null) {
      const { x, y } = this.corner(rank, 0);
      pen.strokeRect(x - 2, y - 0.5, plan.width + 4, Math.max(2, plan.row) + 1);
    }
    this.paintNames(pen);
  }

  /** The rank and the slot at a point, and what the slot holds. */
  at(point) {
    const { plan, scene } = this;
    for (const block of plan.blocks) {
      const row = Math.floor((point.y - TOP) / plan.row);
      if (row < 0 || row >= block.count) continue;
      for (const part of plan.parts) {
        const column = Math.floor((point.x - block.x - part.x) / plan.cell);
        if (column < 0 || column >= part.count) continue;
        const [rank, slot] = [block.first + row, part.first + column];
        return { rank, slot, held: this.holdings.at(this.shown?.level ?? 0)[rank * scene.slots + slot] };
      }
    }
    return null;
  }

  /** The centre of a cell. */
  middle(rank, slot) {
    const { x, y } = this.corner(rank, slot);
    return { x: x + this.plan.cell / 2, y: y + this.plan.row / 2 };
  }

  corner(rank, slot) {
    const { blocks, parts, cell, row } = this.plan;
    const block = blocks[Math.floor(rank / blocks[0].count)];
    const part = parts.find(({ first, count }) => slot >= first && slot < first + count);
    return { x: block.x + part.x + (slot - part.first) * cell, y: TOP + (rank - block.first) * row };
  }

  paintNames(pen) {
    const { paint, plan } = this;
    const { names } = this.look();
    pen.fillStyle = paint.muted;
    pen.textBaseline = "middle";
    for (const block of plan.blocks) {
      pen.textAlign = "right";
      pen.font = `${Math.min(11, plan.row * plan.staggered * 0.9)}px ${FONT}`;
      for (let at = 0; at < block.count; at += plan.every) {
        const shift = (plan.staggered - 1 - ((at / plan.every) % plan.staggered)) * NAME.width;
        pen.fillText(`${block.first + at}`, block.x - 6 - shift, TOP + (at + 0.5) * plan.row);
      }
      if (this.scene.collective.carries_data)
        for (const part of plan.parts) this.paintChunks(pen, block.x + part.x, part, names);
    }
  }

  paintChunks(pen, left, part, names) {
    const { cell } = this.plan;
    pen.textAlign = "center";
    pen.font = `11px ${FONT}`;
    const widest = pen.measureText(slotLabel(part, part.count - 1)).width + 5;
    const often = spacing(part.count, widest / cell);
    for (let at = 0; at < part.count; at += often) {
      pen.fillText(slotLabel(part, at), left + (at + 0.5) * cell, TOP - 8);
    }
    pen.textAlign = "left";
    pen.font = `10px ${FONT}`;
    pen.fillText(names.row(part.name), left, TOP - 21);
  }

  /** A picture of each part of the slots of each block, with one point for each cell. */
  pictures(level) {
    const { paint, plan, scene } = this;
    const held = this.holdings.at(level);
    const colours = new Map();
    const colourOf = (value) => {
      if (!colours.has(value)) colours.set(value, bytesOf(cellColour(scene, value, paint)));
      return colours.get(value);
    };
    return plan.blocks.map((block) =>
      plan.parts.map((part) => {
        const canvas = document.createElement("canvas");
        Object.assign(canvas, { width: part.count, height: block.count });
        const pen = canvas.getContext("2d");
        const image = pen.createImageData(part.count, block.count);
        for (let row = 0, at = 0; row < block.count; row++) {
          const first = (block.first + row) * scene.slots + part.first;
          for (let column = 0; column < part.count; column++, at += 4) {
            image.data.set(colourOf(held[first + column]), at);
          }
        }
        pen.putImageData(image, 0, 0);
        return shrunk(canvas, part.count * plan.cell * this.ratio, block.count * plan.row * this.ratio);
      }),
    );
  }
}

/** The colour of a slot: of the number of ranks summed in it, or of the rank that its data come from. */
function cellColour(scene, value, paint) {
  if (!value) return paint.empty;
  const { reduces, carries_data: carriesData } = scene.collective;
  if (carriesData && !reduces) return rankColour(value - 1, scene.size);
  return value === scene.size ? paint["done-line"] : heat(Math.min(1, value / scene.size), paint);
}

/** Where the cells are if the ranks are in some blocks side by side. */
function planOf(scene, room, wanted) {
  const count = Math.ceil(scene.size / wanted);
  const blocks = Math.ceil(scene.size / count);
  const row = Math.min(LARGEST.height, (room.height - TOP - BOTTOM) / count);
  const staggered = Math.min(MOST_STAGGERED, Math.ceil(NAME.height / row));
  const every = spacing(count, NAME.height / (row * staggered));
  const gutter = staggered * NAME.width + 8;
  const gaps = BETWEEN * (scene.parts.length - 1);
  const free = (room.width - 2 * LEFT - BETWEEN * (blocks - 1)) / blocks - gutter - gaps;
  const cell = Math.max(0.05, Math.min(LARGEST.width, free / scene.slots));
  const width = cell * scene.slots + gaps;
  const left = Math.max(LEFT, (room.width - blocks * (gutter + width) - BETWEEN * (blocks - 1)) / 2);
  let x = 0;
  const parts = scene.parts.map((part) => {
    const placed = { ...part, x };
    x += part.count * cell + BETWEEN;
    return placed;
  });
  return {
    cell,
    row,
    staggered,
    every,
    width,
    parts,
    blocks: Array.from({ length: blocks }, (_, at) => ({
      first: at * count,
      count: Math.min(count, scene.size - at * count),
      x: left + gutter + at * (gutter + width + BETWEEN),
    })),
  };
}

/** The smallest power of two that is at least `least`: the distance between labels. */
function spacing(count, least) {
  let step = 1;
  while (step < least && step < count) step *= 2;
  return step;
}

/** Shrink a picture to the room available: neighbouring points are mixed only if there are too many. */
function shrunk(whole, width, height) {
  if (whole.width <= width && whole.height <= height) return whole;
  const made = document.createElement("canvas");
  made.width = Math.max(1, Math.min(whole.width, Math.round(width)));
  made.height = Math.max(1, Math.min(whole.height, Math.round(height)));
  made.getContext("2d").drawImage(whole, 0, 0, made.width, made.height);
  return made;
}

const ruler = { pen: null };

/** The bytes of a colour of a style sheet, as a canvas stores them. */
function bytesOf(colour) {
  ruler.pen ??= Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", {
    willReadFrequently: true,
  });
  ruler.pen.fillStyle = colour;
  ruler.pen.fillRect(0, 0, 1, 1);
  return ruler.pen.getImageData(0, 0, 1, 1).data;
}
