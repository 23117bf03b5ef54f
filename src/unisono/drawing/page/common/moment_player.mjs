// Plays a replay with a clock: positions are parts of its duration, and those at rest are moments at which something is
// received.

import { Player } from "./player.mjs";

export const POSITIONS = 100; // from the beginning to the end
const APART = 0.4; // positions between two moments at rest, at least

export class MomentPlayer extends Player {
  /** `moments()` returns the positions at rest, in order; a replay at speed 1 takes `seconds`. */
  constructor(state, moments, seconds) {
    super(state, () => POSITIONS, POSITIONS / seconds);
    this.moments = moments;
  }

  /** Always at once: nothing happens between two moments. */
  go(position) {
    super.go(position, false);
  }

  after(here) {
    return this.moments().find((moment) => moment > here + APART) ?? POSITIONS;
  }

  before(here) {
    return this.moments().findLast((moment) => moment < here - APART) ?? 0;
  }
}
