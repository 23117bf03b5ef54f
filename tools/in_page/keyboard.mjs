// Checks that everything can be reached and seen without a mouse, and what screen readers announce.

(() => {
  const checks = globalThis.pageChecks;
  const EDGE = 3; // the contrast of an outline
  const LIVE = "[role=status], [role=alert], [role=log], [aria-live=polite], [aria-live=assertive], output";
  // Tab begins here: without it, the first one would go to what follows the element that had the focus before.
  const start = document.createElement("span");
  start.tabIndex = 1;
  let stops = [];
  let looks = new Map();

  const lookOf = (element) => {
    const { boxShadow, backgroundColor, borderColor, color } = getComputedStyle(element);
    return [boxShadow, backgroundColor, borderColor, color].join();
  };

  /** The sides on which the outline of an element is hidden by an ancestor or the window. */
  const hiddenSides = (element, offset) => {
    const box = element.getBoundingClientRect();
    const outline = [box.left - offset, box.top - offset, box.right + offset, box.bottom + offset];
    const hidden = new Set();
    if (outline[0] <= 0) hidden.add("left");
    if (outline[2] >= innerWidth) hidden.add("right");
    for (let one = element.parentElement; one && one !== document.body; one = one.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(one);
      const room = one.getBoundingClientRect();
      if (overflowX !== "visible") {
        if (room.left >= outline[0] + 0.5) hidden.add("left");
        if (room.right <= outline[2] - 0.5) hidden.add("right");
      }
      if (overflowY !== "visible") {
        if (room.top >= outline[1] + 0.5) hidden.add("top");
        if (room.bottom <= outline[3] - 0.5) hidden.add("bottom");
      }
    }
    return [...hidden];
  };

  const arrived = ({ target }) => {
    if (target === start) return;
    const style = getComputedStyle(target);
    const width = Number.parseFloat(style.outlineWidth);
    const drawn = style.outlineStyle !== "none" && width > 0;
    const { left, top, right, bottom } = target.getBoundingClientRect();
    let down = 0; // the place of the element in what scrolls
    for (let one = target.parentElement; one; one = one.parentElement) down += one.scrollTop;
    const stop = { element: target, box: [left, top + down, right, bottom + down] };
    if (drawn) {
      stop.hidden = hiddenSides(target, Number.parseFloat(style.outlineOffset));
      if (style.outlineStyle !== "auto") {
        const inside = Number.parseFloat(style.outlineOffset) < 0;
        const behind = checks.groundOf(inside ? target : target.parentElement);
        stop.ratio = checks.ratio(checks.over(checks.colourOf(style.outlineColor), behind), behind);
      }
    } else if (looks.get(target) === lookOf(target)) {
      stop.invisible = true;
    }
    stops.push(stop);
  };

  /** The elements that Tab should reach; of a group of radio buttons, the chosen one. */
  const expected = () =>
    checks
      .controls()
      .filter((one) => one.type !== "radio" || one.checked)
      .filter((one) => !one.closest("[inert]"));

  /** How many elements Tab can reach, also those that only their focus shows. */
  const reachable = () =>
    [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter(
      (one) => one.tabIndex >= 0 && !one.disabled && one.checkVisibility({ visibilityProperty: true }),
    ).length;

  /** Begin to record; return how many times to press Tab. */
  checks.watchFocus = () => {
    checks.forget();
    document.body.prepend(start);
    start.focus();
    scrollTo(0, 0);
    stops = [];
    looks = new Map(expected().map((one) => [one, lookOf(one)]));
    addEventListener("focusin", arrived);
    return reachable() + 1;
  };

  /** All findings about the focus, as [check, element, text, measured]. */
  checks.focus = () => {
    checks.forget();
    removeEventListener("focusin", arrived);
    start.remove();
    const found = [];
    const seen = new Set(stops.map(({ element }) => element));
    for (const element of expected()) {
      if (!seen.has(element)) {
        const last = stops.length ? checks.pathOf(stops.at(-1).element) : "nothing";
        found.push(["Tab does not reach it", checks.pathOf(element), "", `the last one reached: ${last}`]);
      }
    }
    const once = stops.filter(({ element }, at) => stops.findIndex((stop) => stop.element === element) === at);
    // What sticks to the window has no place in the page.
    const placed = once.filter(({ element }) => !checks.around(element).sticks);
    for (const stop of once) {
      const where = checks.pathOf(stop.element);
      if (stop.invisible) found.push(["focus is invisible", where, "", "no outline, and nothing else changes"]);
      if (stop.hidden?.length) found.push(["focus is cut off", where, "", stop.hidden.join(", ")]);
      if (stop.ratio < EDGE) found.push(["contrast of the focus", where, "", stop.ratio.toFixed(2)]);
      const before = placed[placed.indexOf(stop) - 1];
      if (!before) continue;
      const up = stop.box[3] <= before.box[1] + 1;
      const sameColumn = stop.box[0] < before.box[2] && before.box[0] < stop.box[2];
      if (up && sameColumn) {
        found.push(["the focus goes up", where, "", `after ${checks.pathOf(before.element)}`]);
      }
    }
    return found;
  };

  /** Elements that react to the pointer but cannot be focused, nor are inside of what can. `otherWay` has, for some of
   * them, the controls that do the same. */
  checks.mouseOnly = (otherWay) => {
    const properties = [...document.querySelectorAll("*")].filter((one) => one.onclick || one.onpointerdown);
    const found = [];
    for (const element of new Set([...checks.pressed(), ...properties])) {
      if (!checks.isShown(element) || element.closest("a[href], button, input, select, summary, label")) continue;
      // The body listens for events of elements in it.
      if (element.tabIndex >= 0 || element === document.body) continue;
      const other = Object.entries(otherWay).find(([selector]) => element.matches(selector));
      if (other && [...document.querySelectorAll(other[1])].some(checks.isShown)) continue;
      found.push(["only a mouse can use it", checks.pathOf(element), "", `tabindex ${element.tabIndex}`]);
    }
    return found;
  };

  /** Announcements: one for each step, none while the animation plays. */
  checks.announcements = async () => {
    const { player, state } = globalThis.unisono ?? {};
    if (!player || !state) return [];
    const changed = new Set();
    const watch = new MutationObserver((events) => {
      for (const { target } of events) {
        const region = (target instanceof Element ? target : target.parentElement)?.closest(LIVE);
        if (region && region.getAttribute("aria-live") !== "off") changed.add(region);
      }
    });
    const observed = { subtree: true, childList: true, characterData: true };
    const settle = () => new Promise((done) => setTimeout(done, 0));
    player.go(0, false);
    await settle();
    watch.observe(document.body, observed);
    const found = [];
    const whole = Math.max(1, Math.round(player.length() / 2));
    player.go(whole, false);
    await settle();
    const regions = [...changed];
    if (!regions.length) found.push(["a step is not announced", "html", "", "0 live regions changed"]);
    if (regions.length > 1) {
      const paths = regions.map(checks.pathOf).join(", ");
      found.push(["a step is announced more than once", paths, "", `${regions.length} live regions changed`]);
    }
    for (const region of regions) {
      if (!region.textContent.trim()) found.push(["an announcement is empty", checks.pathOf(region), "", ""]);
    }
    changed.clear();
    const wake = player.wake; // positions while playing, without waiting for frames
    player.wake = () => {};
    state.set({ playing: true });
    for (let part = 1; part <= 9; part++) {
      state.set({ step: (player.length() * part) / 9.5 });
      await settle();
    }
    for (const region of changed) found.push(["playing is announced", checks.pathOf(region), "", ""]);
    watch.disconnect();
    player.wake = wake;
    state.set({ playing: false, step: 0 });
    return found;
  };
})();
