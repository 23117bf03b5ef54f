// The stage on a network: below the cards there is a road for each pair of ranks that communicate, coloured by the load
// of its busiest link. A near road is one strip, a far road two.

import { onArc, roadBetween, traceArc } from "../common/arcs.mjs";
import { paintHostArc, paintNodeName } from "../common/cards.mjs";
import { loadColour } from "../common/palette.mjs";
import { isUnrelated, Stage, traceHead } from "../common/stage.mjs";

const MOST_IDLE_ROADS = 4; // per rank; with more, only roads with messages are painted
const WIDE = 16; // ranks up to which roads are wide
const NARROW = 500; // pixels; on narrower stages they are not
const MARGIN = 20; // pixels around a ring, for the names of hosts; more if the stage is narrow
const NARROW_MARGIN = 46;
const INNER = 0.64; // the part of the radius of a ring that is left to roads

export class NetworkStage extends Stage {
  /** `pairs` are [sender, receiver, far, links]. */
  constructor(canvas, scene, look, pairs) {
    super(canvas, scene, look);
    this.pairs = pairs;
  }

  refresh() {
    this.roads = new Map();
    super.refresh();
  }

  ring() {
    const { width, height } = this.room;
    const margin = width > height + 2 * NARROW_MARGIN ? MARGIN : NARROW_MARGIN;
    return { margin: this.hosts().length > 1 ? margin : 0, inner: INNER };
  }

  /** The hosts, if they have several ranks: they are drawn around a ring. */
  hosts() {
    return this.scene.hosts ?? [];
  }

  /** The road from one rank to another. */
  roadOf(src, dst) {
    const key = src * this.scene.size + dst;
    if (!this.roads.has(key)) this.roads.set(key, roadBetween(this.plan, src, dst));
    return this.roads.get(key);
  }

  /** Messages keep to the road: they cover no cell and no name. */
  pathOf(message) {
    const way = this.roadOf(message.src, message.dst);
    return { ...way, start: onArc(way, 0), end: onArc(way, 1) };
  }

  paintMessages(pen, view, look) {
    const radius = this.scene.size > WIDE ? 4.2 : this.plan.radial ? 5.2 : 7.5;
    for (const { message, progress } of view.flying) {
      const point = onArc(this.roadOf(message.src, message.dst), Math.max(0, Math.min(1, progress)));
      pen.globalAlpha = isUnrelated(look, message) ? 0.3 : 1;
      pen.fillStyle = this.paint.paper;
      pen.beginPath();
      pen.arc(point.x, point.y, radius + 1.5, 0, 2 * Math.PI);
      pen.fill();
      this.paintBadge(pen, point, radius, message.reduce, this.colourOf(message, false));
    }
    pen.globalAlpha = 1;
  }

  paintBelow(pen, view, look) {
    if (this.plan.radial && this.hosts().length > 1) {
      for (const [host, ranks] of this.hosts().entries()) paintHostArc(pen, this, ranks, look.names.node(host));
    }
    const all = this.pairs.length <= MOST_IDLE_ROADS * this.scene.size;
    const taken = new Set(view.flying.map(({ message }) => message.src * this.scene.size + message.dst));
    const order = this.pairs.map((_, at) => at).sort((one, other) => view.loads[one] - view.loads[other]);
    for (const at of order) {
      const [src, dst] = this.pairs[at];
      if (all || taken.has(src * this.scene.size + dst)) this.paintRoad(pen, this.pairs[at], view.loads[at], look);
    }
    for (const [host, box] of this.plan.boxes.entries()) {
      paintNodeName(pen, box, look.names.node(host), this.paint);
    }
  }

  paintRoad(pen, [src, dst, far], load, look) {
    const thick = this.scene.size <= WIDE && this.room.width >= NARROW ? 1 : 0.6;
    const way = this.roadOf(src, dst);
    pen.save();
    pen.globalAlpha = isUnrelated(look, { src, dst }) ? 0.25 : 1;
    pen.beginPath();
    traceArc(pen, way);
    pen.strokeStyle = loadColour(load, this.paint);
    pen.lineWidth = (far ? 10 : 6) * thick;
    pen.stroke();
    if (far) {
      pen.strokeStyle = this.paint.paper;
      pen.lineWidth = 3.2 * thick;
      pen.stroke();
    }
    pen.restore();
  }

  /** A message on its road: the head of an arrow at the end. */
  paintArc(pen, message, look) {
    pen.save();
    pen.globalAlpha = isUnrelated(look, message) ? 0.25 : 1;
    pen.fillStyle = this.colourOf(message, false);
    pen.strokeStyle = this.paint.paper;
    pen.lineWidth = 1.5;
    traceHead(pen, this.pathOf(message), this.scene.size > WIDE ? 6 : 10);
    pen.stroke();
    pen.fill();
    pen.restore();
  }
}
