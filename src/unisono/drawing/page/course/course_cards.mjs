// The lessons of the course as cards, for the index.

import { element } from "../common/dom.mjs";
import { lessonPicture } from "../lessons/lesson_pictures.mjs";
import { COURSE_WORDS } from "./course_words.mjs";

/** Return the section with a card for each lesson, in order; `linkTo` gives the link to a file, `thumbnail` draws the
 * communication of a scene, `anchor` makes the link to a card. */
export function courseSection({ course, size }, language, linkTo, thumbnail, anchor) {
  const w = COURSE_WORDS[language];
  const cards = course.map((lesson, at) => lessonCard(lesson, at + 1, language, linkTo, thumbnail, anchor));
  return element(
    "section",
    { id: "course" },
    ...(size === null
      ? []
      : [element("h2", {}, w.start, anchor("course", w.start)), element("p", { class: "tale" }, w.startStory)]),
    element("ol", { class: "lessons" }, ...cards),
  );
}

/** The title and the story of an index of the course alone. */
export function courseHeading(language) {
  const w = COURSE_WORDS[language];
  return { title: w.title, story: w.startStory, idea: w.made };
}

function lessonCard({ title, story, picture, pages }, number, language, linkTo, thumbnail, anchor) {
  const [first] = pages;
  const id = `lesson-${number}`;
  const parts = pages.map((page) => element("a", { class: "tab", href: linkTo(page.file) }, page.title[language]));
  return element(
    "li",
    { class: "lesson-card", id },
    anchor(id, title[language]),
    element(
      "a",
      { class: "open", href: linkTo(first.file) },
      picture.script ? lessonPicture(picture.script) : thumbnail(picture),
      element("strong", {}, element("span", { class: "number" }, `${number}`), title[language]),
    ),
    element("p", {}, story[language]),
    pages.length > 1 ? element("span", { class: "parts" }, ...parts) : "",
  );
}
