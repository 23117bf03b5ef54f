// Goes through the positions of a page and collects what the other checks find there.

(() => {
  const checks = globalThis.pageChecks;
  const MIDDLE = 0.5;

  /** Wait until the page has reacted to another size, language or theme. */
  checks.settled = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

  /** Choose a language with the button of the page. */
  checks.speak = (language) => {
    const button = document.querySelector(`[data-language^=${language}]`);
    if (button && button.getAttribute("aria-pressed") !== "true") button.click();
  };

  /** The positions to look at: { at, moving }; a page without a player has one. Most of them do without the beginning,
   * where nothing has happened. */
  function positions(beginning) {
    const { player, state, times, replay } = globalThis.unisono ?? {};
    if (!player) return [{ at: null, moving: false }];
    const length = player.length();
    const byTime = Boolean(times ?? replay) || state.get("by") === "time";
    const rest = Math.max(1, Math.floor(length * MIDDLE));
    const all = [
      ...(beginning ? [{ at: 0, moving: byTime && length > 0 }] : []),
      { at: Math.max(0, rest - MIDDLE), moving: true },
      { at: rest, moving: byTime && rest < length },
      { at: length, moving: false },
    ];
    return all.filter(({ at }, index) => all.findIndex((other) => other.at === at) === index);
  }

  /** Findings as [check, element, text, measured, position]. */
  checks.atAllPositions = async (beginning) => {
    const found = [];
    await checks.settled();
    for (const { at, moving } of positions(beginning)) {
      if (at !== null) globalThis.unisono.player.go(at, false);
      const texts = checks.texts();
      const here = checks.boxes(moving, texts);
      if (!moving) here.push(...checks.contrast(texts));
      for (const one of here) found.push([...one, at]);
    }
    return found;
  };
})();
