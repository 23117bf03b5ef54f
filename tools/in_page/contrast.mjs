// Measures the contrast of texts in elements, fast, and of what axe cannot see: texts on canvases, in SVG and on gradients,
// and the edges of controls.

(() => {
  const checks = globalThis.pageChecks;
  const TEXT = 4.5;
  const LARGE = 3; // from 24 px, or 18.7 px in bold; also edges of controls
  const INACTIVE = 0.5; // contents of a rank that has not entered the call, or that is not selected; not its name
  const MOST = 12; // findings of one kind

  const one = document.createElement("canvas");
  one.width = one.height = 1;
  const dot = one.getContext("2d", { willReadFrequently: true });
  const cache = new Map();

  /** A colour of CSS as [red, green, blue, alpha], from 0 to 255. */
  const colourOf = (text) => {
    if (!cache.has(text)) {
      dot.clearRect(0, 0, 1, 1);
      dot.fillStyle = "#000";
      dot.fillStyle = text;
      dot.fillRect(0, 0, 1, 1);
      cache.set(text, [...dot.getImageData(0, 0, 1, 1).data]);
    }
    return cache.get(text);
  };
  const over = (front, back, strength = 1) => {
    const alpha = (front[3] / 255) * strength;
    return [0, 1, 2].map((at) => front[at] * alpha + back[at] * (1 - alpha)).concat(255);
  };
  const light = (colour) => {
    const [red, green, blue] = colour
      .slice(0, 3)
      .map((value) => value / 255)
      .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  checks.ratio = (first, second) => {
    const [low, high] = [light(first), light(second)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const few = (ratio) => Math.floor(ratio * 100) / 100;
  const css = (colour) => `rgb(${colour.slice(0, 3).map(Math.round).join(" ")})`;

  /** The colour behind an element. */
  const groundOf = (element) => {
    if (!element) return [255, 255, 255, 255];
    if (!checks.grounds.has(element)) {
      const colour = colourOf(getComputedStyle(element).backgroundColor);
      checks.grounds.set(element, colour[3] === 255 ? colour : over(colour, groundOf(element.parentElement)));
    }
    return checks.grounds.get(element);
  };
  const neededFor = (size, bold) => (size >= 24 || (bold && size >= 18.66) ? LARGE : TEXT);

  /** The pixels of a canvas, read from a copy: the browser warns of reading from one that it draws fast. */
  const copy = document.createElement("canvas");
  const pictureOf = (canvas) => {
    copy.width = canvas.width;
    copy.height = canvas.height;
    const pen = copy.getContext("2d", { willReadFrequently: true });
    pen.drawImage(canvas, 0, 0);
    const { data } = pen.getImageData(0, 0, copy.width, copy.height);
    return { data: new Uint32Array(data.buffer), width: copy.width, height: copy.height };
  };

  function onCanvases(texts) {
    const found = [];
    const pictures = new Map();
    for (const { element, text, mark } of texts) {
      if (!mark || (mark.alpha < INACTIVE && !mark.bold)) continue;
      if (!pictures.has(element)) {
        pictures.set(element, { image: pictureOf(element), ground: groundOf(element) });
      }
      const { image, ground } = pictures.get(element);
      const back = commonest(image, mark.corners);
      if (!back) continue;
      const behind = over(back, ground);
      const ratio = checks.ratio(over(colourOf(mark.colour), behind, mark.alpha), behind);
      if (ratio < neededFor(mark.size, mark.bold)) {
        found.push([
          "contrast of text",
          checks.pathOf(element),
          text,
          `${few(ratio)}: ${mark.colour} on ${css(behind)}`,
        ]);
      }
    }
    return found;
  }

  /** The most frequent colour in and closely around a text. */
  function commonest({ data, width, height }, corners) {
    const [left, top, right, bottom] = checks.boxOf(corners).map(Math.floor);
    const counts = new Map();
    let best = null;
    for (let y = Math.max(0, top - 1); y <= Math.min(height - 1, bottom + 1); y++) {
      for (let x = Math.max(0, left - 2); x <= Math.min(width - 1, right + 2); x++) {
        const colour = data[y * width + x];
        const count = (counts.get(colour) ?? 0) + 1;
        counts.set(colour, count);
        if (!best || count > best.count) best = { count, colour };
      }
    }
    return best && [0, 8, 16, 24].map((shift) => (best.colour >>> shift) & 255);
  }

  function inDrawings(texts) {
    const found = [];
    for (const { element, text, box, mark } of texts) {
      if (mark || !(element instanceof SVGElement)) continue;
      const style = getComputedStyle(element);
      const middle = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
      const drawing = element.ownerSVGElement;
      let behind = groundOf(drawing);
      for (const shape of drawing.querySelectorAll("rect, circle, path, polygon")) {
        if (!(shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)) continue;
        const paint = getComputedStyle(shape);
        if (!paint.fill.startsWith("rgb") && !paint.fill.startsWith("color")) continue;
        const area = shape.getBoundingClientRect();
        if (middle[0] < area.left || middle[0] > area.right || middle[1] < area.top || middle[1] > area.bottom)
          continue;
        behind = over(colourOf(paint.fill), behind, paint.fillOpacity * paint.opacity);
      }
      const ratio = checks.ratio(over(colourOf(style.fill), behind, style.fillOpacity * style.opacity), behind);
      if (ratio < neededFor(Number.parseFloat(style.fontSize), style.fontWeight >= 600)) {
        found.push([
          "contrast of text",
          checks.pathOf(element),
          text,
          `${few(ratio)}: ${style.fill} on ${css(behind)}`,
        ]);
      }
    }
    return found;
  }

  /** The element around a text that has a gradient behind it, if it has. */
  const gradientOf = (element, known) => {
    if (!element) return null;
    if (!known.has(element)) {
      const { backgroundImage, backgroundColor } = getComputedStyle(element);
      const own = backgroundImage.includes("gradient");
      const ends = backgroundImage !== "none" || colourOf(backgroundColor)[3] === 255;
      known.set(element, own ? element : ends ? null : gradientOf(element.parentElement, known));
    }
    return known.get(element);
  };

  /** How much of an element is seen through what is around it. */
  const opacityOf = (element) => {
    let whole = 1;
    for (let one = element; one; one = one.parentElement) whole *= getComputedStyle(one).opacity;
    return whole;
  };

  /** Texts on the colours of the elements around them. */
  function inElements(texts) {
    const found = [];
    const gradients = new Map();
    const seen = new Set();
    for (const { element, text, mark } of texts) {
      if (mark || seen.has(element) || element instanceof SVGElement || gradientOf(element, gradients)) continue;
      seen.add(element);
      if (element.closest(":disabled, [aria-disabled=true]")) continue;
      const style = getComputedStyle(element);
      const behind = groundOf(element);
      const ratio = checks.ratio(over(colourOf(style.color), behind, opacityOf(element)), behind);
      if (ratio < neededFor(Number.parseFloat(style.fontSize), style.fontWeight >= 600)) {
        const measured = `${few(ratio)}: ${style.color} on ${css(behind)}`;
        found.push(["contrast of text", checks.pathOf(element), text, measured]);
      }
    }
    return found;
  }

  /** Texts on a gradient must be readable on each of its colours. */
  function onGradients(texts) {
    const found = [];
    const known = new Map();
    for (const { element, text, mark } of texts) {
      const at = mark || element instanceof SVGElement ? null : gradientOf(element, known);
      if (!at) continue;
      const style = getComputedStyle(element);
      const below = groundOf(at);
      const stops = getComputedStyle(at).backgroundImage.match(/(rgba?|color|hsl|oklab|oklch)\([^()]*\)/g) ?? [];
      for (const stop of stops) {
        const behind = over(colourOf(stop), below);
        const ratio = checks.ratio(over(colourOf(style.color), behind), behind);
        if (ratio >= neededFor(Number.parseFloat(style.fontSize), style.fontWeight >= 600)) continue;
        found.push(["contrast of text", checks.pathOf(element), text, `${few(ratio)}: on ${css(behind)}`]);
        break;
      }
    }
    return found;
  }

  /** A control without text, such as a list to choose from, is recognised by its edge; a button by its text or icon. */
  function edges() {
    const found = [];
    for (const control of document.querySelectorAll("select, input[type=number], input[type=text], textarea")) {
      if (!checks.isShown(control)) continue;
      const behind = groundOf(control.parentElement);
      const style = getComputedStyle(control);
      const edge = over(colourOf(style.borderTopColor), behind);
      const ratio = Math.max(checks.ratio(edge, behind), checks.ratio(groundOf(control), behind));
      if (ratio < LARGE) {
        found.push(["contrast of an edge", checks.pathOf(control), "", `${few(ratio)}: ${style.borderTopColor}`]);
      }
    }
    return found;
  }
  checks.groundOf = groundOf;
  checks.colourOf = colourOf;
  checks.over = over;

  /** All findings about contrast, as [check, element, text, measured]. */
  checks.contrast = (texts = checks.texts()) => {
    return [onCanvases, inDrawings, inElements, onGradients, edges].flatMap((find) => find(texts).slice(0, MOST));
  };
})();
