// Writes animated GIF files. A frame holds only the rectangle that differs from the frame before it, in which the pixels
// that stay the same are transparent.

const TRANSPARENT = 255; // the last colour of the palette
const CLEAR = 256; // empties the table of the compression
const END = 257;
const MOST_BITS = 12;
const SLOTS = 8192; // of the hash table, twice the number of codes
const BLOCK = 255; // bytes of compressed data that follow a length

export const MOST_COLOURS = 255;

export class GifWriter {
  /** `colours` are up to MOST_COLOURS numbers 0xbbggrr. */
  constructor(width, height, colours) {
    this.width = width;
    this.height = height;
    this.parts = [];
    this.shown = null; // the pixels of the last frame, as numbers of colours
    this.delay = null; // the two bytes of the duration of the last frame
    const table = new Uint8Array(3 * 256);
    colours.forEach((colour, at) => {
      table.set([colour & 255, (colour >> 8) & 255, (colour >> 16) & 255], 3 * at);
    });
    const header = [...ascii("GIF89a"), ...two(width), ...two(height), 0xf7, 0, 0];
    const endless = [0x21, 0xff, 11, ...ascii("NETSCAPE2.0"), 3, 1, 0, 0, 0];
    this.parts.push(Uint8Array.from(header), table, Uint8Array.from(endless));
  }

  /** Add a frame, given as the numbers of the colours of its pixels; it is shown for some hundredths of a second. */
  add(pixels, hundredths) {
    const box = this.shown ? changedBox(this.shown, pixels, this.width) : [0, 0, this.width, this.height];
    if (!box) {
      const all = this.delay[0] + 256 * this.delay[1] + hundredths;
      this.delay.set(two(all));
      return;
    }
    const [left, top, width, height] = box;
    const part = new Uint8Array(width * height);
    for (let y = 0, at = 0; y < height; y++) {
      for (let x = 0, from = (top + y) * this.width + left; x < width; x++, at++, from++) {
        part[at] = this.shown && this.shown[from] === pixels[from] ? TRANSPARENT : pixels[from];
      }
    }
    const control = Uint8Array.from([0x21, 0xf9, 4, 0b101, ...two(hundredths), TRANSPARENT, 0]);
    this.delay = control.subarray(4, 6);
    const place = [0x2c, ...two(left), ...two(top), ...two(width), ...two(height), 0, 8];
    this.parts.push(control, Uint8Array.from(place), ...blocks(compressed(part)), Uint8Array.of(0));
    this.shown = pixels;
  }

  /** The whole file. */
  bytes() {
    const all = [...this.parts, Uint8Array.of(0x3b)];
    const made = new Uint8Array(all.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const part of all) {
      made.set(part, at);
      at += part.length;
    }
    return made;
  }
}

function ascii(text) {
  return Array.from(text, (letter) => letter.charCodeAt(0));
}

/** A number as two bytes, the lower first. */
function two(number) {
  return [number & 255, (number >> 8) & 255];
}

/** The smallest box around the pixels that differ, [left, top, width, height]; null if there are none. */
function changedBox(before, after, width) {
  let [left, right, top, bottom] = [width, -1, -1, -1];
  for (let at = 0; at < after.length; at++) {
    if (before[at] === after[at]) continue;
    const x = at % width;
    bottom = (at - x) / width;
    if (top < 0) top = bottom;
    if (x < left) left = x;
    if (x > right) right = x;
  }
  return right < 0 ? null : [left, top, right - left + 1, bottom - top + 1];
}

/** The pixels in the compression of GIF, which is LZW with codes of 9 to 12 bits, the lowest bit first. */
function compressed(pixels) {
  const made = [];
  const keys = new Int32Array(SLOTS).fill(-1);
  const codes = new Uint16Array(SLOTS);
  let bits = 9;
  let next = END + 1;
  let held = 0;
  let count = 0;
  const put = (code) => {
    held |= code << count;
    count += bits;
    for (; count >= 8; count -= 8, held >>>= 8) made.push(held & 255);
  };
  put(CLEAR);
  let prefix = pixels[0];
  for (let at = 1; at < pixels.length; at++) {
    const key = (prefix << 8) | pixels[at];
    let slot = (key * 31) & (SLOTS - 1);
    while (keys[slot] !== -1 && keys[slot] !== key) slot = (slot + 1) & (SLOTS - 1);
    if (keys[slot] === key) {
      prefix = codes[slot];
      continue;
    }
    put(prefix);
    prefix = pixels[at];
    if (next === 1 << MOST_BITS) {
      put(CLEAR);
      keys.fill(-1);
      bits = 9;
      next = END + 1;
      continue;
    }
    if (next >= 1 << bits) bits += 1;
    keys[slot] = key;
    codes[slot] = next++;
  }
  put(prefix);
  put(END);
  if (count > 0) made.push(held & 255);
  return Uint8Array.from(made);
}

function blocks(bytes) {
  const made = [];
  for (let at = 0; at < bytes.length; at += BLOCK) {
    const part = bytes.subarray(at, at + BLOCK);
    made.push(Uint8Array.of(part.length), part);
  }
  return made;
}
