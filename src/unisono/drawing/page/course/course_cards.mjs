// The lessons of the course as cards, for the index.

import { element } from "../common/dom.mjs";
import { lessonPicture } from "../lessons/lesson_pictures.mjs";
import { COURSE_WORDS } from "./course_words.mjs";

/** Return the section with a card for each lesson, in order; `linkTo` gives the link to a file, `thumbnail` draws the
 * communication of a scene. */
export function courseSection({ course, size }, language, linkTo, thumbnail) {
  const w = COURSE_WORDS[language];
  const cards = course.map((lesson, at) => lessonCard(lesson, at + 1, language, linkTo, thumbnail));
  return element(
    "section",
    { id: "course" },
    ...(size === null ? [] : [element("h2", {}, w.start), element("p", { class: "tale" }, w.startStory)]),
    element("ol", { class: "lessons" }, ...cards),
  );
}

/** The title and the story of an index of the course alone. */
export function courseHeading(language) {
  const w = COURSE_WORDS[language];
  return { title: w.title, story: w.startStory, idea: w.made };
}

function lessonCard({ title, story, picture, pages }, number, language, linkTo, thumbnail) {
  const [first] = pages;
  const parts = pages.map((page) => element("a", { class: "tab", href: linkTo(page.file) }, page.title[language]));
  return element(
    "li",
    { class: "lesson-card" },
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
