// The index of the gallery: the lessons of the course, and a card for each algorithm, with a small picture of its communication.

import { element, fill, shape } from "./common/dom.mjs";
import { footer, header } from "./common/header.mjs";
import { arrange } from "./common/layouts.mjs";
import { State } from "./common/state.mjs";
import { followTheme } from "./common/theme.mjs";
import { few } from "./common/units.mjs";
import { browserLanguage, WORDS } from "./common/words.mjs";
import { courseHeading, courseSection } from "./course/course_cards.mjs";

const THUMBNAIL = { width: 132, height: 92 };

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
  const lessons = courseSection(page.index, state.get("lang"), linkTo, thumbnail);
  fill(body, lessons, ...page.index.collectives.map(section));
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
      element("a", { class: "compare", href: linkTo(collective.compare) }, `${w.compareThem} →`),
    ),
    element("p", { class: "tale" }, collective.story[language]),
    element("div", { class: "cards" }, ...collective.algorithms.map((one) => card(one, collective.carries_data))),
  );
}

function card(algorithm, carriesData) {
  const w = words();
  const { facts } = algorithm;
  const bytes = carriesData ? w.cardBytes(above(facts.bandwidth_ratio)) : "";
  return element(
    "a",
    { class: "card", href: linkTo(algorithm.page) },
    thumbnail(algorithm),
    element("strong", {}, algorithm.name.replaceAll("_", " ")),
    element("p", {}, algorithm.idea[state.get("lang")] || algorithm.idea.en),
    element("p", { class: "note" }, w.cardRounds(facts.rounds, above(facts.latency_ratio)), bytes),
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
  const dots = places.map(({ x, y }) => shape("circle", { cx: x, cy: y, r: 4 }));
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
document.documentElement.dataset.ready = "true";
