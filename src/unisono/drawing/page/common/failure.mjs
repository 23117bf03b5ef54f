// The reason why a program fails its proof, in words.

import { element, withCode } from "./dom.mjs";

/** The kind of error, its location, and what the verifier says about it. */
export function failureDetails(wrong, w, language) {
  const said = wrong.said[language];
  const details = [
    [w.expected, said.expected],
    [w.found, said.found],
    [w.hint, said.hint],
  ].filter(([, text]) => text);
  return [
    element("p", { class: "why" }, w.failure[wrong.error] ?? w.failure.ScheduleError),
    wrong.rank !== undefined && wrong.step !== undefined
      ? element(
          "p",
          {},
          w.failureAt(wrong.rank, wrong.step + 1, wrong.level),
          wrong.op ? element("code", {}, ` ${wrong.op}`) : "",
        )
      : "",
    element("p", {}, ...withCode(said.what)),
    element("dl", {}, ...details.map(([name, text]) => fact(name, "", text))),
  ];
}

/** A row of a list of facts. */
export function fact(name, value, note, extra = null) {
  const dd = element("dd", {}, value ? element("strong", {}, value) : "");
  if (note) dd.append(" ", element("span", { class: "note" }, ...withCode(note)));
  if (extra) dd.append(extra);
  return element("div", { class: "fact" }, element("dt", {}, name), dd);
}
