// The stage: a canvas with the card of every rank, and the messages that travel between them.
//
// Cards, cells and arcs change only from step to step: they are painted into a separate picture. A frame of the
// animation is that picture with the messages on top.

import { headOf, inCard, localArc, middleOf, pathOf, pointOn, traceArc } from "./arcs.mjs";
import {
  hasTinyCells,
  labelFont,
  labelsOf,
  paintBranches,
  paintCard,
  paintCell,
  paintName,
  paintNameAbove,
  paintNode,
  paintOuterName,
} from "./cards.mjs";
import { arrange, cellBox } from "./layouts.mjs";
import { badgeCorner, badgeRadius, clearProgress, MOST_IN_A_BUNDLE, textBoxes } from "./name_boxes.mjs";
import { paints } from "./palette.mjs";

const MOST_ROOMY = 6; // messages that are drawn with all of their text
const MOST_CHIPS = 12; // messages that are drawn with their contents, if all ranks send several at once
const MAGNIFICATIONS = [2.8, 2.5, 2.2, 2, 1.8, 1.6, 1.4, 1.2]; // of a presentation: the first that leaves enough room
const LEGIBLE = { width: 58, height: 17 }; // a cell with room for its text
const MOST_OUTLINED = 500; // messages that are drawn as dots with an outline each

export class Stage {
  /** `look` is called for every frame: { layout, numbers, rank, names } (cards.mjs explains them). */
  constructor(canvas, scene, look) {
    this.canvas = canvas;
    this.scene = scene;
    this.look = look;
    this.base = document.createElement("canvas");
    this.painted = "";
    this.ways = new Map();
    this.corners = new Map();
    this.resize();
  }

  /** Adapt to the room that the canvas has on the page. */
  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width < 10 || height < 10) return;
    const ratio = globalThis.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.base]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const magnified = (zoom) => {
      this.zoom = zoom;
      this.ratio = ratio * zoom;
      this.room = { width: width / zoom, height: height / zoom };
      this.refresh();
      const { cell } = this.plan.form;
      return cell.width >= LEGIBLE.width && cell.height >= LEGIBLE.height;
    };
    const presented = document.documentElement.dataset.mode === "present";
    if (!(presented && MAGNIFICATIONS.some(magnified))) magnified(1);
  }

  /** Take a room that is not on the page, for a picture on paper or in a file, and its colours. */
  fit(room, paint) {
    Object.assign(this, { room, zoom: 1, ratio: 1 });
    this.refresh();
    this.paint = paint;
  }

  /** Paint a view with any pen, such as that of svg_pen.mjs. */
  paintOn(pen, view) {
    const look = this.look();
    this.paintRest(pen, view, look);
    this.paintMessages(pen, view, look);
  }

  /** Compute all positions again, after a change of layout, language or theme. */
  refresh() {
    if (!this.room) return;
    const { layout } = this.look();
    const plan = arrange(this.scene, layout, this.room, this.ring());
    plan.room = this.room;
    plan.middle = { x: this.room.width / 2, y: this.room.height / 2 };
    const radius = Math.hypot(plan.places[0].x - plan.middle.x, plan.places[0].y - plan.middle.y);
    plan.inner = plan.radial ? radius - plan.form.height / 2 : radius;
    this.plan = plan;
    this.paint = paints(document.documentElement);
    this.ways.clear();
    this.corners.clear();
    this.painted = "";
  }

  /** Paint a view (see views.mjs). */
  draw(view) {
    if (!this.room) return;
    const look = this.look();
    const key = `${view.states} ${view.moving ? "" : view.level} ${flyingIds(view)} ${look.rank} ${look.numbers} ${view.away} ${view.loads}`;
    if (key !== this.painted) {
      this.paintBase(view, look);
      this.painted = key;
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.base, 0, 0);
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.paintMessages(pen, view, look);
  }

  /** Paint the messages in flight: with their contents if there is room, otherwise as dots. */
  paintMessages(pen, view, look) {
    const small = this.plan.form.small && this.plan.form.cell.width < 24;
    const crowd = view.flying.length > MOST_CHIPS && view.flying.length > 2 * this.scene.size;
    if (this.plan.radial || small || crowd) this.paintDots(pen, view, look);
    else {
      const roomy = view.flying.length <= MOST_ROOMY;
      const texts = view.moving ? [] : textBoxes(this, view);
      const boxes = view.flying.map((flight) => {
        const progress = texts.length ? clearProgress(this, pen, flight, look, roomy, texts) : flight.progress;
        return this.paintChip(pen, { ...flight, progress }, look, roomy);
      });
      for (let rank = 0; rank < this.scene.size; rank++) paintNameAbove(pen, this, rank, look, boxes);
    }
  }

  /** The rank and slot at a point of the canvas: { rank, slot }, with slot null beside the cells; null outside all
   * cards. */
  at(position) {
    if (!this.plan) return null;
    const { form } = this.plan;
    const point = { x: position.x / this.zoom, y: position.y / this.zoom };
    for (let rank = 0; rank < this.scene.size; rank++) {
      const inside = inCard(this.plan, rank, point);
      if (inside.x < 0 || inside.y < 0 || inside.x > form.width || inside.y > form.height) continue;
      for (let slot = 0; slot < this.scene.slots; slot++) {
        const box = cellBox(form, slot);
        const here = inside.x - box.x;
        const down = inside.y - box.y;
        if (here >= 0 && here < box.width && down >= 0 && down < box.height) return { rank, slot };
      }
      return { rank, slot: null };
    }
    return null;
  }

  /** Whether cells are too small for one segment per rank. */
  hasTinyCells() {
    return Boolean(this.plan) && hasTinyCells(this.scene, this.plan.form.cell);
  }

  /** The centre of a cell on the canvas. */
  middle(rank, slot) {
    const { x, y } = middleOf(this.plan, rank, [slot]);
    return { x: x * this.zoom, y: y * this.zoom };
  }

  paintBase(view, look) {
    const pen = this.base.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.base.width, this.base.height);
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.paintRest(pen, view, look);
  }

  /** Paint everything but the messages in flight. */
  paintRest(pen, view, look) {
    const changed = changedSlots(view);
    this.plan.boxes.forEach((box, node) => {
      paintNode(pen, box, look.names.node(node), this.paint);
    });
    this.paintBelow(pen, view, look);
    for (let rank = 0; rank < this.scene.size; rank++) {
      const place = this.plan.places[rank];
      pen.save();
      pen.translate(place.x, place.y);
      pen.rotate(place.turn);
      pen.translate(-this.plan.form.width / 2, -this.plan.form.height / 2);
      if (view.away?.includes(rank)) pen.globalAlpha = 0.35; // it has not entered the call yet
      paintCard(pen, this, rank, this.scene.rows[rank][view.states[rank]], look, changed);
      const away = pen.globalAlpha < 1;
      pen.globalAlpha = 1;
      // Which rank is awaited must be readable.
      if (away && !place.name) paintName(pen, this, rank, look, this.paint.muted);
      pen.restore();
      if (place.name) paintOuterName(pen, this, rank, look);
    }
    for (const local of view.locals) this.paintLocal(pen, local);
    for (const message of view.arrived) this.paintArc(pen, message, look, false);
    for (const { message, stuck } of view.flying) this.paintArc(pen, message, look, stuck);
  }

  /** The form of a ring of many ranks (layouts.mjs): the stage of a network has names around it and roads inside. */
  ring() {
    return {};
  }

  /** What lies below the cards: the branches of a tree here, links on the stage of a network. */
  paintBelow(pen, _view, look) {
    if (look.layout === "tree") paintBranches(pen, this.plan, this.scene.layout.parents, this.paint);
  }

  pathOf(message) {
    let way = this.ways.get(message.id);
    if (!way) {
      way = pathOf(this.plan, message);
      this.ways.set(message.id, way);
    }
    return way;
  }

  /** The corner of the badge of a message, the same on its whole way. */
  cornerOf(pen, message, look, radius, roomy) {
    const key = `${message.id} ${look.numbers} ${roomy}`;
    if (!this.corners.has(key)) this.corners.set(key, badgeCorner(this, pen, message, look, radius, roomy));
    return this.corners.get(key);
  }

  colourOf(message, stuck) {
    return stuck ? this.paint.wrong : message.reduce ? this.paint.reduce : this.paint.copy;
  }

  paintArc(pen, message, look, stuck) {
    const way = this.pathOf(message);
    const many = this.scene.size > 16;
    pen.save();
    pen.globalAlpha = isUnrelated(look, message) ? 0.16 : many ? 0.5 : 0.8;
    pen.strokeStyle = pen.fillStyle = this.colourOf(message, stuck);
    pen.lineWidth = many ? 1 : 1.8;
    if (!message.reduce) pen.setLineDash(many ? [3, 3] : [6, 4]);
    pen.beginPath();
    traceArc(pen, way);
    pen.stroke();
    pen.setLineDash([]);
    traceHead(pen, way, many ? 5 : 9);
    pen.fill();
    pen.restore();
  }

  /** Without room for more, messages are dots; all dots of one colour are painted at once. */
  paintDots(pen, view, look) {
    const radius = this.scene.size > 32 ? 3 : 4.5;
    const groups = new Map();
    for (const { message, progress, stuck } of view.flying) {
      const key = `${this.colourOf(message, stuck)} ${isUnrelated(look, message) ? 0.3 : 1}`;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(pointOn(this.pathOf(message), Math.max(0, Math.min(1, progress))));
    }
    pen.strokeStyle = this.paint.surface;
    pen.lineWidth = 1.5;
    for (const [key, points] of groups) {
      const [colour, strength] = key.split(" ");
      pen.globalAlpha = Number(strength);
      pen.fillStyle = colour;
      pen.beginPath();
      for (const { x, y } of points) {
        pen.moveTo(x + radius, y);
        pen.arc(x, y, radius, 0, 2 * Math.PI);
      }
      if (points.length <= MOST_OUTLINED) pen.stroke();
      pen.fill();
    }
    pen.globalAlpha = 1;
  }

  /** The cells of a message at a point of its way: { left, top, width, height }, with the height of each. */
  chipBox(pen, message, point, look, roomy) {
    const { cell } = this.plan.form;
    const count = Math.min(message.cells.length, MOST_IN_A_BUNDLE);
    const width =
      count === 1 && cell.height >= 15 ? this.chipWidth(pen, message, look, roomy) : Math.min(84, cell.width * 0.9);
    const height = count > 1 ? Math.max(6, Math.min(cell.height * 0.5, 60 / count)) : cell.height * 0.9;
    const inside = (place, length, room) => Math.max(9, Math.min(room - length - 4, place - length / 2));
    const left = inside(point.x, width, this.room.width);
    const top = inside(point.y, height * count, this.room.height);
    return { left, top, width, height };
  }

  /** Paint a message; return its box, with its badge. */
  paintChip(pen, { message, progress, stuck }, look, roomy) {
    const point = pointOn(this.pathOf(message), Math.max(0, Math.min(1, progress)));
    const colour = this.colourOf(message, stuck);
    pen.save();
    if (isUnrelated(look, message)) pen.globalAlpha = 0.3;
    const shown = message.cells.slice(0, MOST_IN_A_BUNDLE);
    const { left, top, width, height } = this.chipBox(pen, message, point, look, roomy);
    pen.shadowColor = "rgb(0 0 0 / 0.25)";
    pen.shadowBlur = 10;
    pen.shadowOffsetY = 2;
    pen.fillStyle = this.paint.surface;
    pen.beginPath();
    pen.roundRect(left - 2, top - 2, width + 4, height * shown.length + 4, 6);
    pen.fill();
    pen.shadowColor = "transparent";
    shown.forEach((one, at) => {
      const box = { x: left, y: top + at * height, width, height };
      paintCell(pen, this, box, one, look, false);
    });
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    if (!message.reduce) pen.setLineDash([5, 3]);
    pen.beginPath();
    pen.roundRect(left - 2, top - 2, width + 4, height * shown.length + 4, 6);
    pen.stroke();
    pen.setLineDash([]);
    const radius = badgeRadius(this);
    const right = this.cornerOf(pen, message, look, radius, roomy) === "right";
    this.paintBadge(pen, { x: right ? left + width + 2 : left - 2, y: top - 2 }, radius, message.reduce, colour);
    pen.restore();
    const [reach, high] = [radius + 3, height * shown.length];
    return { left: left - reach, top: top - reach, right: left + width + reach, bottom: top + high + reach };
  }

  /** As wide as its text; `roomy`: the whole expression if it fits into a cell, else a short one. */
  chipWidth(pen, message, look, roomy) {
    const { cell } = this.plan.form;
    pen.font = labelFont(Math.min(16, cell.height * 0.52));
    const widths = labelsOf(this.scene, message.cells[0], look).map((text) => pen.measureText(text).width + 14);
    const wanted = roomy ? widths.find((width) => width <= cell.width) : Math.min(...widths);
    return Math.min(cell.width * 0.95, Math.max(38, wanted ?? cell.width));
  }

  /** The badge at the corner of a message: + if it will be added, = if it will be stored. */
  paintBadge(pen, corner, radius, reduce, colour) {
    pen.fillStyle = colour;
    pen.beginPath();
    pen.arc(corner.x, corner.y, radius, 0, 2 * Math.PI);
    pen.fill();
    pen.strokeStyle = this.paint.surface;
    pen.lineWidth = radius / 4;
    pen.beginPath();
    const long = radius / 2;
    if (reduce) {
      pen.moveTo(corner.x - long, corner.y);
      pen.lineTo(corner.x + long, corner.y);
      pen.moveTo(corner.x, corner.y - long);
      pen.lineTo(corner.x, corner.y + long);
    } else {
      for (const down of [-long / 2, long / 2]) {
        pen.moveTo(corner.x - long, corner.y + down);
        pen.lineTo(corner.x + long, corner.y + down);
      }
    }
    pen.stroke();
  }

  /** A copy or combine inside a card: a small arc from cell to cell. */
  paintLocal(pen, local) {
    if (this.plan.form.small) return;
    pen.save();
    pen.strokeStyle = pen.fillStyle = local.reduce ? this.paint.reduce : this.paint.copy;
    pen.lineWidth = 1.6;
    local.chunks.forEach((chunk, at) => {
      const { begin, bend, end } = localArc(this.plan, local.rank, chunk, local.into[at]);
      if (!local.reduce) pen.setLineDash([4, 3]);
      pen.beginPath();
      pen.moveTo(begin.x, begin.y);
      pen.quadraticCurveTo(bend.x, bend.y, end.x, end.y);
      pen.stroke();
      pen.setLineDash([]);
      pen.beginPath();
      pen.arc(end.x, end.y, 2.6, 0, 2 * Math.PI);
      pen.fill();
    });
    pen.restore();
  }
}

/** Trace the head of an arrow at the end of a path. */
export function traceHead(pen, way, length) {
  const { x, y, angle } = headOf(way);
  pen.beginPath();
  pen.moveTo(x, y);
  for (const turn of [2.7, -2.7])
    pen.lineTo(x + length * Math.cos(angle + turn), y + length * Math.sin(angle + turn));
  pen.closePath();
}

/** Whether another rank than those of a message is selected. */
export function isUnrelated(look, message) {
  return look.rank !== null && look.rank !== message.src && look.rank !== message.dst;
}

function flyingIds(view) {
  return view.level ?? view.flying.map(({ message }) => message.id).join();
}

/** The slots that the last step wrote, as "rank slot". */
function changedSlots(view) {
  const changed = new Set();
  if (view.moving) return changed;
  for (const message of view.arrived) for (const slot of message.into) changed.add(`${message.dst} ${slot}`);
  for (const local of view.locals) for (const slot of local.into) changed.add(`${local.rank} ${slot}`);
  return changed;
}
