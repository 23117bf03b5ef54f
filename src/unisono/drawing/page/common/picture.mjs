// The stage as a picture for paper, for a file or for an animation: the same drawing without the page, with a heading and
// a caption.

import { FONT } from "./cards.mjs";
import { paintsOf } from "./palette.mjs";
import { SvgPen } from "./svg_pen.mjs";

const ROOM = { width: 960, height: 600 };
const HEAD = 48; // pixels above the stage, for its title and the name of the step
const FOOT = 86; // pixels below it, for the caption
const SIDE = 20;
const LINE = 23; // pixels from one line of the caption to the next
const MOST_LINES = 3;
const TITLE = `600 19px ${FONT}`;
const WHERE = `17px ${FONT}`;
const TITLES = " · "; // between the titles

/** Return what paints a stage: paint(pen, position), and svg(position).
 *
 * `painter` is a stage, a matrix, or several stages: fit(room, colours) and paintOn(pen, view, position). `view` returns
 * the view of a position, and `texts` its { titles, where, caption }: of the titles, as
 * many are written as there is room for. `room` is the size of the picture; a `bare` picture
 * is the stage alone. */
export function picture(painter, view, texts, { room = ROOM, theme = "light", bare = false } = {}) {
  const colours = paintsOf(document.documentElement, theme);
  const [head, foot] = bare ? [0, 0] : [HEAD, FOOT];
  painter.fit({ width: room.width, height: room.height - head - foot }, colours);

  const paint = (pen, position) => {
    pen.save();
    pen.fillStyle = colours.surface;
    pen.fillRect(0, 0, room.width, room.height);
    if (!bare) {
      const { titles, where, caption } = texts(position);
      const right = { x: room.width - SIDE, y: head / 2, align: "right" };
      write(pen, { text: where, ...right, font: WHERE, colour: colours.muted });
      const free = room.width - 3 * SIDE - pen.measureText(where).width;
      const left = { x: SIDE, y: head / 2, align: "left" };
      write(pen, { text: fitting(pen, titles, free), ...left, font: TITLE, colour: colours.ink });
      const top = room.height - foot + LINE / 2;
      lines(pen, caption, room.width - 2 * SIDE).forEach((text, at) => {
        const place = { x: SIDE, y: top + at * LINE, align: "left" };
        write(pen, { text, ...place, font: `16px ${FONT}`, colour: colours.ink });
      });
    }
    pen.translate(0, head);
    painter.paintOn(pen, view(position), position);
    pen.restore();
  };
  const svg = (position) => {
    const { titles, where, caption } = texts(position);
    const pen = new SvgPen();
    paint(pen, position);
    return pen.text(room, `${titles.join(TITLES)}: ${where}`, caption);
  };
  return { paint, svg, room };
}

function write(pen, { text, x, y, font, colour, align }) {
  Object.assign(pen, { textBaseline: "middle", textAlign: align, font, fillStyle: colour });
  pen.fillText(text, x, y);
}

/** The first titles, which fit into this width. */
function fitting(pen, titles, width) {
  pen.font = TITLE;
  const counts = titles.map((_, at) => titles.length - at);
  const fits = (count) => count === 1 || pen.measureText(titles.slice(0, count).join(TITLES)).width <= width;
  return titles.slice(0, counts.find(fits)).join(TITLES);
}

// A Chinese character with the punctuation that must not begin a line, a word, or blanks.
const WORD =
  /[\u3000-\u9fff\uff00-\uffef][，。；：、！？）”]*|[^\s\u3000-\u9fff\uff00-\uffef]+[，。；：、！？）”]*\s*|\s+/g;

/** The lines of a text of this width; Chinese may be broken between any two characters. */
function lines(pen, text, width) {
  pen.font = `16px ${FONT}`;
  const made = [""];
  for (const word of text.match(WORD) ?? []) {
    const longer = made.at(-1) + word;
    if (pen.measureText(longer.trimEnd()).width <= width) made[made.length - 1] = longer;
    else made.push(word);
  }
  if (made.length > MOST_LINES) made[MOST_LINES - 1] = `${made[MOST_LINES - 1].trimEnd().slice(0, -2)} …`;
  return made.slice(0, MOST_LINES).map((line) => line.trimEnd());
}

/** The name of a file without its suffix, such as all_reduce-ring-5-step3; of an animation if `step` is null. */
export function fileName(label, size, step) {
  const part = step === null ? "" : `-step${Math.round(100 * step) / 100}`;
  return `${label.replaceAll(/[^\w]+/g, "-")}-${size}${part}`;
}
