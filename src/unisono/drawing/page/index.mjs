// The index of the gallery: the lessons of the course, and a card for each algorithm, with a small picture of its communication.

import { fillRows } from "./common/card_rows.mjs";
import { element, fill, shape } from "./common/dom.mjs";
import { footer, header } from "./common/header.mjs";
import { arrange } from "./common/layouts.mjs";
import { State } from "./common/state.mjs";
import { followTheme } from "./common/theme.mjs";
import { few } from "./common/units.mjs";
import { browserLanguage, WORDS } from "./common/words.mjs";
import { courseHeading, courseSection } from "./course/course_cards.mjs";

const THUMBNAIL = { width: 240, height: 132 };
const LEAST_CARD = 250; // pixels

const page = JSON.parse(document.getElementById("data").textContent);
const root = document.getElementById("page");
const state = new State(
  { lang: page.settings.language ?? browserLanguage(navigator.languages) },
  (name, value) => name === "lang" && Object.hasOwn(WORDS, value),
);
state.follow(location.hash);
const words = () => WORDS[state.get("lang")];
const top = header(page, state, words, (language) => {
  const w = WORDS[language];
  const { size } = page.index; // null: the course alone
  if (size === null) return { ...courseHeading(language), chips: [] };
  return { title: w.galleryTitle, chips: [w.ranks(size)], story: w.galleryStory, idea: w.galleryIdea };
});
const body = element("main", { class: "gallery" });
const foot = footer(state, words, []);
root.append(top.node, body, foot.node);

function render() {
  const lessons = courseSection(page.index, state.get("lang"), linkTo, thumbnail, anchor);
  const { collectives } = page.index;
  fill(body, ...(collectives.length ? [contents(collectives)] : []), lessons, ...collectives.map(section));
  for (const grid of body.querySelectorAll(".cards, .lessons")) fillRows(grid, LEAST_CARD);
}

/** The links to all sections of this page. */
function contents(collectives) {
  const w = words();
  const entries = [["course", w.indexCourse, page.index.course.length]];
  for (const { name, title, algorithms } of collectives) entries.push([name, title, algorithms.length]);
  const items = entries.map(([id, title, count]) =>
    element("li", {}, element("a", { href: `#${id}` }, title), " ", element("small", {}, `${count}`)),
  );
  return element("nav", { class: "toc", "aria-label": w.indexContents }, element("ol", {}, ...items));
}

/** The link to a place on this page, to be copied: visible where the pointer or the focus is. */
function anchor(id, name) {
  return element("a", { class: "anchor", href: `#${id}`, "aria-label": words().indexAnchor(name) }, "#");
}

/** A link to a page that opens in the language of this one. */
function linkTo(name) {
  return `${name}#lang=${state.get("lang")}`;
}

function section(collective) {
  const w = words();
  const language = state.get("lang");
  return element(
    "section",
    { id: collective.name },
    element(
      "h2",
      {},
      collective.title,
      anchor(collective.name, collective.title),
      element("a", { class: "compare", href: linkTo(collective.compare) }, `${w.compareThem} →`),
    ),
    element("p", { class: "tale" }, collective.story[language]),
    element("div", { class: "cards" }, ...collective.algorithms.map((one) => card(one, collective))),
  );
}

function card(algorithm, collective) {
  const w = words();
  const { facts } = algorithm;
  const bytes = collective.carries_data ? w.cardBytes(above(facts.bandwidth_ratio)) : "";
  const id = `${collective.name}-${algorithm.name}`;
  const name = algorithm.name.replaceAll("_", " ");
  return element(
    "article",
    { class: "card", id },
    anchor(id, `${collective.title} · ${name}`),
    element(
      "a",
      { class: "open", href: linkTo(algorithm.page) },
      thumbnail(algorithm),
      element("strong", {}, name),
      element("p", {}, algorithm.idea[state.get("lang")] || algorithm.idea.en),
      element("p", { class: "note" }, w.cardRounds(facts.rounds, above(facts.latency_ratio)), bytes),
    ),
  );
}

/** The ratio to the minimum as text; null for the minimum itself. */
function above(ratio) {
  return ratio < 1.005 ? null : few(ratio);
}

/** Dots for ranks, lines for pairs of ranks that communicate. */
function thumbnail({ size, layout, pairs }) {
  const one = { size, slots: 1, parts: [{ name: "data", first: 0, count: 1 }], layout };
  const { places } = arrange(one, layout.best, THUMBNAIL);
  const lines = pairs.map(([from, to]) => {
    const middle = { x: THUMBNAIL.width / 2, y: THUMBNAIL.height / 2 };
    const [start, end] = [places[from], places[to]];
    const pull = layout.best === "ring" ? 0.75 : 1;
    const bend = {
      x: middle.x + ((start.x + end.x) / 2 - middle.x) * pull,
      y: middle.y + ((start.y + end.y) / 2 - middle.y) * pull,
    };
    return shape("path", { d: `M${start.x} ${start.y} Q${bend.x} ${bend.y} ${end.x} ${end.y}` });
  });
  const dots = places.map(({ x, y }) => shape("circle", { cx: x, cy: y, r: 5 }));
  const box = `0 0 ${THUMBNAIL.width} ${THUMBNAIL.height}`;
  return shape("svg", { viewBox: box, class: "thumbnail", "aria-hidden": "true" }, ...lines, ...dots);
}

state.onChange(() => {
  top.update();
  foot.update();
  render();
});
followTheme(() => {});
render();
// The browser has looked for the place before it was made.
if (/^#[\w-]+$/.test(location.hash)) document.getElementById(location.hash.slice(1))?.scrollIntoView();
document.documentElement.dataset.ready = "true";
