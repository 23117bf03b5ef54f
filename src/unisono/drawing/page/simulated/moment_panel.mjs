// The panel that describes a moment of the simulation in words: the messages in transit and the busiest link.

import { element, fill } from "../common/dom.mjs";
import { POSITIONS } from "../common/moment_player.mjs";
import { beginning, ending, messageSentence } from "../common/sentences.mjs";
import { secondsText } from "../common/units.mjs";

const MOST_SENTENCES = 6;

/** Return the panel: { node, update }; `besides()` is the choice of a rank. */
export function momentPanel(scene, simulated, loads, state, words, time, view, besides) {
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
    const key = `${choice} ${flights} ${seen.states} ${busiest(w)?.text} ${state.get("step") >= POSITIONS}`;
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
  const busiest = (w) => {
    let best = null;
    simulated.links.forEach(({ name }, link) => {
      const load = loads.at(link, time());
      if (load > 0 && (!best || load > best.load + 1e-9)) best = { load, name: name[state.get("lang")] };
    });
    return best && { load: best.load, text: w.busiest(best.name, Math.round(100 * best.load)) };
  };

  const paragraphs = (seen, w) => {
    const language = state.get("lang");
    const rank = state.get("rank");
    if (state.get("step") <= 0) return [element("p", { class: "lead" }, w.beforeWords(beginning(scene, language)))];
    if (state.get("step") >= POSITIONS) {
      const text = `${w.over(secondsText(simulated.prediction.time_s))} ${ending(scene, language)}`;
      return [element("p", { class: "finished" }, text)];
    }
    const far = new Map(simulated.pairs.map(([src, dst, isFar]) => [src * scene.size + dst, isFar]));
    const related = seen.flying.filter(({ message }) => rank === null || [message.src, message.dst].includes(rank));
    const flying = related.filter(({ progress }) => progress < 1);
    const farOnes = flying.filter(({ message }) => far.get(message.src * scene.size + message.dst)).length;
    const lead = flying.length ? w.transit(flying.length - farOnes, farOnes, simulated.passes > 1) : w.quiet;
    const link = busiest(w);
    const made = [element("p", { class: "lead" }, [lead, link?.text ?? ""].join(language === "zh" ? "" : " "))];
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
  return { node, update };
}
