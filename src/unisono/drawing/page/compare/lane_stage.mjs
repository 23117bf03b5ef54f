// The stage of one of the compared algorithms, which is small: a ring is a circle with the names of ranks outside, and
// no message in transit covers a name.

import { pointOn } from "../common/arcs.mjs";
import { isUnrelated, Stage } from "../common/stage.mjs";

const MOST_MARKS = 160; // messages in transit; more are dots
const MOST_CHECKED = 2000; // messages of a schedule; with more there is no room for their contents
const SAMPLES = 40; // points of the way of a message that are checked

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
    const way = this.pathOf(message);
    const names = this.plan.places.map((place) => this.nameBox(place));
    const radius = this.badgeRadius();
    const count = Math.min(message.cells.length, 8);
    for (let at = 0; at <= SAMPLES; at++) {
      const { left, top, width, height } = this.chipBox(pen, message, pointOn(way, at / SAMPLES), look, true);
      const chip = { left: left - 2, right: left + width + 2, top: top - 2, bottom: top + height * count + 2 };
      const mark = {
        left: chip.left - radius,
        right: chip.left + radius,
        top: chip.top - radius,
        bottom: chip.top + radius,
      };
      if (names.some((name) => overlap(name, chip) || overlap(name, mark))) return true;
    }
    return false;
  }

  badgeRadius() {
    return this.plan.form.small ? 5 : 7;
  }

  /** The room that the name of a rank takes. */
  nameBox({ x, y, name }) {
    const { form } = this.plan;
    if (name) return { left: name.x - 8, right: name.x + 8, top: name.y - 6, bottom: name.y + 6 };
    const [left, top] = [x - form.width / 2, y - form.height / 2];
    if (form.small) return { left: x - 9, right: x + 9, top: top + 1, bottom: top + form.header - 1 };
    return { left: left + 4, right: left + Math.min(form.width, 66), top: top + 5, bottom: top + form.header - 2 };
  }
}

function overlap(one, other) {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}
