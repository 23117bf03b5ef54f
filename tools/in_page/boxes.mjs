// Finds what is cut off or overlaps, by the boxes of elements and of the texts on canvases.

(() => {
  const checks = globalThis.pageChecks;
  const SLACK = 1; // pixels
  const MOST = 12; // findings of one kind

  const { common, cut, round } = checks;
  const asBox = ({ left, top, right, bottom }) => [left, top, right, bottom].map(round);

  function cutOff(texts) {
    const found = [];
    const wide = document.documentElement.scrollWidth;
    if (wide > innerWidth) found.push(["the page is wider than its window", "html", "", `${wide} > ${innerWidth}`]);
    for (const { element, text, box, room, mark } of texts) {
      const [left, top, right, bottom] = room;
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

  /** Whether two convex shapes touch: no line separates them. */
  const touch = (one, other) => {
    for (const shape of [one, other]) {
      for (let at = 0; at < shape.length; at++) {
        const [from, to] = [shape[at], shape[(at + 1) % shape.length]];
        const axis = [to[1] - from[1], from[0] - to[0]];
        if (!axis[0] && !axis[1]) continue;
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
        if (across <= 0 || high <= 0 || one.sticks !== other.sticks) continue; // scrolls below it
        if (one.mark && other.mark && !touch(one.corners, other.corners)) continue;
        const where = checks.pathOf(one.element);
        found.push(["text over text", where, `${one.text} / ${other.text}`, `${round(across)} × ${round(high)} px`]);
      }
    }
    return found;
  }

  function overControls() {
    const found = [];
    // A link of several lines has several boxes; what is scrolled away has none.
    const all = checks
      .controls()
      .flatMap((element) =>
        [...element.getClientRects()].map((box) => ({ element, box: checks.seen(element, asBox(box)) })),
      )
      .filter(({ box }) => box);
    all.sort((one, other) => one.box[1] - other.box[1]);
    for (let at = 0; at < all.length; at++) {
      const one = all[at];
      for (let next = at + 1; next < all.length && all[next].box[1] < one.box[3]; next++) {
        const other = all[next];
        if (one.element.contains(other.element) || other.element.contains(one.element)) continue;
        if (checks.around(one.element).sticks !== checks.around(other.element).sticks) continue; // scrolls below it
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
    for (const parent of document.querySelectorAll("body, body *:not(svg *)")) {
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
      texts.filter(({ seen, mark, sticks, element }) => seen && !mark && !sticks && !(element instanceof SVGElement)),
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
        if (!top || top.contains(one.element) || one.element.contains(top) || checks.around(top).sticks) continue;
        found.push(["text is covered", checks.pathOf(one.element), one.text, `by ${checks.pathOf(top)}`]);
      }
    }
    scrollTo(0, before);
    return found;
  }

  /** Whether a line of several parts enters a box: each part is clipped to the box. */
  const crosses = (points, [left, top, right, bottom]) => {
    for (let at = 1; at < points.length; at++) {
      const [[fromX, fromY], [toX, toY]] = [points[at - 1], points[at]];
      let [first, last] = [0, 1];
      for (const [start, move, low, high] of [
        [fromX, toX - fromX, left, right],
        [fromY, toY - fromY, top, bottom],
      ]) {
        if (move === 0) {
          if (start <= low || start >= high) last = -1;
          continue;
        }
        const ends = [(low - start) / move, (high - start) / move].sort((one, other) => one - other);
        first = Math.max(first, ends[0]);
        last = Math.min(last, ends[1]);
      }
      if (first < last) return true;
    }
    return false;
  };

  /** Texts on a canvas below a line or an area that was painted later. Only names must stay visible while messages move. */
  function paintedOver(moving) {
    const found = [];
    const isPlayhead = (points) => points.length === 2 && points[0][0] === points[1][0];
    for (const canvas of document.querySelectorAll("canvas")) {
      if (!checks.isShown(canvas)) continue;
      const marks = checks
        .marksOf(canvas)
        .map((mark) => ({ mark, around: checks.boxOf(mark.corners ?? mark.points) }));
      const later = [];
      // Backwards, so that `later` has what was painted after a text.
      for (const { mark, around } of marks.reverse()) {
        if (mark.kind !== "text") {
          if (mark.kind === "fill" || !isPlayhead(mark.points)) later.push({ mark, around });
          continue;
        }
        if (moving && !mark.bold) continue;
        const box = [around[0] + SLACK, around[1] + SLACK, around[2] - SLACK, around[3] - SLACK];
        const over = later.find(
          (other) =>
            other.around[0] < box[2] &&
            other.around[2] > box[0] &&
            other.around[1] < box[3] &&
            other.around[3] > box[1] &&
            (other.mark.kind === "fill" ? touch(mark.corners, other.mark.corners) : crosses(other.mark.points, box)),
        );
        if (!over) continue;
        const kind = over.mark.kind === "fill" ? "text is painted over" : "a line crosses text";
        found.push([kind, checks.pathOf(canvas), cut(mark.text), `at ${round(box[0])}, ${round(box[1])}`]);
      }
    }
    return found;
  }

  /** All findings about boxes, as [check, element, text, measured]; `moving`: messages are in flight. */
  checks.boxes = (moving, texts = checks.texts()) => {
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
