// Finds what is cut off or overlaps, by the boxes of elements and of the texts on canvases.

(() => {
  const checks = globalThis.pageChecks;
  const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex]:not([tabindex='-1'])";
  const SLACK = 1; // pixels
  const MOST = 12; // findings of one kind

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
  /** Whether a reader can see an element; texts for screen readers only are clipped to nothing. */
  checks.isShown = (element) => {
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true })) {
      return false;
    }
    if (element.closest("noscript, script, style, option")) return false;
    for (let one = element; one && one !== document.body; one = one.parentElement) {
      if (getComputedStyle(one).clipPath === "inset(50%)") return false;
    }
    return true;
  };
  checks.controls = () =>
    [...document.querySelectorAll(CONTROLS)].filter((one) => checks.isShown(one) && !one.disabled);

  const cut = (text) => (text.length > 40 ? `${text.slice(0, 38)}…` : text);
  const round = (value) => Math.round(value * 10) / 10;
  const asBox = ({ left, top, right, bottom }) => [left, top, right, bottom].map(round);

  /** The part of a box that its element and the elements around it show; null if they show nothing of it. */
  const seenOf = (box, element) => {
    let seen = box;
    for (let one = element; one && one !== document.body; one = one.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(one);
      if (overflowX === "visible" && overflowY === "visible") continue;
      const room = one.getBoundingClientRect();
      seen = [
        Math.max(seen[0], room.left),
        Math.max(seen[1], room.top),
        Math.min(seen[2], room.right),
        Math.min(seen[3], room.bottom),
      ];
    }
    return seen[2] - seen[0] > SLACK && seen[3] - seen[1] > SLACK ? seen : null;
  };

  /** The texts of the page, line by line: { element, text, box: [left, top, right, bottom], seen, node or mark }; `seen` is
   * the part of the box that is not scrolled out of sight. */
  checks.texts = () => {
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const element = node.parentElement;
      if (!node.data.trim() || !checks.isShown(element)) continue;
      range.selectNodeContents(node);
      const boxes = element instanceof SVGElement ? [element.getBoundingClientRect()] : range.getClientRects();
      for (const box of boxes) {
        if (box.width <= 0.5 || box.height <= 0.5) continue;
        const sides = [box.left, box.top, box.right, box.bottom];
        found.push({ element, text: cut(node.data.trim()), box: sides, seen: seenOf(sides, element), node });
      }
    }
    for (const canvas of document.querySelectorAll("canvas")) {
      if (!checks.isShown(canvas)) continue;
      const place = canvas.getBoundingClientRect();
      const scale = place.width / canvas.width || 1;
      for (const mark of checks.marksOf(canvas)) {
        if (mark.kind !== "text") continue;
        const corners = mark.corners.map(([x, y]) => [place.left + x * scale, place.top + y * scale]);
        const xs = corners.map(([x]) => x);
        const ys = corners.map(([, y]) => y);
        const box = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
        found.push({ element: canvas, text: cut(mark.text), box, seen: box, corners, mark });
      }
    }
    return found;
  };

  /** The part of the window in which an element can be seen, without and with scrolling inside of the page. */
  const roomOf = (element) => {
    let room = [0, Number.NEGATIVE_INFINITY, innerWidth, Number.POSITIVE_INFINITY];
    let free = [false, false]; // scrolled, across and down
    for (let one = element; one && one !== document.body; one = one.parentElement) {
      const { overflowX, overflowY, position } = getComputedStyle(one);
      if (overflowX !== "visible" || overflowY !== "visible") {
        const box = one.getBoundingClientRect();
        const scrolls = [overflowX, overflowY].map((name) => name === "auto" || name === "scroll");
        if (!free[0] && !scrolls[0] && overflowX !== "visible") {
          room = [Math.max(room[0], box.left), room[1], Math.min(room[2], box.right), room[3]];
        }
        if (!free[1] && !scrolls[1] && overflowY !== "visible") {
          room = [room[0], Math.max(room[1], box.top), room[2], Math.min(room[3], box.bottom)];
        }
        if (scrolls[0] && !free[0]) room = [Number.NEGATIVE_INFINITY, room[1], Number.POSITIVE_INFINITY, room[3]];
        if (scrolls[1] && !free[1]) room = [room[0], Number.NEGATIVE_INFINITY, room[2], Number.POSITIVE_INFINITY];
        free = free.map((was, side) => was || scrolls[side]);
      }
      if (position === "fixed") break;
    }
    return room;
  };

  function cutOff(texts) {
    const found = [];
    const wide = document.documentElement.scrollWidth;
    if (wide > innerWidth) found.push(["the page is wider than its window", "html", "", `${wide} > ${innerWidth}`]);
    const rooms = new Map();
    for (const { element, text, box, mark } of texts) {
      if (!rooms.has(element)) {
        rooms.set(element, mark ? asBox(element.getBoundingClientRect()) : roomOf(element));
      }
      const [left, top, right, bottom] = rooms.get(element);
      const over = Math.max(left - box[0], top - box[1], box[2] - right, box[3] - bottom);
      const slack = mark ? 0.5 : Math.max(SLACK, box[3] > bottom || box[1] < top ? (box[3] - box[1]) * 0.2 : 0);
      if (over > slack) found.push(["text is cut off", checks.pathOf(element), text, `${round(over)} px`]);
    }
    const pen = document.createElement("canvas").getContext("2d");
    for (const one of document.querySelectorAll("select")) {
      if (!checks.isShown(one) || !one.selectedOptions.length) continue;
      const style = getComputedStyle(one);
      pen.font = style.font;
      const room =
        one.clientWidth - Number.parseFloat(style.paddingLeft) - Number.parseFloat(style.paddingRight) - 18;
      const needed = pen.measureText(one.selectedOptions[0].text).width;
      if (needed > room + SLACK) {
        const size = `${round(needed)} > ${round(room)} px`;
        found.push(["text is cut off", checks.pathOf(one), one.selectedOptions[0].text, size]);
      }
    }
    return found;
  }

  /** The common area of two boxes, each made smaller by some pixels: [width, height]. */
  const common = (one, other, across = SLACK, down = SLACK) => [
    Math.min(one[2], other[2]) - Math.max(one[0], other[0]) - 2 * across,
    Math.min(one[3], other[3]) - Math.max(one[1], other[1]) - 2 * down,
  ];

  /** Whether two convex shapes touch: no line separates them. */
  const touch = (one, other) => {
    for (const shape of [one, other]) {
      for (let at = 0; at < shape.length; at++) {
        const [from, to] = [shape[at], shape[(at + 1) % shape.length]];
        const axis = [to[1] - from[1], from[0] - to[0]];
        const spans = [one, other].map((points) => points.map(([x, y]) => x * axis[0] + y * axis[1]));
        const length = Math.hypot(...axis) || 1;
        const gap = Math.max(
          Math.min(...spans[0]) - Math.max(...spans[1]),
          Math.min(...spans[1]) - Math.max(...spans[0]),
        );
        if (gap / length > -2 * SLACK) return false;
      }
    }
    return true;
  };

  /** What sticks to an edge while the rest scrolls may cover the rest. */
  const isSticky = (element) => {
    for (let one = element; one && one !== document.body; one = one.parentElement) {
      if (getComputedStyle(one).position === "sticky") return true;
    }
    return false;
  };

  /** While messages move, their contents may cross; names may not be hit. */
  function overText(texts, moving) {
    const found = [];
    const sorted = texts
      .filter(({ seen }) => seen)
      .map((one) => ({ ...one, box: one.seen }))
      .sort((one, other) => one.box[1] - other.box[1]);
    for (let at = 0; at < sorted.length; at++) {
      const one = sorted[at];
      for (let next = at + 1; next < sorted.length && sorted[next].box[1] < one.box[3]; next++) {
        const other = sorted[next];
        if (one.node && one.node === other.node) continue;
        if (moving && one.mark && other.mark && !one.mark.bold && !other.mark.bold) continue;
        const lower = Math.min(one.box[3] - one.box[1], other.box[3] - other.box[1]);
        // The box of a line of HTML is higher than its letters.
        const down = one.mark && other.mark ? SLACK / 2 : lower * 0.15;
        const [across, high] = common(one.box, other.box, SLACK / 2, down);
        if (across <= 0 || high <= 0 || isSticky(one.element) || isSticky(other.element)) continue;
        if (one.mark && other.mark && !touch(one.corners, other.corners)) continue;
        const where = checks.pathOf(one.element);
        found.push(["text over text", where, `${one.text} / ${other.text}`, `${round(across)} × ${round(high)} px`]);
      }
    }
    return found;
  }

  function overControls() {
    const found = [];
    const all = checks.controls().map((element) => ({ element, box: asBox(element.getBoundingClientRect()) }));
    all.sort((one, other) => one.box[1] - other.box[1]);
    for (let at = 0; at < all.length; at++) {
      const one = all[at];
      for (let next = at + 1; next < all.length && all[next].box[1] < one.box[3]; next++) {
        const other = all[next];
        if (one.element.contains(other.element) || other.element.contains(one.element)) continue;
        const [across, high] = common(one.box, other.box, SLACK / 2, SLACK / 2);
        if (across > 0 && high > 0) {
          const pair = `${checks.pathOf(one.element)} / ${checks.pathOf(other.element)}`;
          found.push(["controls overlap", pair, "", `${round(across)} × ${round(high)} px`]);
        }
      }
    }
    return found;
  }

  /** Elements of the same parent that are in the flow, have text, and overlap. */
  function overElements() {
    const found = [];
    for (const parent of document.querySelectorAll(".page, .page *:not(svg *)")) {
      if (parent.childElementCount < 2 || !checks.isShown(parent)) continue;
      const inside = [...parent.children].filter((one) => {
        const { display, position } = getComputedStyle(one);
        const flows = ["static", "relative"].includes(position) && !["inline", "contents", "none"].includes(display);
        return (
          flows && one.textContent.trim() && checks.isShown(one) && !one.matches("tr, td, th, tbody, thead, svg *")
        );
      });
      const boxes = inside.map((one) => asBox(one.getBoundingClientRect()));
      for (let at = 0; at < inside.length; at++) {
        for (let next = at + 1; next < inside.length; next++) {
          const [across, high] = common(boxes[at], boxes[next], 0, 0);
          if (across > SLACK && high > SLACK && boxes[next][3] > boxes[next][1]) {
            const pair = `${checks.pathOf(inside[at])} / ${checks.pathOf(inside[next])}`;
            found.push(["elements overlap", pair, "", `${round(across)} × ${round(high)} px`]);
          }
        }
      }
    }
    return found;
  }

  /** Texts that another element covers: the topmost element at their centre is not theirs. */
  function covered(texts) {
    const found = [];
    const before = scrollY;
    const rest = new Set(
      texts.filter(({ seen, mark, element }) => seen && !mark && !(element instanceof SVGElement)),
    );
    const highest = document.documentElement.scrollHeight;
    for (let down = 0; down < highest && rest.size; down += innerHeight) {
      scrollTo(0, down);
      const moved = before - scrollY;
      for (const one of [...rest]) {
        const [x, y] = [(one.seen[0] + one.seen[2]) / 2, (one.seen[1] + one.seen[3]) / 2 + moved];
        if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) continue;
        rest.delete(one);
        const top = document.elementFromPoint(x, y);
        if (!top || top.contains(one.element) || one.element.contains(top) || isSticky(top)) continue;
        found.push(["text is covered", checks.pathOf(one.element), one.text, `by ${checks.pathOf(top)}`]);
      }
    }
    scrollTo(0, before);
    return found;
  }

  const crosses = (points, [left, top, right, bottom]) => {
    for (let at = 1; at < points.length; at++) {
      const [from, to] = [points[at - 1], points[at]];
      const steps = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / 2) || 1;
      for (let step = 0; step <= steps; step++) {
        const x = from[0] + ((to[0] - from[0]) * step) / steps;
        const y = from[1] + ((to[1] - from[1]) * step) / steps;
        if (x > left && x < right && y > top && y < bottom) return true;
      }
    }
    return false;
  };

  /** Texts on a canvas below a line or an area that was painted later. Only names must stay visible while messages move. */
  function paintedOver(moving) {
    const found = [];
    for (const canvas of document.querySelectorAll("canvas")) {
      if (!checks.isShown(canvas)) continue;
      const marks = checks.marksOf(canvas);
      marks.forEach((mark, at) => {
        if (mark.kind !== "text" || (moving && !mark.bold)) return;
        const xs = mark.corners.map(([x]) => x);
        const ys = mark.corners.map(([, y]) => y);
        const box = [
          Math.min(...xs) + SLACK,
          Math.min(...ys) + SLACK,
          Math.max(...xs) - SLACK,
          Math.max(...ys) - SLACK,
        ];
        for (const other of marks.slice(at + 1)) {
          if (other.kind === "text") continue;
          const over =
            other.kind === "fill"
              ? common(box, other.box, 0, 0).every((side) => side > 0)
              : crosses(other.points, box);
          if (!over) continue;
          const kind = other.kind === "fill" ? "text is painted over" : "a line crosses text";
          found.push([kind, checks.pathOf(canvas), cut(mark.text), `at ${round(box[0])}, ${round(box[1])}`]);
          break;
        }
      });
    }
    return found;
  }

  /** All findings about boxes, as [check, element, text, measured]; `moving`: messages are in flight. */
  checks.boxes = (moving) => {
    const texts = checks.texts();
    const all = [
      cutOff(texts),
      overText(texts, moving),
      overControls(),
      overElements(),
      covered(texts),
      paintedOver(moving),
    ];
    return all.flatMap((found) => found.slice(0, MOST));
  };
})();
