// All compared stages as one picture, in rows; it has the interface of a stage for picture.mjs.

import { FONT } from "../common/cards.mjs";
import { LaneStage } from "./lane_stage.mjs";

const NAME = 26; // pixels above each stage, for the name of its algorithm
const SIDE = 10;

export class LanesPicture {
  /** `looks` are those of the stages, `columns` says how many are side by side. */
  constructor(scenes, names, looks, columns) {
    Object.assign(this, { names, columns: Math.min(columns, scenes.length) });
    this.stages = scenes.map((scene, at) => new LaneStage(document.createElement("canvas"), scene, looks[at]));
  }

  fit(room, paint) {
    const rows = Math.ceil(this.stages.length / this.columns);
    this.paint = paint;
    this.lane = { width: room.width / this.columns, height: room.height / rows };
    const inside = { width: this.lane.width - 2 * SIDE, height: this.lane.height - NAME };
    for (const stage of this.stages) stage.fit(inside, paint);
  }

  /** `views` are the views of all stages. */
  paintOn(pen, views) {
    for (const [at, stage] of this.stages.entries()) {
      pen.save();
      pen.translate((at % this.columns) * this.lane.width + SIDE, Math.floor(at / this.columns) * this.lane.height);
      Object.assign(pen, { font: `600 15px ${FONT}`, textAlign: "center", textBaseline: "middle" });
      pen.fillStyle = this.paint.ink;
      pen.fillText(this.names[at], this.lane.width / 2 - SIDE, NAME / 2);
      pen.translate(0, NAME);
      stage.paintOn(pen, views[at]);
      pen.restore();
    }
  }
}
