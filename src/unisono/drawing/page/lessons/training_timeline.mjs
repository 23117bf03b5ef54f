// The whole step at a glance: the computation, the collectives that run meanwhile, and the memory of a rank.

import { element, shape } from "../common/dom.mjs";
import { bytesText } from "../common/units.mjs";
import { EMPTY, KINDS, memoryAt, memoryFormula, spans } from "./training_model.mjs";
import { titleOf } from "./training_narration.mjs";
import { letterOf } from "./training_stage.mjs";

const LANE = 20; // height of a lane
const GAP = 4;
const MEMORY = 120; // height of the chart of memory

/** Return { node, update, render }: `render` redraws the timeline, `update` moves the line of the current moment. */
export function timelinePanel(data, state, player, words, allOnOne) {
  const title = element("h2");
  const note = element("p", { class: "note" });
  const svg = shape("svg", { role: "img", class: "timeline" });
  const node = element("section", { class: "panel" }, title, svg, note);
  const count = data.moments.length;
  let room = null;

  const render = () => {
    const w = words();
    title.textContent = w.timeline;
    note.textContent = w.timelineNote;
    svg.setAttribute("aria-label", w.timelineLabel);
    room = roomOf(svg.clientWidth || 760, lanesOf(data));
    svg.setAttribute("viewBox", `0 0 ${room.width} ${room.height}`);
    svg.style.height = `${room.height}px`;
    svg.replaceChildren(
      ...laneNames(w, room),
      ...computation(data, w, room),
      ...collectives(data, room),
      ...memory(data, state.get("rank") ?? 0, allOnOne, w, room),
      shape("rect", { class: "here", y: 0, height: room.height - 2, width: room.unit, rx: 3 }),
    );
    update();
  };
  const update = () => {
    const level = Math.ceil(state.get("step") - 1e-9);
    svg.querySelector(".here")?.setAttribute("x", room.left + level * room.unit);
  };
  svg.addEventListener("pointerdown", (event) => {
    const box = svg.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * room.width - room.left;
    player.go(Math.max(0, Math.min(count - 1, Math.floor(place / room.unit))), false);
  });
  return { node, update, render };
}

/** The lane of each collective, so that none overlap. */
export function lanesOf(data) {
  const busy = [];
  return spans(data).map(({ first, last }) => {
    let lane = 0;
    while (busy[lane] !== undefined && busy[lane] >= first) lane++;
    busy[lane] = last;
    return lane;
  });
}

function roomOf(width, lanes) {
  const left = width < 480 ? 8 : 106;
  const many = Math.max(0, ...lanes) + 1;
  const sending = LANE + 3 * GAP;
  const holding = sending + many * (LANE + GAP) + 2 * GAP;
  return { width, left, lanes, sending, holding, height: holding + MEMORY + 4, narrow: width < 480 };
}

function unitOf(room, count) {
  room.unit = (room.width - room.left - 2) / count;
  return room.unit;
}

function laneNames(w, room) {
  if (room.narrow) return [];
  const at = (y, text) => shape("text", { x: room.left - 10, y, class: "lane-name" }, text);
  return [at(15, w.computes), at(room.sending + 15, w.sends), at(room.holding + 14, w.holds)];
}

function computation(data, w, room) {
  const unit = unitOf(room, data.moments.length);
  const label = { loss: w.loss, update: w.adam };
  return data.moments.flatMap(({ what, phase, layer }, level) => {
    if (!["compute", "loss", "update"].includes(what)) return [];
    const x = room.left + level * unit;
    const text = what === "compute" ? letterOf(data, layer) : label[what];
    const fits = text.length * 8 < unit || (what === "compute" && unit > 9);
    return [
      shape("rect", { x: x + 1, y: 1, width: unit - 2, height: LANE, rx: 3, class: `work ${phase} ${what}` }),
      fits ? shape("text", { x: x + unit / 2, y: 15, class: `work-name ${phase}` }, text) : "",
    ];
  });
}

function collectives(data, room) {
  return spans(data).flatMap(({ first, last }, number) => {
    const { collective, layers } = data.collectives[number];
    const x = room.left + first * room.unit;
    const width = (last - first + 1) * room.unit - 2;
    const y = room.sending + room.lanes[number] * (LANE + GAP);
    const letters = layers.map((layer) => letterOf(data, layer)).join(", ");
    const text = [`${titleOf(collective)} ${letters}`, letters].find((one) => one.length * 6.6 + 6 < width) ?? "";
    return [
      shape("rect", { x: x + 1, y, width, height: LANE, rx: 3, class: `sent ${collective}` }),
      shape("text", { x: x + 1 + width / 2, y: y + 14, class: "sent-name" }, text),
    ];
  });
}

function memory(data, rank, allOnOne, w, room) {
  const totals = data.moments.map((_, level) => memoryAt(data, level, rank));
  const most = Math.max(allOnOne, ...totals.map(({ total }) => total)) * 1.06;
  const bottom = room.holding + MEMORY;
  const made = totals.flatMap((held, level) => {
    let below = bottom;
    return [...KINDS, EMPTY].flatMap((kind) => {
      const height = (held[kind] / most) * MEMORY;
      below -= height;
      if (!height) return [];
      const x = room.left + level * room.unit;
      return [shape("rect", { x, y: below, width: room.unit + 0.5, height, class: `area ${kind}` })];
    });
  });
  const line = bottom - (allOnOne / most) * MEMORY;
  return [
    ...made,
    shape("line", { x1: room.left, x2: room.width, y1: line, y2: line, class: "limit" }),
    shape("text", { x: room.width - 4, y: line - 5, class: "limit-name" }, w.allOnOne(bytesText(allOnOne))),
  ];
}

/** The memory that one rank would need for everything: parameters, gradients and optimiser of the recorded model. */
export function allOnOneOf(counted) {
  return memoryFormula("data_parallel", { ...counted, ranks: 1, precision: "float32" }).total;
}
