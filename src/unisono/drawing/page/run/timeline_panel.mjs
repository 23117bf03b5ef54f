// The timeline with its controls: buttons, the wheel, dragging, and a description of the event under the pointer.

import { element, fill } from "../common/dom.mjs";
import { around, moved, whole, zoomed } from "../common/time_axis.mjs";
import { showTip } from "../common/tip.mjs";
import { callAt } from "./communicator.mjs";
import { linesAbout } from "./event_sentences.mjs";
import { Timeline } from "./timeline.mjs";
import { KIND_COLOURS } from "./timeline_bars.mjs";

const ZOOM = 1.5; // the factor of a button or a key
const A_CLICK = 4; // pixels that a pointer may move in a click
const SCROLLS_MS = 300; // for this long after the page has scrolled, the wheel keeps scrolling it

/** Return the panel: { node, draw, resize, refresh, keys, painter, fit, fitted }; `open` is the state of run.mjs. */
export function timelinePanel(open, state, words, choose) {
  const canvas = element("canvas", { id: "timeline", role: "img", tabindex: "0" });
  const tip = element("div", { class: "tip", hidden: true });
  const legend = element("div", { class: "legend" });
  const note = element("p", { class: "note", role: "status" });
  const bar = element("div", { class: "timeline-bar" });
  const frame = element("div", { class: "timeline-frame" }, canvas, tip);
  const node = element("section", { class: "panel timeline" }, bar, frame, legend);
  const { group } = open;

  let soon = null; // the range requested by the wheel or a finger, until the next frame
  const range = () =>
    soon ?? (state.get("from") === null ? whole(group().end) : { from: state.get("from"), to: state.get("to") });
  const show = ({ from, to }) => {
    soon = null;
    const all = whole(group().end);
    if (to - from >= (all.to - all.from) * 0.999) state.set({ from: null, to: null });
    else state.set({ from, to });
  };
  /** Show at the next frame: the wheel and fingers send more events than can be painted. */
  const showSoon = (wanted) => {
    if (soon === null) requestAnimationFrame(() => soon && show(soon));
    soon = wanted;
  };
  const look = () => ({
    group: group(),
    range: range(),
    call: open.call(),
    rank: state.get("rank"),
    words: words(),
    now: open.now(),
  });
  const painter = new Timeline(canvas, look);
  const middle = () => (range().from + range().to) / 2;
  /** Zoom around the playhead if it is visible, else around the centre. */
  const focus = () => {
    const now = open.now();
    return now !== null && now >= range().from && now <= range().to ? now : middle();
  };
  const zoom = (factor, moment = focus()) => show(zoomed(range(), moment, factor, group().end));
  const move = (part) => show(moved(range(), part, group().end));
  const fitAll = () => show(whole(group().end));
  const fitCall = () => open.call() && show(around(open.call()));
  /** The critical path from its first op on: if one rank comes late, the part before is nearly all of the call. */
  const pathRange = (call) => {
    const [first] = group().pathsOf[call.at];
    const { path_begin: begin, path_end: long, path_what: what } = group().columns;
    const begins = first !== undefined && group().whats[what[first]] === "begin";
    return around({ begin: begins ? begin[first] + long[first] : call.begin, end: call.end });
  };
  const fitPath = () => open.call() && show(pathRange(open.call()));
  const fits = { call: around, path: pathRange };
  /** The content that fills the window: the call, its path, or neither (null). */
  const fitted = () => {
    const isShown = ({ from, to }) => state.get("from") === from && state.get("to") === to;
    return Object.keys(fits).find((name) => open.call() && isShown(fits[name](open.call()))) ?? null;
  };
  const fit = (name) => show(fits[name](open.call()));

  const refresh = () => {
    const w = words();
    canvas.setAttribute("aria-label", w.timelineLabel(w.ranks(group().size), w.calls(group().calls.length)));
    const press = (id, text, label, action) =>
      element(
        "button",
        { type: "button", class: "small", id, "aria-label": label, title: label, onclick: action },
        text,
      );
    fill(
      bar,
      element("h2", {}, w.timeline),
      note,
      element(
        "div",
        { class: "buttons", role: "group", "aria-label": w.timeline },
        press("fit-all", w.fitAll, w.fitAll, fitAll),
        press("fit-call", w.fitCall, w.fitCall, fitCall),
        press("fit-path", w.fitPath, w.fitPath, fitPath),
        press("zoom-out", "−", w.further, () => zoom(ZOOM)),
        press("zoom-in", "+", w.nearer, () => zoom(1 / ZOOM)),
      ),
    );
    fill(legend, ...legendItems(group(), w, state.get("lang")));
    painter.refresh();
  };
  const draw = () => {
    painter.draw();
    const text = noteText(painter, open.call(), words());
    if (note.textContent !== text) note.textContent = text;
  };

  const gestures = {
    zoom: (factor, moment) => showSoon(zoomed(range(), moment, factor, group().end)),
    move: (part) => showSoon(moved(range(), part, group().end)),
    isWhole: () => soon === null && state.get("from") === null,
  };
  watchWheel(canvas, painter, gestures);
  watchDrag(canvas, painter, range, showSoon, group, (point) => press(point, painter, open, state, choose));
  watchHover(canvas, tip, painter, open, words, state);
  const keys = {
    "+": () => zoom(1 / ZOOM),
    "-": () => zoom(ZOOM),
    "Shift+ArrowLeft": () => move(-0.2),
    "Shift+ArrowRight": () => move(0.2),
    a: fitAll,
    c: fitCall,
    k: fitPath,
  };
  return { node, draw, resize: () => painter.resize(), refresh, keys, painter, fit, fitted };
}

/** Describe what is left out of the picture. */
function noteText({ messages, transfers }, call, w) {
  const notes = [];
  if (messages.shown < messages.all) {
    if (!messages.ofCall) notes.push(w.someOfThem(messages.shown, messages.all));
    else notes.push(messages.shown ? w.onlyOfCall(call.number) : w.noMessages);
  }
  if (transfers.shown < transfers.all) notes.push(w.noArrows(transfers.all));
  return notes.join(" ");
}

function legendItems(group, w, language) {
  const used = new Set(group.details.map(([kind]) => kind));
  const item = (kind, text, colour = null) => {
    const sign = element("i", { class: kind, "aria-hidden": "true" });
    if (colour) sign.style.background = `var(--${colour})`;
    return element("span", { class: "key" }, sign, text);
  };
  const items = Object.entries(KIND_COLOURS)
    .filter(([kind]) => used.has(kind))
    .map(([kind, colour]) => item("kind", group.kinds[kind][language], colour));
  if (group.columns.wait_rank.length) items.push(item("waits", w.legendWait));
  if (group.slow !== null) items.push(item("late", w.legendLate));
  if (group.columns.message_call.length) items.push(item("flow", w.legendMessage));
  if (group.columns.path_call.length) items.push(item("path", w.legendPath));
  if (group.columns.transfer_rank.length) items.push(item("transfer", w.legendTransfer));
  return items;
}

/** A click on a call selects it and moves the playhead to that point. */
function press({ x, y }, painter, open, state, choose) {
  const place = painter.at({ x, y });
  if (!place || !open.call()) return;
  const entered = place.found && open.group().columns[`${place.found.name}_call`]?.[place.found.at];
  choose(entered ?? callAt(open.group(), place.moment), place.moment);
  if (place.rank !== null) state.set({ rank: state.get("rank") === place.rank ? null : place.rank });
}

function pointIn(canvas, event) {
  const box = canvas.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

/** The wheel zooms, or moves sideways; if it cannot zoom out further, or while the page scrolls, it scrolls the page. */
function watchWheel(canvas, painter, { zoom, move, isWhole }) {
  let scrolled = Number.NEGATIVE_INFINITY;
  addEventListener("scroll", (event) => {
    scrolled = event.timeStamp;
  });
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (event.timeStamp - scrolled < SCROLLS_MS) return;
      const aside = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (isWhole() && (aside || event.deltaY > 0)) return;
      event.preventDefault();
      const by = aside ? event.deltaX || event.deltaY : event.deltaY;
      if (aside) move(by / painter.width);
      else zoom(Math.exp(Math.max(-120, Math.min(120, by)) / 300), painter.momentAt(pointIn(canvas, event).x));
    },
    { passive: false },
  );
}

/** Drag to move; two fingers zoom; a press without movement is a click. */
function watchDrag(canvas, painter, range, show, group, click) {
  const fingers = new Map();
  let begun = null;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, pointIn(canvas, event));
    begun = { range: range(), points: [...fingers.values()], dragged: fingers.size > 1 };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!begun || !fingers.has(event.pointerId)) return;
    fingers.set(event.pointerId, pointIn(canvas, event));
    const points = [...fingers.values()];
    const by = points[0].x - begun.points[0].x;
    if (Math.abs(by) > A_CLICK) begun.dragged = true;
    if (!begun.dragged) return;
    if (points.length === 2) {
      const before = Math.max(20, Math.abs(begun.points[0].x - begun.points[1].x));
      const now = Math.max(20, Math.abs(points[0].x - points[1].x));
      const centre = (begun.points[0].x + begun.points[1].x) / 2;
      const moment =
        begun.range.from + ((centre - painter.left) / painter.width) * (begun.range.to - begun.range.from);
      show(zoomed(begun.range, moment, before / now, group().end));
    } else {
      show(moved(begun.range, -by / painter.width, group().end));
    }
  });
  const end = (event) => {
    fingers.delete(event.pointerId);
    if (fingers.size) return;
    if (begun && !begun.dragged && event.type === "pointerup") click(pointIn(canvas, event));
    begun = null;
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
}

function watchHover(canvas, tip, painter, open, words, state) {
  const hide = () => {
    tip.hidden = true;
  };
  canvas.addEventListener("pointermove", (event) => {
    const point = pointIn(canvas, event);
    const place = event.buttons ? null : painter.at(point);
    if (!place || (place.rank === null && !open.call())) {
      hide();
      return;
    }
    const group = open.group();
    const w = words();
    const call = group.calls[callAt(group, place.moment)];
    const lines = place.found
      ? linesAbout(group, place.found, w, state.get("lang"))
      : place.rank === null
        ? [w.callOf(call.number, call.label, call.end - call.begin)]
        : [w.between(group.names[place.rank])];
    showTip(
      tip,
      canvas,
      point,
      lines.map((line, at) => element(at ? "small" : "div", {}, line, at ? element("br") : "")),
    );
  });
  canvas.addEventListener("pointerleave", hide);
}
