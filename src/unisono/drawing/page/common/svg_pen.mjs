// A pen that writes what the stage paints as SVG, for paper and for files. It has the methods of a canvas context that the
// stage uses; shadows are left out.

const DIGITS = 100;
const ANCHORS = { left: "start", center: "middle", right: "end" };
const MIDDLE = 0.35; // from the middle of a line of text down to its baseline, in units of its size

export class SvgPen {
  constructor() {
    this.parts = [];
    this.clips = 0;
    this.saved = [];
    this.matrix = [1, 0, 0, 1, 0, 0];
    this.path = [];
    this.dash = [];
    this.clipped = "";
    Object.assign(this, { fillStyle: "#000000", strokeStyle: "#000000", lineWidth: 1, globalAlpha: 1 });
    Object.assign(this, { font: "10px sans-serif", textAlign: "left", textBaseline: "alphabetic" });
    this.ruler = document.createElement("canvas").getContext("2d"); // measures texts, and reads colours
  }

  /** The whole drawing as an SVG document of this size, with a title and a description for screen readers. */
  text({ width, height }, title, description) {
    const size = `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`;
    const opening = `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img">`;
    const about = [`<title>${escaped(title)}</title>`, `<desc>${escaped(description)}</desc>`];
    return [opening, ...about, ...this.parts, "</svg>", ""].join("\n");
  }

  save() {
    const { matrix, dash, clipped, fillStyle, strokeStyle, lineWidth, globalAlpha } = this;
    const { font, textAlign, textBaseline } = this;
    const now = { matrix, dash, clipped, fillStyle, strokeStyle, lineWidth, globalAlpha };
    this.saved.push({ ...now, font, textAlign, textBaseline });
  }

  restore() {
    Object.assign(this, this.saved.pop());
  }

  translate(x, y) {
    const [a, b, c, d, e, f] = this.matrix;
    this.matrix = [a, b, c, d, e + a * x + c * y, f + b * x + d * y];
  }

  rotate(angle) {
    const [a, b, c, d, e, f] = this.matrix;
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    this.matrix = [a * cos + c * sin, b * cos + d * sin, c * cos - a * sin, d * cos - b * sin, e, f];
  }

  beginPath() {
    this.path = [];
  }

  closePath() {
    this.path.push("Z");
  }

  moveTo(x, y) {
    this.path.push(`M${few(x)} ${few(y)}`);
  }

  lineTo(x, y) {
    this.path.push(`L${few(x)} ${few(y)}`);
  }

  quadraticCurveTo(...values) {
    this.path.push(`Q${values.map(few).join(" ")}`);
  }

  bezierCurveTo(...values) {
    this.path.push(`C${values.map(few).join(" ")}`);
  }

  /** A circle is two arcs; a canvas joins an arc to the path before it with a line. */
  arc(x, y, radius, from, to, backwards = false) {
    const point = (angle) => `${few(x + radius * Math.cos(angle))} ${few(y + radius * Math.sin(angle))}`;
    const round = `A${few(radius)} ${few(radius)} 0`;
    this.path.push(`${this.path.length && this.path.at(-1) !== "Z" ? "L" : "M"}${point(from)}`);
    const turn = backwards ? from - to : to - from;
    const sweep = backwards ? 0 : 1;
    if (Math.abs(turn) >= 2 * Math.PI - 1e-9) {
      this.path.push(`${round} 1 ${sweep} ${point(from + Math.PI)}`, `${round} 1 ${sweep} ${point(from)}`, "Z");
      return;
    }
    const positive = ((turn % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI);
    this.path.push(`${round} ${positive > Math.PI ? 1 : 0} ${sweep} ${point(to)}`);
  }

  roundRect(x, y, width, height, corner) {
    const r = Math.min(corner, width / 2, height / 2);
    const arc = `a${few(r)} ${few(r)} 0 0 1`;
    this.path.push(
      `M${few(x + r)} ${few(y)}h${few(width - 2 * r)}${arc} ${few(r)} ${few(r)}v${few(height - 2 * r)}${arc} ${few(-r)} ${few(r)}`,
      `h${few(2 * r - width)}${arc} ${few(-r)} ${few(-r)}v${few(2 * r - height)}${arc} ${few(r)} ${few(-r)}Z`,
    );
  }

  setLineDash(lengths) {
    this.dash = lengths;
  }

  clip() {
    this.clips += 1;
    this.parts.push(`<clipPath id="clip${this.clips}"><path d="${this.path.join("")}"/></clipPath>`);
    this.clipped = ` clip-path="url(#clip${this.clips})"`;
  }

  fill() {
    this.put(`path d="${this.path.join("")}"`, this.filling());
  }

  stroke() {
    this.put(`path d="${this.path.join("")}" fill="none"`, this.stroking());
  }

  fillRect(x, y, width, height) {
    this.put(`rect x="${few(x)}" y="${few(y)}" width="${few(width)}" height="${few(height)}"`, this.filling());
  }

  strokeRect(x, y, width, height) {
    const box = `rect x="${few(x)}" y="${few(y)}" width="${few(width)}" height="${few(height)}" fill="none"`;
    this.put(box, this.stroking());
  }

  /** A small picture whose points are cells: they stay sharp. */
  drawImage(canvas, x, y, width, height) {
    const place = `x="${few(x)}" y="${few(y)}" width="${few(width)}" height="${few(height)}"`;
    const style = 'preserveAspectRatio="none" style="image-rendering: pixelated"';
    this.parts.push(`<image ${place} ${style} href="${canvas.toDataURL()}"${this.placing()}/>`);
  }

  fillText(text, x, y) {
    this.write(text, x, y, this.filling());
  }

  strokeText(text, x, y) {
    this.write(text, x, y, ` fill="none"${this.stroking()}`);
  }

  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  write(text, x, y, paint) {
    const [, weight, size, family] = /^(?:(\d+) )?([\d.]+)px (.*)$/.exec(this.font);
    const down = this.textBaseline === "middle" ? MIDDLE * Number(size) : 0;
    const bold = weight ? ` font-weight="${weight}"` : "";
    const face = `font-family="${family.replaceAll('"', "'")}" font-size="${few(Number(size))}"${bold}`;
    const place = `x="${few(x)}" y="${few(y + down)}" text-anchor="${ANCHORS[this.textAlign]}"`;
    this.parts.push(`<text ${place} ${face}${paint}${this.placing()}>${escaped(text)}</text>`);
  }

  put(shape, paint) {
    this.parts.push(`<${shape}${paint}${this.placing()}/>`);
  }

  filling() {
    return ` fill="${this.colour(this.fillStyle)}"`;
  }

  stroking() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    return ` stroke="${this.colour(this.strokeStyle)}" stroke-width="${few(this.lineWidth)}"${dash}`;
  }

  placing() {
    const moved = this.matrix.some((value, at) => Math.abs(value - (at % 3 ? 0 : 1)) > 1e-9);
    const [a, b, c, d, e, f] = this.matrix;
    const turn = [a, b, c, d].map((value) => Math.round(value * 1e4) / 1e4).join(" ");
    const transform = moved ? ` transform="matrix(${turn} ${few(e)} ${few(f)})"` : "";
    return `${transform}${this.globalAlpha < 1 ? ` opacity="${few(this.globalAlpha)}"` : ""}${this.clipped}`;
  }

  /** A colour as #rrggbb: viewers of images do not know the newer notations of style sheets. */
  colour(style) {
    this.ruler.fillStyle = style;
    return this.ruler.fillStyle;
  }
}

function few(value) {
  return Math.round(value * DIGITS) / DIGITS;
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
