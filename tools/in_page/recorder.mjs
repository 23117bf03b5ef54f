// Records what a page paints on its canvases, so that texts on them can be measured like elements. It runs in every
// document before the scripts of the page.
//
// A mark is { kind: "text", text, size, bold, colour, alpha, corners }, { kind: "fill", corners } (an opaque area) or
// { kind: "line", points }; corners and points are in pixels of the canvas, in the order of painting.

(() => {
  const MOST_MARKS = 20000; // of one canvas
  const BEND = 12; // points that stand for a curve
  const marks = new WeakMap();
  const paths = new WeakMap();
  const pen = CanvasRenderingContext2D.prototype;
  const plain = {};

  const marksOf = (canvas) => {
    if (!marks.has(canvas)) marks.set(canvas, []);
    return marks.get(canvas);
  };
  const add = (context, mark) => {
    const all = marksOf(context.canvas);
    if (all.length < MOST_MARKS) all.push(mark);
  };
  const at = (context, x, y) => {
    const { a, b, c, d, e, f } = context.getTransform();
    return [a * x + c * y + e, b * x + d * y + f];
  };
  const boxOf = (points) => {
    const xs = points.map(([x]) => x);
    const ys = points.map(([, y]) => y);
    return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  };
  const placeOf = (corners) => corners.flat().map(Math.round).join();
  const rectangle = (context, x, y, width, height) => [
    at(context, x, y),
    at(context, x + width, y),
    at(context, x + width, y + height),
    at(context, x, y + height),
  ];
  const isOpaque = ({ fillStyle, globalAlpha }) =>
    globalAlpha > 0.9 && typeof fillStyle === "string" && fillStyle.startsWith("#");

  /** Call `before` with the context and the arguments each time that the page calls a method. */
  const watch = (name, before) => {
    plain[name] = pen[name];
    pen[name] = function (...values) {
      before(this, ...values);
      return plain[name].apply(this, values);
    };
  };

  watch("clearRect", (context, x, y, width, height) => {
    const [left, top, right, bottom] = boxOf(rectangle(context, x, y, width, height));
    const { canvas } = context;
    if (left <= 0 && top <= 0 && right >= canvas.width - 1 && bottom >= canvas.height - 1) marks.set(canvas, []);
  });
  watch("drawImage", (context, source, x, y, ...rest) => {
    if (!(source instanceof HTMLCanvasElement)) return;
    if (rest.length) {
      add(context, { kind: "fill", corners: rectangle(context, x, y, rest[0], rest[1]) });
      return;
    }
    for (const mark of marks.get(source) ?? []) add(context, mark);
  });
  watch("fillText", (context, text, x, y) => {
    const said = `${text}`.trim();
    if (!said) return;
    const size = context.measureText(text);
    const left = x - size.actualBoundingBoxLeft;
    const top = y - size.actualBoundingBoxAscent;
    const width = size.actualBoundingBoxLeft + size.actualBoundingBoxRight;
    const height = size.actualBoundingBoxAscent + size.actualBoundingBoxDescent;
    const corners = rectangle(context, left, top, width, height);
    const { a, b } = context.getTransform();
    const all = marksOf(context.canvas);
    const same = (mark) => mark.kind === "text" && mark.text === said && placeOf(mark.corners) === placeOf(corners);
    const before = all.findLastIndex(same);
    if (before >= 0) all.splice(before, 1); // painted again above what had covered it
    add(context, {
      kind: "text",
      text: said,
      size: Number.parseFloat(context.font.match(/([\d.]+)px/)[1]) * Math.hypot(a, b),
      bold: /\b[67]00\b|bold/.test(context.font),
      colour: context.fillStyle,
      alpha: context.globalAlpha,
      corners,
    });
  });
  watch("fillRect", (context, ...box) => {
    if (isOpaque(context)) add(context, { kind: "fill", corners: rectangle(context, ...box) });
  });

  const pathOf = (context) => {
    if (!paths.has(context)) paths.set(context, []);
    return paths.get(context);
  };
  watch("beginPath", (context) => paths.set(context, []));
  watch("moveTo", (context, x, y) => pathOf(context).push([at(context, x, y)]));
  watch("lineTo", (context, x, y) => {
    const path = pathOf(context);
    if (path.length) path.at(-1).push(at(context, x, y));
    else path.push([at(context, x, y)]);
  });
  const curve = (context, values) => {
    const part = pathOf(context).at(-1);
    if (!part) return;
    const points = [part.at(-1)];
    for (let place = 0; place < values.length; place += 2) {
      points.push(at(context, values[place], values[place + 1]));
    }
    for (let step = 1; step <= BEND; step++) {
      let row = points;
      while (row.length > 1) {
        row = row
          .slice(1)
          .map(([x, y], index) => [
            row[index][0] + ((x - row[index][0]) * step) / BEND,
            row[index][1] + ((y - row[index][1]) * step) / BEND,
          ]);
      }
      part.push(row[0]);
    }
  };
  watch("quadraticCurveTo", (context, ...values) => curve(context, values));
  watch("bezierCurveTo", (context, ...values) => curve(context, values));
  watch("arc", (context, x, y, radius) =>
    pathOf(context).push(rectangle(context, x - radius, y - radius, 2 * radius, 2 * radius)),
  );
  for (const name of ["roundRect", "rect"]) {
    watch(name, (context, x, y, width, height) => {
      const corners = rectangle(context, x, y, width, height);
      pathOf(context).push([...corners, corners[0]]);
    });
  }
  watch("fill", (context) => {
    if (!isOpaque(context)) return;
    for (const part of pathOf(context)) if (part.length > 2) add(context, { kind: "fill", corners: part });
  });
  watch("stroke", (context) => {
    if (context.globalAlpha < 0.3) return;
    for (const part of pathOf(context)) if (part.length > 1) add(context, { kind: "line", points: part });
  });

  // The elements that react to the pointer.
  const pressed = new Set();
  const listen = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (name, ...rest) {
    if (["click", "pointerdown", "mousedown", "dblclick"].includes(name) && this instanceof Element) {
      pressed.add(new WeakRef(this));
    }
    return listen.call(this, name, ...rest);
  };

  globalThis.pageChecks = {
    marksOf,
    pressed: () => [...pressed].map((one) => one.deref()).filter((one) => one?.isConnected),
  };
})();
