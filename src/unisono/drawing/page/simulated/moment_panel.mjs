// The panel that describes a moment of the simulation in words: the messages in transit and the busiest link.

import { element, fill } from "../common/dom.mjs";
import { POSITIONS } from "../common/moment_player.mjs";
import { beginning, ending, messageSentence } from "../common/sentences.mjs";
import { secondsText } from "../common/units.mjs";

const MOST_SENTENCES = 6;

/** Return the panel: { node, update, leadAt }; `timeAt` and `viewAt` belong to a position, `besides()` is the choice of a
 * rank. */
export function momentPanel(scene, simulated, loads, state, words, timeAt, viewAt, besides) {
  const view = () => viewAt(state.get("step"));
  const time = () => timeAt(state.get("step"));
  const title = element("h2");
  const said = element("div", { class: "said" });
  const chosen = element("div", { class: "chosen" });
  const live = element("div", { class: "hidden", role: "status", "aria-live": "polite" });
  const head = element("div", { class: "story-head" }, title, chosen);
  const node = element("section", { class: "panel story moment" }, head, said, live);
  let shown = "";
  let offered = "";

  const update = () => {
    const w = words();
    const seen = view();
    title.textContent = state.get("step") > 0 ? w.moment(secondsText(time())) : w.start;
    const choice = `${state.get("lang")} ${state.get("rank")}`;
    if (choice !== offered) {
      offered = choice;
      fill(chosen, besides());
    }
    const flights = seen.flying.map(({ message, progress, pass }) => `${message.id} ${pass} ${progress < 1}`);
    const key = `${choice} ${flights} ${seen.states} ${busiest(w, time())?.text} ${state.get("step") >= POSITIONS}`;
    if (key !== shown) {
      shown = key;
      fill(said, ...paragraphs(seen, w));
    }
    if (!state.get("playing")) {
      const text = `${title.textContent}${state.get("lang") === "zh" ? "。" : ". "}${said.textContent}`;
      if (live.textContent !== text) live.textContent = text;
    }
  };

  /** The sentence about the link with the highest load, and its load. */
  const busiest = (w, moment) => {
    let best = null;
    simulated.links.forEach(({ name }, link) => {
      const load = loads.at(link, moment);
      if (load > 0 && (!best || load > best.load + 1e-9)) best = { load, name: name[state.get("lang")] };
    });
    return best && { load: best.load, text: w.busiest(best.name, Math.round(100 * best.load)) };
  };

  const far = new Map(simulated.pairs.map(([src, dst, isFar]) => [src * scene.size + dst, isFar]));
  const relatedTo = (rank, { flying }) =>
    flying.filter(({ message }) => rank === null || [message.src, message.dst].includes(rank));

  /** The first sentence about a position, and the one about the busiest link. */
  const lead = (step, related, w, language) => {
    if (step <= 0) return w.beforeWords(beginning(scene, language));
    if (step >= POSITIONS) return `${w.over(secondsText(simulated.prediction.time_s))} ${ending(scene, language)}`;
    const flying = related.filter(({ progress }) => progress < 1);
    const farOnes = flying.filter(({ message }) => far.get(message.src * scene.size + message.dst)).length;
    const moving = flying.length ? w.transit(flying.length - farOnes, farOnes, simulated.passes > 1) : w.quiet;
    return [moving, busiest(w, timeAt(step))?.text ?? ""].join(language === "zh" ? "" : " ");
  };
  const leadAt = (step) => lead(step, relatedTo(null, viewAt(step)), words(), state.get("lang"));

  const paragraphs = (seen, w) => {
    const language = state.get("lang");
    const step = state.get("step");
    const related = relatedTo(state.get("rank"), seen);
    const made = [element("p", { class: step >= POSITIONS ? "finished" : "lead" }, lead(step, related, w, language))];
    if (step <= 0 || step >= POSITIONS) return made;
    const sentences = related.map(({ message, progress, pass }) => {
      const { src, dst, reduce } = message;
      const text = progress < 1 ? messageSentence(scene, message, language, false) : w.handled(dst, src, reduce);
      return simulated.passes > 1 ? w.segmentOf(text, pass + 1, simulated.passes) : text;
    });
    const items = sentences.slice(0, MOST_SENTENCES).map((text) => element("li", {}, text));
    made.push(element("ul", {}, ...items));
    const rest = sentences.length - items.length;
    if (rest > 0) made.push(element("p", { class: "note" }, w.more(rest)));
    return made;
  };

  update();
  return { node, update, leadAt };
}
