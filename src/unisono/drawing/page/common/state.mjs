// The choices of the reader: the position, a rank, the language and so on. The part of the address after # repeats
// them, so that a link reproduces the exact view.

/** How a page is shown (reading_modes.mjs); a link names the mode without a value, as in #embed. */
const MODES = ["present", "embed"];

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];

/** The values that a link can set, and their defaults; `key` is the name in the link, if it differs. */
export const LINKED = {
  step: { initial: 0, read: number, write: (value) => `${Math.round(value * 100) / 100}` },
  rank: { initial: null, read: number, write: (value) => `${value}` },
  layout: { initial: null, read: word, write: (value) => value },
  numbers: { initial: false, read: (text) => text === "1", write: (value) => (value ? "1" : "0") },
  lang: { initial: null, read: word, write: (value) => value },
  speed: { initial: 1, read: number, write: (value) => `${value}` },
  by: { initial: "step", read: word, write: (value) => value },
  alpha: { initial: null, read: number, write: (value) => `${value}` },
  beta: { initial: null, read: number, write: (value) => `${value}` },
  network: { initial: null, read: name, write: (value) => value },
  bytes: { initial: null, read: number, write: (value) => `${value}` },
  ranks: { initial: null, read: number, write: (value) => `${value}` },
  parameters: { initial: null, read: number, write: (value) => `${value}` },
  tokens: { initial: null, read: number, write: (value) => `${value}` },
  depth: { initial: null, read: number, write: (value) => `${value}` },
  link: { initial: null, read: number, write: (value) => `${value}` },
  precision: { initial: null, read: word, write: (value) => value },
};

export class State {
  /** `initial` are the settings of the page; `accepts` returns whether a value from a link is valid for a name; `linked`
   * lists the values, the first of which is part of every link. */
  constructor(initial, accepts = () => true, linked = LINKED) {
    this.linked = linked;
    this.always = Object.keys(linked)[0];
    this.initial = {
      ...Object.fromEntries(Object.entries(linked).map(([name, { initial: value }]) => [name, value])),
    };
    for (const [name, value] of Object.entries(initial)) if (value !== undefined) this.initial[name] = value;
    this.accepts = accepts;
    this.values = { ...this.initial, mode: null, playing: false };
    this.listeners = [];
  }

  get(name) {
    return this.values[name];
  }

  /** Change some values; listeners are told of those that differ. */
  set(changes) {
    const changed = Object.keys(changes).filter((name) => this.values[name] !== changes[name]);
    if (!changed.length) return;
    Object.assign(this.values, changes);
    for (const listener of this.listeners) listener(new Set(changed));
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  /** The part of a link after #, with the values that differ from the defaults; the position is always included. */
  link() {
    const parts = [];
    for (const [name, { write, key = name }] of Object.entries(this.linked)) {
      const value = this.values[name];
      if (value === null || (value === this.initial[name] && name !== this.always)) continue;
      parts.push(`${key}=${write(value)}`);
    }
    if (this.values.mode) parts.push(this.values.mode);
    return `#${parts.join("&")}`;
  }

  /** Apply the values of a link; invalid ones are ignored. */
  follow(hash) {
    const changes = {};
    for (const part of hash.replace(/^#/, "").split("&")) {
      const [said, text] = part.split("=");
      if (text === undefined && MODES.includes(said)) changes.mode = said;
      const name = Object.keys(this.linked).find((one) => (this.linked[one].key ?? one) === said);
      if (name === undefined || text === undefined) continue;
      const value = this.linked[name].read(text);
      if (value !== null && this.accepts(name, value)) changes[name] = value;
    }
    this.set(changes);
  }
}

/** Show the view with which a page opens, written as in a link; a link to another position comes first. */
export function openAt(opening, state) {
  if (opening && !/[#&]step=/.test(location.hash)) state.follow(opening);
}

/** Put the link to the current view into the address bar. */
export function showLink(state) {
  try {
    history.replaceState(null, "", state.link());
  } catch {
    // A frame inside a notebook may have no address; the button at the foot of the page still copies the link.
  }
}

/** The next speed up or down. */
export function nextSpeed(speed, direction) {
  const at = SPEEDS.indexOf(speed) + direction;
  return SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, at))];
}

function number(text) {
  return /^-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?$/.test(text) ? Number(text) : null;
}

/** The name of a network: letters, digits, dots and dashes. */
function name(text) {
  return /^[\w.-]+$/.test(text) ? text : null;
}

function word(text) {
  return /^[a-z_]+$/.test(text) ? text : null;
}
