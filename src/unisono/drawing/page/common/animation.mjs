// The animation of a stage as a GIF file.

import { GifWriter, MOST_COLOURS } from "./gif.mjs";

const SAMPLES = 12; // frames whose colours are counted for the palette
const MOST_FRAMES = 420;
const MOVING = 8; // hundredths of a second that a frame lasts while messages move
const BETWEEN = 9; // frames from one step to the next, if there are few steps
const RESTING = 60; // at a step
const LAST = 250;
const OPAQUE = 0xffffff; // the bits of the colour of a pixel

/** The frames of a page that goes from step to step, [{ position, hundredths }]: fewer between two steps if there are
 * many, and none at all for some. */
export function framesOfSteps(last) {
  const between = Math.max(0, Math.min(BETWEEN, Math.floor(MOST_FRAMES / Math.max(1, last)) - 1));
  const stride = Math.max(1, Math.ceil(last / MOST_FRAMES));
  const frames = [{ position: 0, hundredths: RESTING }];
  for (let step = stride; step < last + stride; step += stride) {
    const to = Math.min(step, last);
    for (let part = 1; part <= between; part++) {
      frames.push({ position: to - 1 + part / (between + 1), hundredths: MOVING });
    }
    const rest = between < BETWEEN ? 2 * MOVING : RESTING;
    frames.push({ position: to, hundredths: to === last ? LAST : rest });
  }
  return frames;
}

/** The frames of a page whose positions are times. */
export function framesOfTime(last, seconds) {
  const count = Math.min(MOST_FRAMES, Math.round((100 * seconds) / MOVING));
  const hundredths = Math.round((100 * seconds) / count);
  const at = (frame) => ({ position: (last * frame) / count, hundredths: frame === count ? LAST : hundredths });
  return Array.from({ length: count + 1 }, (_, frame) => at(frame));
}

/** Return the bytes of a GIF with these frames of a picture (picture.mjs); `told` is called with the part that is done. */
export async function animate(picture, frames, told = () => {}) {
  const { width, height } = picture.room;
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const pixelsAt = (position) => {
    picture.paint(pen, position);
    return new Uint32Array(pen.getImageData(0, 0, width, height).data.buffer);
  };
  const samples = Array.from({ length: SAMPLES }, (_, at) => Math.round((at * (frames.length - 1)) / (SAMPLES - 1)));
  const colours = commonColours([...new Set(samples)].map((at) => pixelsAt(frames[at].position)));
  const nearest = matcher(colours);
  const gif = new GifWriter(width, height, colours);
  for (const [at, { position, hundredths }] of frames.entries()) {
    gif.add(Uint8Array.from(pixelsAt(position), nearest), hundredths);
    told((at + 1) / frames.length);
    await new Promise((done) => setTimeout(done)); // the page stays usable
  }
  return gif.bytes();
}

/** The most frequent colours of some frames. Large areas have one colour; the others are the edges of shapes. */
function commonColours(frames) {
  const counts = new Map();
  for (const pixels of frames) {
    for (let at = 0, end = 0; at < pixels.length; at = end) {
      while (end < pixels.length && pixels[end] === pixels[at]) end += 1;
      const colour = pixels[at] & OPAQUE;
      counts.set(colour, (counts.get(colour) ?? 0) + end - at);
    }
  }
  const order = [...counts].sort((one, other) => other[1] - one[1] || one[0] - other[0]);
  return order.slice(0, MOST_COLOURS).map(([colour]) => colour);
}

/** A function from a pixel to the number of the nearest colour. */
function matcher(colours) {
  const known = new Map(colours.map((colour, at) => [colour, at]));
  const distance = (one, other) =>
    [0, 8, 16].reduce((sum, bits) => sum + (((one >> bits) & 255) - ((other >> bits) & 255)) ** 2, 0);
  let [last, found] = [-1, 0]; // neighbouring pixels are often equal
  return (pixel) => {
    const colour = pixel & OPAQUE;
    if (colour === last) return found;
    last = colour;
    if (!known.has(colour)) {
      const nearest = colours.reduce((best, one) => (distance(one, colour) < distance(best, colour) ? one : best));
      known.set(colour, known.get(nearest));
    }
    found = known.get(colour);
    return found;
  };
}
