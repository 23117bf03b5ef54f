// Finds all texts of a page, in its elements and on its canvases, with their boxes.

(() => {
  const checks = globalThis.pageChecks;
  const CONTROLS =
    "a[href], button, input, select, textarea, summary, [tabindex]:not([tabindex='-1'], [tabindex=''])";
  const EVERYWHERE = [
    Number.NEGATIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    Number.POSITIVE_INFINITY,
    Number.POSITIVE_INFINITY,
  ];
  const LONGEST = 40; // letters of a text in a finding
  const SMALLEST = 2; // pixels of an area that can be seen

  checks.cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 2)}…` : text);
  checks.round = (value) => Math.round(value * 10) / 10;

  /** A short CSS path to an element. */
  checks.pathOf = (element) => {
    const parts = [];
    for (let one = element; one && one !== document.body && parts.length < 4; one = one.parentElement) {
      if (one.id) {
        parts.unshift(`#${one.id}`);
        break;
      }
      const classes = [...one.classList].map((name) => `.${name}`).join("");
      const alike = one.parentElement
        ? [...one.parentElement.children].filter(({ tagName }) => tagName === one.tagName)
        : [];
      const place = alike.length > 1 ? `:nth-of-type(${alike.indexOf(one) + 1})` : "";
      parts.unshift(`${one.tagName.toLowerCase()}${classes}${place}`);
    }
    return parts.join(" > ");
  };

  /** The box around some points. */
  checks.boxOf = (points) => {
    const box = [EVERYWHERE[2], EVERYWHERE[3], EVERYWHERE[0], EVERYWHERE[1]];
    for (const [x, y] of points) {
      if (x < box[0]) box[0] = x;
      if (y < box[1]) box[1] = y;
      if (x > box[2]) box[2] = x;
      if (y > box[3]) box[3] = y;
    }
    return box;
  };

  /** The width and height of the common area of two boxes, each made smaller by some pixels. */
  checks.common = (one, other, across, down) => [
    Math.min(one[2], other[2]) - Math.max(one[0], other[0]) - 2 * across,
    Math.min(one[3], other[3]) - Math.max(one[1], other[1]) - 2 * down,
  ];
  const both = (one, other) => [
    Math.max(one[0], other[0]),
    Math.max(one[1], other[1]),
    Math.min(one[2], other[2]),
    Math.min(one[3], other[3]),
  ];

  let known = new Map(); // what is around elements
  checks.grounds = new Map(); // the colours behind elements

  /** What the elements around an element do to it: `hidden`, for screen readers only; `sticks`, how many of them stick to
   * an edge while the rest scrolls; `seen`, the area that shows it now; `room`, the area that can show it after scrolling. */
  checks.around = (element) => {
    if (!element || element === document.documentElement) {
      const room = [0, EVERYWHERE[1], innerWidth, EVERYWHERE[3]];
      return { hidden: false, sticks: 0, seen: EVERYWHERE, room };
    }
    if (known.has(element)) return known.get(element);
    const above = checks.around(element.parentElement);
    const { overflowX, overflowY, position, clipPath } = getComputedStyle(element);
    const made = {
      hidden: above.hidden || clipPath === "inset(50%)",
      sticks: above.sticks + (position === "sticky"),
      seen: above.seen,
      room: position === "fixed" ? [0, 0, innerWidth, innerHeight] : above.room,
    };
    if (overflowX !== "visible" || overflowY !== "visible") {
      const { left, top, right, bottom } = element.getBoundingClientRect();
      const box = [left, top, right, bottom];
      const [across, down] = [overflowX, overflowY].map((name) => name === "auto" || name === "scroll");
      const inside = both(made.room, box);
      made.seen = both(made.seen, box);
      made.room = [
        across ? EVERYWHERE[0] : inside[0],
        down ? EVERYWHERE[1] : inside[1],
        across ? EVERYWHERE[2] : inside[2],
        down ? EVERYWHERE[3] : inside[3],
      ];
    }
    known.set(element, made);
    return made;
  };

  /** The visible part of a box in an element, null without one. */
  checks.seen = (element, box) => {
    const seen = both(checks.around(element).seen, box);
    return seen[2] - seen[0] > SMALLEST && seen[3] - seen[1] > SMALLEST ? seen : null;
  };

  /** Whether a reader can see an element, perhaps after scrolling. */
  checks.isShown = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true }) &&
    !element.closest("noscript, script, style, option") &&
    !checks.around(element).hidden;

  /** Measure again: the page has changed. */
  checks.forget = () => {
    known = new Map();
    checks.grounds = new Map();
  };
  checks.controls = () =>
    [...document.querySelectorAll(CONTROLS)].filter((one) => checks.isShown(one) && !one.disabled);

  /** The texts, line by line: { element, text, box: [left, top, right, bottom], seen, room, sticks, node or mark }; `seen`
   * is the visible part of the box, null without one. */
  checks.texts = () => {
    checks.forget();
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const element = node.parentElement;
      if (!node.data.trim() || !checks.isShown(element)) continue;
      const text = checks.cut(node.data.trim());
      const around = checks.around(element);
      range.selectNodeContents(node);
      const boxes = element instanceof SVGElement ? [element.getBoundingClientRect()] : range.getClientRects();
      for (const { left, top, right, bottom } of boxes) {
        if (right - left <= 0.5 || bottom - top <= 0.5) continue;
        const box = [left, top, right, bottom];
        found.push({ ...around, element, text, box, seen: checks.seen(element, box), node });
      }
    }
    for (const canvas of document.querySelectorAll("canvas")) {
      if (!checks.isShown(canvas)) continue;
      const place = canvas.getBoundingClientRect();
      const room = [place.left, place.top, place.right, place.bottom];
      const scale = place.width / canvas.width || 1;
      for (const mark of checks.marksOf(canvas)) {
        if (mark.kind !== "text") continue;
        const corners = mark.corners.map(([x, y]) => [place.left + x * scale, place.top + y * scale]);
        const box = checks.boxOf(corners);
        found.push({
          element: canvas,
          text: checks.cut(mark.text),
          box,
          seen: box,
          room,
          sticks: 0,
          corners,
          mark,
        });
      }
    }
    return found;
  };
})();
