import assert from "node:assert/strict";
import test from "node:test";
import { RANK_COLOURS, rankColour } from "../../../../src/unisono/drawing/page/common/palette.mjs";

// Colours as seen with one kind of cone missing: matrices of Machado, Oliveira and Fernandes (2009), for linear RGB.
const EYES = {
  all: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};
const TO_CONES = [
  [0.4122214708, 0.5363325363, 0.0514459929],
  [0.2119034982, 0.6806995451, 0.1073969566],
  [0.0883024619, 0.2817188376, 0.6299787005],
];
const TO_LAB = [
  [0.2104542553, 0.793617785, -0.0040720468],
  [1.9779984951, -2.428592205, 0.4505937099],
  [0.0259040371, 0.7827717662, -0.808675766],
];

const times = (matrix, vector) => matrix.map((row) => row.reduce((sum, value, at) => sum + value * vector[at], 0));
const linear = (hex) =>
  [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
/** The perceived colour in OKLab, where distances correspond to visible differences. */
const seen = (hex, eye) => {
  const rgb = times(EYES[eye], linear(hex)).map((value) => Math.min(1, Math.max(0, value)));
  return times(TO_LAB, times(TO_CONES, rgb).map(Math.cbrt));
};

/** The smallest distance between two of the colours, for any kind of colour vision. */
function nearest(colours) {
  let least = Number.POSITIVE_INFINITY;
  for (const eye of Object.keys(EYES)) {
    const points = colours.map((colour) => seen(colour, eye));
    points.forEach((one, at) => {
      for (const other of points.slice(at + 1)) {
        least = Math.min(least, Math.hypot(...one.map((value, axis) => value - other[axis])));
      }
    });
  }
  return least;
}

test("any two colours are distinguishable with every kind of colour vision, the first eight easily", () => {
  assert.equal(new Set(RANK_COLOURS).size, 16);
  assert.ok(nearest(RANK_COLOURS.slice(0, 8)) > 0.09, `${nearest(RANK_COLOURS.slice(0, 8))}`);
  assert.ok(nearest(RANK_COLOURS) > 0.055, `${nearest(RANK_COLOURS)}`);
});

test("many ranks have distinct colours", () => {
  const colours = new Set(Array.from({ length: 64 }, (_, rank) => rankColour(rank, 64)));
  assert.equal(colours.size, 64);
});
