// The stage of one of the compared algorithms, which is small: a ring is a circle with the names of ranks outside, and
// no message in transit covers a name.

import { pointOn } from "../common/arcs.mjs";
import { nameBox, overlap, placesOnWay } from "../common/name_boxes.mjs";
import { isUnrelated, Stage } from "../common/stage.mjs";

const MOST_MARKS = 160; // messages in transit; more are dots
const MOST_CHECKED = 2000; // messages of a schedule; with more there is no room for their contents

export class LaneStage extends Stage {
  ring() {
    return { round: true };
  }

  refresh() {
    this.shows = new Map();
    super.refresh();
  }

  /** Messages are drawn with their contents if none of them covers a name on its way; otherwise as marks, + or =. */
  paintMessages(pen, view, look) {
    if (view.flying.length > MOST_MARKS || this.showsContents(pen, look)) {
      super.paintMessages(pen, view, look);
      return;
    }
    for (const { message, progress, stuck } of view.flying) {
      pen.globalAlpha = isUnrelated(look, message) ? 0.3 : 1;
      const radius = this.badgeRadius();
      const within = (place, room) => Math.max(radius + 2, Math.min(room - radius - 2, place));
      const { x, y } = pointOn(this.pathOf(message), Math.max(0, Math.min(1, progress)));
      const point = { x: within(x, this.room.width), y: within(y, this.room.height) };
      this.paintBadge(pen, point, radius, message.reduce, this.colourOf(message, stuck));
    }
    pen.globalAlpha = 1;
  }

  showsContents(pen, look) {
    const key = `${look.numbers}`;
    if (!this.shows.has(key)) {
      const { radial, form } = this.plan;
      const { messages } = this.scene;
      const roomy = !radial && !(form.small && form.cell.width < 24) && messages.length <= MOST_CHECKED;
      this.shows.set(key, roomy && !messages.some((message) => this.coversName(pen, message, look)));
    }
    return this.shows.get(key);
  }

  /** Whether the contents of a message, or the mark at their corner, would cover a name somewhere on the way. */
  coversName(pen, message, look) {
    const names = this.plan.places.map((place) => nameBox(this.plan.form, place));
    const places = placesOnWay(this, pen, message, look, this.badgeRadius(), true);
    return places.some((one) => names.some((name) => overlap(name, one.chip) || overlap(name, one.left)));
  }

  badgeRadius() {
    return this.plan.form.small ? 5 : 7;
  }
}
