// The names of phases where they fit; a phase that is too short for its name shows its number.

/** Keep the texts of `buttons`, [{ made, name }], as long as their room allows. */
export function fitNames(node, buttons) {
  const show = ({ made, name }, text) => {
    made.firstChild.textContent = text;
    if (text === name) made.removeAttribute("aria-label");
    else made.setAttribute("aria-label", `${text}: ${name}`);
  };
  const fit = () => {
    for (const one of buttons) show(one, one.name);
    // A number leaves more room for the others only where the last one extends beyond its phase: from the end.
    for (let at = buttons.length - 1; at >= 0; at--) {
      const text = buttons[at].made.firstChild;
      if (text.scrollWidth > text.clientWidth) show(buttons[at], `${at + 1}`);
    }
  };
  new ResizeObserver(fit).observe(node);
}

/** The number of the step, and its phase. */
export function stepName(scene, position, w, language) {
  const level = Math.ceil(position - 1e-9);
  if (level === 0) return w.before;
  const phase = scene.phases.length > 1 ? phaseOf(scene, level) : null;
  return phase ? `${w.stepOf(level, scene.levels)} · ${phase.words[language]}` : w.stepOf(level, scene.levels);
}

/** The phase of a step. */
export function phaseOf(scene, level) {
  return scene.phases.find(({ first, last }) => level >= first && level <= last);
}
