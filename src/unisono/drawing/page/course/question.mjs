// The question of a page of the course: choices that are checked, an answer that the student reveals, and the way on.

import { element, fill, withCode } from "../common/dom.mjs";

/** Return the panel: { node, update, reveal }; `next()` returns the children of its last line. */
export function questionPanel(course, state, words, next) {
  const { question } = course;
  const node = element("section", { class: "panel question", id: "question" });
  const verdict = element("p", { class: "verdict", role: "status", "aria-live": "polite" });
  let chosen = null;
  let revealed = false;

  const update = () => {
    const language = state.get("lang");
    const w = words();
    const choices = question.choices.map((choice, at) => {
      const kind = chosen === at ? (at === question.right ? "right" : "wrong") : "";
      const known = revealed && at === question.right ? "right" : kind;
      return element(
        "button",
        {
          type: "button",
          class: `choice-button ${known}`,
          "aria-pressed": `${chosen === at}`,
          "data-choice": at,
          onclick: () => choose(at),
        },
        ...withCode(choice[language]),
      );
    });
    verdict.textContent = chosen === null ? "" : chosen === question.right ? w.right : w.wrong;
    verdict.className = `verdict ${chosen === question.right ? "right" : "wrong"}`;
    const answer = element("p", { class: "answer", hidden: !revealed }, ...withCode(question.answer[language]));
    const show = element(
      "button",
      { type: "button", id: "reveal", hidden: revealed, onclick: () => reveal() },
      w.reveal,
    );
    const focused = node.contains(document.activeElement) ? document.activeElement : null;
    const again = focused?.id
      ? `#${focused.id}`
      : focused?.dataset.choice
        ? `[data-choice="${focused.dataset.choice}"]`
        : "";
    fill(
      node,
      element("h2", {}, w.question),
      element("p", { class: "asked" }, ...withCode(question.words[language])),
      element("div", { class: "choice-buttons", role: "group", "aria-label": w.question }, ...choices),
      verdict,
      show,
      answer,
      element("p", { class: "way-on" }, ...next()),
    );
    if (again) (node.querySelector(`${again}:not([hidden])`) ?? node.querySelector(".way-on a"))?.focus();
  };
  const choose = (at) => {
    chosen = at;
    update();
  };
  /** Show the answer; return whether it was hidden. */
  const reveal = () => {
    if (revealed) return false;
    revealed = true;
    update();
    node.scrollIntoView({ block: "nearest" });
    return true;
  };
  update();
  return { node, update, reveal };
}
