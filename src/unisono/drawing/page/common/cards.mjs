// Paints a rank: a card with its name, and a cell for each slot with the ranks that are summed in it.

import { slotLabel } from "./data_names.mjs";
import { expression, shortExpressions } from "./expressions.mjs";
import { cellBox } from "./layouts.mjs";
import { heat, rankColour } from "./palette.mjs";
import { isDone, ranksIn } from "./replay.mjs";
import { OUTER_NAMES } from "./rings.mjs";

export const FONT =
  'system-ui, -apple-system, "Segoe UI", "Noto Sans", "PingFang SC", "Noto Sans CJK SC", sans-serif';

/** Paint the card of a rank with its upper left corner at 0, 0; `look.rank` is the selected one. */
export function paintCard(pen, stage, rank, row, look, changed) {
  const { form, radial } = stage.plan;
  const { paint, scene } = stage;
  const selected = look.rank === rank;
  const wrong = scene.failure?.rank === rank;
  if (!radial) {
    pen.beginPath();
    pen.roundRect(0, 0, form.width, form.height, form.small ? 4 : 10);
    pen.fillStyle = paint.surface;
    pen.fill();
    pen.lineWidth = selected || wrong ? 2.2 : 1;
    pen.strokeStyle = wrong ? paint.wrong : selected ? paint.ink : paint.line;
    pen.stroke();
  }
  if (!stage.plan.places[rank].name) paintName(pen, stage, rank, look, nameColour(stage, rank, look));
  if (form.captions) {
    pen.font = `10px ${FONT}`;
    pen.textAlign = "left";
    pen.textBaseline = "alphabetic";
    pen.fillStyle = paint.muted;
    for (const column of form.columns)
      pen.fillText(look.names.row(column.name), column.left - form.index, form.header + 8);
  }
  row.forEach((cell, slot) => {
    const box = cellBox(form, slot);
    if (form.index) {
      pen.font = `10px ${FONT}`;
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      pen.fillStyle = paint.muted;
      pen.fillText(slotLabel(box.column, slot - box.column.first), box.x - 4, box.y + box.height / 2 + 0.5);
    }
    const done = isDone(scene, rank, slot, cell);
    paintCell(pen, stage, box, cell, look, done);
    if (changed.has(`${rank} ${slot}`) && form.cell.height >= 5) {
      pen.strokeStyle = paint.ink;
      pen.lineWidth = form.small ? 1 : 1.6;
      pen.beginPath();
      pen.roundRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1, radius(box) + 1);
      pen.stroke();
    }
  });
  if (radial && (selected || wrong)) {
    pen.lineWidth = 1.5;
    pen.strokeStyle = wrong ? paint.wrong : paint.ink;
    pen.strokeRect(-1, form.header - 1, form.width + 2, form.height - form.header + 2);
  }
}

/** The colour of the name of a rank. */
function nameColour({ scene, paint }, rank, look) {
  return scene.failure?.rank === rank ? paint.wrong : look.rank === rank ? paint.ink : paint.muted;
}

/** Paint the number of a rank outside of its card, on a circle; upright, in stage coordinates. */
export function paintOuterName(pen, stage, rank, look) {
  const { places } = stage.plan;
  const next = places[(rank + 1) % places.length].name;
  const { x, y } = places[rank].name;
  const apart = places.length > 1 ? Math.hypot(next.x - x, next.y - y) : 99;
  pen.font = `600 ${Math.max(8, Math.min(11, apart * 0.6))}px ${FONT}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillStyle = nameColour(stage, rank, look);
  pen.fillText(`${rank}`, x, y + 0.5);
}

/** Paint the name of a rank on its card. */
export function paintName(pen, stage, rank, look, colour) {
  const { form } = stage.plan;
  const dot = form.small ? 0 : 4;
  const size = form.small ? Math.max(6, Math.min(10, form.width * 0.6, form.header - 3)) : 12.5;
  pen.textBaseline = "middle";
  pen.font = `600 ${size}px ${FONT}`;
  if (form.small) {
    pen.textAlign = "center";
    pen.fillStyle = colour;
    const name = look.names.rank(rank);
    pen.fillText(pen.measureText(name).width <= form.width - 4 ? name : `${rank}`, form.width / 2, form.header / 2);
    return;
  }
  pen.textAlign = "left";
  pen.fillStyle = rankColour(rank, stage.scene.size);
  pen.beginPath();
  pen.arc(form.side + dot, form.header / 2 + 1, dot, 0, 2 * Math.PI);
  pen.fill();
  pen.fillStyle = colour;
  const whole = look.names.rank(rank);
  const room = form.width - 2 * form.side - 3 * dot;
  pen.fillText(pen.measureText(whole).width <= room ? whole : `${rank}`, form.side + 3 * dot, form.header / 2 + 1.5);
}

/** Paint the name of a rank again, above the messages that cover it with their boxes. */
export function paintNameAbove(pen, stage, rank, look, boxes) {
  const { form, places } = stage.plan;
  const place = places[rank];
  if (place.name || place.turn) return;
  const left = place.x - form.width / 2;
  const top = place.y - form.height / 2;
  const covers = (box) =>
    box.left < left + form.width && box.right > left && box.top < top + form.header && box.bottom > top;
  if (!boxes.some(covers)) return;
  pen.save();
  pen.translate(left, top);
  pen.fillStyle = stage.paint.surface;
  pen.beginPath();
  pen.roundRect(1, 1, form.width - 2, form.header - 2, 3);
  pen.fill();
  paintName(pen, stage, rank, look, nameColour(stage, rank, look));
  pen.restore();
}

/** Whether a cell is too small for one segment per rank; its colour then shows the number of ranks. */
export function hasTinyCells(scene, { width, height }) {
  return scene.collective.reduces && (height < 6 || width < 16 || width < 2.2 * scene.size);
}

/** Paint the contents of a slot. */
export function paintCell(pen, stage, box, cell, look, done) {
  const { paint, scene } = stage;
  const inset = box.height >= 5 ? 1 : box.height >= 2 ? 0.25 : 0;
  const inner = {
    x: box.x + inset,
    y: box.y + inset,
    width: box.width - 2 * inset,
    height: box.height - 2 * inset,
  };
  if (box.height < 6 || box.width < 16 || hasTinyCells(scene, box)) {
    pen.fillStyle = tinyColour(stage, cell, done);
    pen.fillRect(inner.x, inner.y, inner.width, inner.height);
    return;
  }
  pen.save();
  pen.beginPath();
  pen.roundRect(inner.x, inner.y, inner.width, inner.height, radius(box));
  if (!cell) {
    pen.fillStyle = paint.empty;
    pen.fill();
    pen.restore();
    return;
  }
  pen.fillStyle = cell.again ? paint["wrong-paper"] : done ? paint.done : paint.cell;
  pen.fill();
  pen.clip();
  const label = box.height >= 15 && box.width >= 22;
  const strip = label ? Math.max(4, Math.round(inner.height * 0.28)) : inner.height;
  paintSegments(pen, scene, cell, { ...inner, y: inner.y + inner.height - strip, height: strip });
  pen.restore();
  if (done) {
    pen.strokeStyle = paint["done-line"];
    pen.lineWidth = 1;
    pen.beginPath();
    pen.roundRect(inner.x + 0.5, inner.y + 0.5, inner.width - 1, inner.height - 1, radius(box));
    pen.stroke();
  }
  if (label) paintLabel(pen, stage, { ...inner, height: inner.height - strip }, cell, look);
}

/** Paint a segment for each rank that is summed in, at the position of the rank; a single origin fills the cell. */
function paintSegments(pen, scene, cell, box) {
  const ranks = ranksIn(cell.ranks);
  if (!scene.collective.reduces) {
    pen.fillStyle = rankColour(ranks[0], scene.size);
    pen.fillRect(box.x, box.y, box.width, box.height);
    return;
  }
  const width = box.width / scene.size;
  for (const rank of ranks) {
    pen.fillStyle = rankColour(rank, scene.size);
    pen.fillRect(box.x + rank * width, box.y, width + 0.3, box.height);
  }
}

/** The texts that a cell can show, the longest first. */
export function labelsOf(scene, cell, look) {
  if (!cell) return [""];
  return look.numbers ? [`${cell.value}`] : [expression(scene, cell), ...shortExpressions(scene, cell)];
}

/** The font of the texts in cells. */
export function labelFont(points) {
  return `${points}px ${FONT}`;
}

function paintLabel(pen, stage, box, cell, look) {
  const { scene, paint } = stage;
  const size = Math.min(16, box.height * 0.78);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillStyle = paint.ink;
  for (const text of labelsOf(scene, cell, look)) {
    for (const points of [size, size * 0.86]) {
      pen.font = labelFont(points);
      if (pen.measureText(text).width <= box.width - 4) {
        pen.fillText(text, box.x + box.width / 2, box.y + box.height / 2 + 1);
        return;
      }
    }
  }
}

/** The colour of a cell without segments: the number of ranks summed in, or the owner of the chunk. */
function tinyColour({ scene, paint }, cell, done) {
  if (!cell) return paint.empty;
  if (!scene.collective.reduces) return rankColour(ranksIn(cell.ranks)[0], scene.size);
  if (done) return paint["done-line"];
  return heat(ranksIn(cell.ranks).length / scene.size, paint);
}

/** Paint the branches of a tree, from each parent to its children. */
export function paintBranches(pen, plan, parents, paint) {
  pen.strokeStyle = paint.line;
  pen.lineWidth = plan.form.small ? 1 : 2;
  parents.forEach((parent, rank) => {
    if (parent < 0) return;
    const above = plan.places[parent];
    const below = plan.places[rank];
    const top = above.y + plan.form.height / 2;
    const bottom = below.y - plan.form.height / 2;
    pen.beginPath();
    pen.moveTo(above.x, top);
    pen.bezierCurveTo(above.x, (top + bottom) / 2, below.x, (top + bottom) / 2, below.x, bottom);
    pen.stroke();
  });
}

/** Paint the box around the ranks of a node. */
export function paintNode(pen, box, name, paint) {
  pen.beginPath();
  pen.roundRect(box.x, box.y, box.width, box.height, 14);
  pen.fillStyle = paint.node;
  pen.fill();
  pen.strokeStyle = paint.line;
  pen.lineWidth = 1;
  pen.stroke();
  paintNodeName(pen, box, name, paint);
}

/** The name of a node; painted again where something may have covered it. */
export function paintNodeName(pen, box, name, paint) {
  pen.font = `600 11px ${FONT}`;
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  pen.strokeStyle = paint.node;
  pen.lineWidth = 4;
  pen.strokeText(name, box.x + 12, box.y + 17);
  pen.fillStyle = paint.muted;
  pen.fillText(name, box.x + 12, box.y + 17);
}

/** A sector behind the ranks of a host in a ring, with the name of the host outside. */
export function paintHostArc(pen, stage, ranks, name) {
  const { plan, paint, scene } = stage;
  const { x, y } = plan.middle;
  const step = (2 * Math.PI) / scene.size;
  const angle = (rank) => Math.atan2(plan.places[rank].y - y, plan.places[rank].x - x);
  const from = angle(ranks[0]) - step * 0.44;
  const to = from + step * (ranks.length - 0.12);
  const inner = plan.inner;
  const outer = plan.inner + plan.form.height + OUTER_NAMES + 2;
  pen.beginPath();
  pen.arc(x, y, outer, from, to);
  pen.arc(x, y, inner, to, from, true);
  pen.closePath();
  pen.fillStyle = paint.node;
  pen.strokeStyle = paint.line;
  pen.lineWidth = 1;
  pen.fill();
  pen.stroke();
  const middle = (from + to) / 2;
  pen.font = `600 11px ${FONT}`;
  pen.textAlign = Math.abs(Math.cos(middle)) < 0.3 ? "center" : Math.cos(middle) > 0 ? "left" : "right";
  pen.textBaseline = "middle";
  pen.fillStyle = paint.muted;
  pen.fillText(name, x + (outer + 9) * Math.cos(middle), y + (outer + 9) * Math.sin(middle));
}

function radius(box) {
  return Math.min(4, box.height / 4);
}
