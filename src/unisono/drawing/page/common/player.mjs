// Moves the position: plays continuously, or glides to the next step.

export const STEPS_PER_SECOND = 0.9;
const GLIDE_S = 0.75; // from one step to the next, at speed 1

export class Player {
  /** `length()` is the last position; positions at rest are whole numbers; `rate` positions are played per second. */
  constructor(state, length, rate = STEPS_PER_SECOND) {
    this.state = state;
    this.length = length;
    this.rate = rate;
    this.target = null;
    this.last = null;
    this.frames = 0; // painted so far; for measurements of smoothness
    this.still = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;
    this.rested = 0;
    state.onChange((changed) => {
      if (changed.has("playing") && state.get("playing")) this.wake();
    });
  }

  get moving() {
    return this.state.get("playing") || this.target !== null;
  }

  toggle() {
    if (this.state.get("playing")) {
      this.stop();
      return;
    }
    const atEnd = this.state.get("step") >= this.length();
    this.target = null;
    this.state.set({ step: atEnd ? 0 : this.state.get("step"), playing: true });
  }

  stop() {
    this.target = null;
    this.state.set({ playing: false });
  }

  /** Go to a position: gliding if it is near; at once if it is far or reduced motion is requested. */
  go(position, glide = true) {
    const target = Math.max(0, Math.min(this.length(), position));
    const here = this.state.get("step");
    this.state.set({ playing: false });
    if (!glide || this.still || Math.abs(target - here) > 1.01 || target < here) {
      this.target = null;
      this.state.set({ step: target });
      return;
    }
    this.target = target;
    this.wake();
  }

  forward() {
    const here = this.target ?? this.state.get("step");
    this.go(this.after(here));
  }

  back() {
    const here = this.target ?? this.state.get("step");
    this.go(this.before(here));
  }

  /** The next position at rest. */
  after(here) {
    return Math.floor(here + 1e-6) + 1;
  }

  /** The previous position at rest. */
  before(here) {
    return Math.ceil(here - 1e-6) - 1;
  }

  wake() {
    this.last = null;
    requestAnimationFrame((now) => this.frame(now));
  }

  frame(now) {
    if (!this.moving) return;
    const passed = this.last === null ? 0 : Math.min(0.1, (now - this.last) / 1000);
    this.last = now;
    this.frames += 1;
    const speed = this.state.get("speed");
    if (this.target !== null) this.glide((passed * speed) / GLIDE_S);
    else this.playOn(passed * speed);
    if (this.moving) requestAnimationFrame((later) => this.frame(later));
  }

  glide(amount) {
    const next = this.state.get("step") + amount;
    if (next < this.target) {
      this.state.set({ step: next });
      return;
    }
    const target = this.target;
    this.target = null;
    this.state.set({ step: target });
  }

  playOn(amount) {
    const here = this.state.get("step");
    if (this.still) {
      // Reduced motion: pause on each step, then show the next one.
      this.rested += amount * STEPS_PER_SECOND;
      if (this.rested < 1) return;
      this.rested = 0;
      this.arrive(this.after(here));
      return;
    }
    const next = here + amount * this.rate;
    if (next >= this.length()) this.arrive(this.length());
    else this.state.set({ step: next });
  }

  arrive(position) {
    const ends = position >= this.length();
    this.state.set({ step: Math.min(position, this.length()), ...(ends ? { playing: false } : {}) });
  }
}
