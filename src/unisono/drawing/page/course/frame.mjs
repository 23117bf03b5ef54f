// The frame of a page of the course: the place in the course, the captions and the question. It is put around a page of
// any kind, which knows nothing of it.

import { element, fill, withCode } from "../common/dom.mjs";
import { captionStrip } from "./captions.mjs";
import { COURSE_WORDS } from "./course_words.mjs";
import { questionPanel } from "./question.mjs";

/** Put the frame around a page, if it belongs to the course; `opened` has its state and its player. */
export function frameCourse(root, page, opened) {
  const { course } = page.settings;
  if (!course) return;
  const { state, player } = opened;
  const words = () => COURSE_WORDS[state.get("lang")];
  const link = (file) => `${file}#lang=${state.get("lang")}${state.get("mode") ? `&${state.get("mode")}` : ""}`;
  const follow = (to) => {
    if (to?.file) location.href = link(to.file);
  };
  const home = { file: course.home };
  /** In a presentation, the question comes after the last caption, in its place. */
  const ask = (asked) => {
    if (state.get("mode") !== "present" || root.classList.contains("asking") === asked) return false;
    root.classList.toggle("asking", asked);
    return true;
  };
  const forward = () => captions.forward() || ask(true) || question.reveal() || follow(course.next ?? home);
  const back = () => ask(false) || captions.back() || follow(course.previous ?? home);
  const captions = captionStrip(course, state, player, words, forward, back);
  const question = questionPanel(course, state, words, () => wayOn(course, state.get("lang"), words(), link));

  root.classList.add("in-course");
  root.querySelector("header.top").after(captions.node);
  (root.querySelector("aside > .story") ?? root.querySelector(".controls")).after(question.node);
  const after = element("section", { class: "panel after-course" });
  if (!course.next) question.node.after(after);
  const tellAfter = () => {
    const w = words();
    const items = w.afterwards.map((text) => element("li", {}, ...withCode(text)));
    fill(after, element("h2", {}, w.after), element("ul", {}, ...items));
  };
  // A screen reader hears one announcement for a step: the caption, and then the words of the page.
  const narrated = root.querySelector(".story [aria-live=polite], .race-said [aria-live=polite]");
  const live = element("div", { class: "hidden", role: "status", "aria-live": "polite" });
  narrated?.removeAttribute("role");
  narrated?.setAttribute("aria-live", "off");
  captions.node.append(live);
  const announce = () => {
    if (state.get("playing") || (course.by_steps && !Number.isInteger(state.get("step")))) return;
    const text = [captions.node.querySelector(".caption"), narrated].map((one) => one?.textContent ?? "").join(" ");
    if (live.textContent !== text) live.textContent = text;
  };
  const place = () => {
    const nav = navigation(course, state.get("lang"), words(), link);
    root.querySelector(".course-nav")?.remove();
    root.querySelector(".bar-top .brand").after(nav);
  };
  const tellKeys = () => {
    const keys = root.querySelector(".foot .keys");
    if (keys) keys.textContent += ` ${words().keys}`;
  };
  place();
  tellAfter();
  tellKeys();
  state.onChange((changed) => {
    captions.update(changed);
    announce();
    if (["step", "mode"].some((name) => changed.has(name))) root.classList.remove("asking");
    if (changed.has("lang")) tellAfter();
    if (changed.has("lang")) tellKeys(); // the header and the footer have been filled again
    if (!changed.has("lang") && !changed.has("mode")) return; // links keep both
    place();
    question.update();
  });
  const walk = { ArrowRight: forward, ArrowLeft: back };
  addEventListener(
    "keydown",
    (event) => {
      if (!event.shiftKey || event.ctrlKey || event.metaKey || event.altKey || !(event.key in walk)) return;
      event.preventDefault();
      event.stopPropagation(); // without shift, these keys go to the next step
      walk[event.key]();
    },
    true,
  );
  opened.captionAt = captions.textAt;
  opened.course = { ...course, caption: captions.current, forward, back };
}

/** The place in the course, with links to its neighbours. */
function navigation(course, language, w, link) {
  const title = course.title[language];
  const number = w.place(course.lesson, course.of);
  const tabs = course.pages.map(({ title: name, file, here }) =>
    here
      ? element("span", { class: "tab", "aria-current": "page" }, name[language])
      : file
        ? element("a", { class: "tab", href: link(file) }, name[language])
        : element("span", { class: "tab" }, name[language]),
  );
  return element(
    "div",
    { class: "course-nav", role: "group", "aria-label": w.course },
    step(course.previous, "previous-page", w.previous, "‹", link),
    element(
      "span",
      { class: "place" },
      course.home ? element("a", { href: link(course.home) }, w.course) : w.course,
      " · ",
      element("b", {}, number),
      tabs.length > 1 ? "" : ` · ${title}`,
    ),
    tabs.length > 1 ? element("span", { class: "tabs", role: "group", "aria-label": w.pages }, ...tabs) : "",
    step(course.next, "next-page", w.next, "›", link),
  );
}

function step(to, id, label, text, link) {
  return to?.file
    ? element("a", { id, class: "step", href: link(to.file), "aria-label": label, title: label }, text)
    : "";
}

/** The line below the answer: the link to the next page, or the command that draws it. */
function wayOn(course, language, w, link) {
  const { next, home } = course;
  if (!home) return withCode(next ? w.alone(next.name) : w.aloneLast);
  if (!next) return [element("a", { class: "next", href: link(home) }, w.end)];
  const text =
    next.lesson === course.lesson
      ? w.nextPage(next.title[language])
      : w.nextLesson(next.lesson, next.title[language]);
  return [element("a", { class: "next", href: link(next.file) }, `${text} →`)];
}
