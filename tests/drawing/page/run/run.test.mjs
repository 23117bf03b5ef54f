import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { POSITIONS } from "../../../../src/unisono/drawing/page/common/moment_player.mjs";
import {
  around,
  marksOf,
  moved,
  SHORTEST,
  whole,
  zoomed,
} from "../../../../src/unisono/drawing/page/common/time_axis.mjs";
import { durationText, secondsText } from "../../../../src/unisono/drawing/page/common/units.mjs";
import { unpack } from "../../../../src/unisono/drawing/page/common/unpack.mjs";
import { viewAtTime } from "../../../../src/unisono/drawing/page/common/views.mjs";
import { WORDS } from "../../../../src/unisono/drawing/page/common/words.mjs";
import { replayClock, timesOf, waitsAt } from "../../../../src/unisono/drawing/page/run/call_clock.mjs";
import { between, callAt, doing, openGroup } from "../../../../src/unisono/drawing/page/run/communicator.mjs";
import { linesAbout, pathLines } from "../../../../src/unisono/drawing/page/run/event_sentences.mjs";
import { RUN_WORDS } from "../../../../src/unisono/drawing/page/run/run_words.mjs";
import { ring } from "../scenes.mjs";

const PACKED =
  '{"names": ["small", "large.high", "large"], "lengths": [3, 3, 3], "data": "eNpjZGBgYIRiEEhUYWCYd/v/f1Yg+/f8Ir6f8b2GAFIJCDU="}';
// Stand-ins for the sentences of unisono/tracing/sentences.py; the browser tests use the real ones.
const SENTENCES = {
  from: { en: "{work} from {ranks}", zh: "{work}（来自 {ranks}）" },
  to: { en: "{work} to {ranks}", zh: "{work}，送往 {ranks}" },
  work: { en: "rank {rank}: {work} ({time})", zh: "rank {rank}：{work}（{time}）" },
  begin: { en: "rank {rank} enters {late} late, works after {time}", zh: "rank {rank} 晚 {late}，{time} 后开始" },
};
const KINDS = { send: { en: "send", zh: "发送" }, receive: { en: "receive", zh: "接收" } };

/** Two calls in which rank 0 sends to rank 1, which enters the first one 900 ns late. */
function story() {
  const columns = {
    call_number: [1, 2],
    call_about: [0, 0],
    call_begin: [0, 2000],
    call_end: [1100, 2200],
    call_lost: [900, 0],
    call_culprit: [1, -1],
    call_scene: [-1, -1],
    call_why: [1, 1],
    entered_call: [0, 0, 1, 1],
    entered_rank: [0, 1, 0, 1],
    entered_begin: [0, 900, 2000, 2000],
    entered_end: [1100, 200, 200, 200],
    entered_background: [0, 0, 0, 0],
    entered_failed: [0, 0, 0, 0],
    op_call: [0, 0, 1, 1],
    op_rank: [0, 1, 0, 1],
    op_detail: [0, 1, 0, 1],
    op_pass: [0, 0, 0, 0],
    op_begin: [10, 1000, 2000, 2100],
    op_end: [90, 100, 100, 100],
    wait_call: [1],
    wait_rank: [1],
    wait_peer: [0],
    wait_reason: [0],
    wait_begin: [2000],
    wait_end: [100],
    message_call: [0, 1],
    message_sent: [0, 2],
    message_received: [1, 3],
    path_call: [0, 0],
    path_rank: [1, 1],
    path_what: [0, 1],
    path_op: [-1, 1],
    path_begin: [900, 1000],
    path_end: [100, 100],
    transfer_rank: [0, 1, 1, 1],
    transfer_peer: [1, 0, 0, 0],
    transfer_sending: [1, 0, 0, 1],
    transfer_tag: [7, 7, 7, 7],
    transfer_begin: [1500, 1500, 1600, 1650],
    transfer_end: [10, 20, 20, 20],
    transfer_bytes: [8, 8, 8, 8],
    transfer_number: [3, 3, 4, 3],
    time_sent: [],
    time_taken: [],
    time_finished: [],
  };
  const about = {
    label: "broadcast/naive",
    count: 5,
    dtype: "float32",
    bytes: 20,
    op: null,
    root: 0,
    codec: null,
    passes: 1,
  };
  const data = {
    size: 2,
    names: ["4", "6"],
    missing: [],
    slow: null,
    abouts: [about],
    kinds: KINDS,
    sentences: SENTENCES,
    reasons: ["message"],
    whats: ["begin", "work"],
    details: [
      ["send", 0, "0-1", 20, [], [1]],
      ["receive", 0, "0-1", 20, [0], []],
    ],
  };
  const typed = Object.entries(columns).map(([name, numbers]) => [name, Int32Array.from(numbers)]);
  return openGroup(data, Object.fromEntries(typed), []);
}

test("the visible events are found without scanning the others", () => {
  const group = story();
  assert.deepEqual(between(group, 0, "op", 0, 5000), [0, 2]);
  assert.deepEqual(between(group, 0, "op", 50, 60), [0, 1]); // it began earlier and continues
  assert.deepEqual(between(group, 0, "op", 200, 300), [1, 1]);
  assert.equal(group.end, 2200);
});

test("a send is paired with the receive of the same number only", () => {
  assert.deepEqual(story().transferPairs, [[0, 1]]);
});

test("a point on the timeline selects an op before a wait, and a wait before a call", () => {
  const group = story();
  const found = (rank, moment, slack = 0) => {
    const it = doing(group, rank, moment, slack);
    return it && [it.name, it.at];
  };
  assert.deepEqual(found(0, 50), ["op", 0]);
  assert.deepEqual(found(1, 2050), ["wait", 0]);
  assert.deepEqual(found(1, 950), ["entered", 1]);
  assert.equal(found(1, 500), null);
  assert.deepEqual(found(1, 980, 30), ["op", 1]); // near enough
  assert.equal(callAt(group, 1900), 1);
});

test("the event under the pointer is described, with the rank numbers of the job", () => {
  const group = story();
  assert.deepEqual(linesAbout(group, { name: "op", at: 3 }, RUN_WORDS.en, "en"), [
    "rank 6: receive from 4 (100 ns)",
    "call 2 · chunks 0-1 · 20 B",
    "waited 100 ns for rank 4 first",
  ]);
  assert.deepEqual(linesAbout(group, { name: "wait", at: 0 }, RUN_WORDS.zh, "zh"), [
    "rank 6 等待 rank 4 的消息 (100 ns)",
  ]);
  assert.deepEqual(
    pathLines(group, group.calls[0], "en").map(({ text }) => text),
    ["rank 6 enters 900 ns late, works after 100 ns", "rank 6: receive from 4 (100 ns)"],
  );
});

test("idle intervals are shown faster, and nothing else changes", () => {
  const group = story();
  const clock = replayClock(group, group.calls[0], [1100]);
  assert.equal(clock.timeAt(0), 0);
  assert.equal(clock.timeAt(POSITIONS), 1100);
  const shares = [10, 100, 1000, 1100].map(clock.positionAt); // idle until 10, busy until 100, idle until 1000, busy
  assert.ok(Math.abs(shares[1] - shares[0] - 0.8 * 100 * (90 / 190)) < 1e-9);
  assert.ok(Math.abs(shares[2] - shares[1] - 0.2 * 100 * (900 / 910)) < 1e-9);
  for (let position = 0; position <= POSITIONS; position += 7) {
    assert.ok(Math.abs(clock.positionAt(clock.timeAt(position)) - position) < 1e-6);
  }
  assert.ok(clock.faster > 10);
  assert.deepEqual(clock.moments, [0, POSITIONS, POSITIONS]);
  assert.equal(replayClock(group, group.calls[1]).faster, 1); // always busy
});

test("the waiting ranks and the absent ranks are known at every moment", () => {
  const group = story();
  assert.deepEqual(waitsAt(group, group.calls[0], 500), { waits: [], away: [1] });
  assert.deepEqual(waitsAt(group, group.calls[1], 2050), { waits: [[1, 0]], away: [] });
});

test("times are matched to messages by sender, receiver and number, in any order of the scene", () => {
  const made = ring(3);
  const count = made.messages.length;
  const steps = made.steps.flat().length;
  const columns = {
    time_sent: Int32Array.from({ length: count }, (_, at) => 10 * at),
    time_taken: new Int32Array(count).fill(5),
    time_finished: new Int32Array(steps).fill(7),
  };
  const times = timesOf({ columns }, { begin: 100, end: 300, firstMessage: 0, firstStep: 0 }, made);
  assert.equal(times.finish, 200);
  for (const message of made.messages) {
    const before = made.messages.filter(({ src, id }) => src === message.src && id < message.id).length;
    assert.equal(times.sent[message.id], 10 * (message.src * (count / 3) + before)); // to the right-hand neighbour
    assert.equal(times.got[message.id], times.sent[message.id] + 5);
  }
  const view = viewAtTime(made, times, Number.POSITIVE_INFINITY);
  assert.deepEqual(
    view.states,
    made.steps.map(({ length }) => length),
  );
  assert.deepEqual(view.flying, []);
});

test("zooming keeps a moment in place and stops at the ends of the run", () => {
  const all = whole(1e6);
  const near = zoomed(all, 3e5, 0.5, 1e6);
  assert.ok(Math.abs((3e5 - near.from) / (near.to - near.from) - (3e5 - all.from) / (all.to - all.from)) < 1e-12);
  assert.deepEqual(zoomed(near, 3e5, 1000, 1e6), all);
  const nearest = zoomed(all, 3e5, 1e-9, 1e6);
  assert.ok(Math.abs(nearest.to - nearest.from - SHORTEST) < 1e-6);
  assert.deepEqual(moved(all, 5, 1e6), all);
  assert.equal(moved(near, 50, 1e6).to, all.to);
  const call = around({ begin: 1000, end: 2000 });
  assert.ok(call.from < 1000 && call.to > 2000 && call.to - call.from < 1500);
});

test("the marks of the axis are round numbers with a suitable unit", () => {
  const texts = (from, to) => marksOf({ from, to }, 500).marks.map(({ text }) => text);
  assert.deepEqual(texts(0, 1000), ["0", "0.2 µs", "0.4 µs", "0.6 µs", "0.8 µs", "1.0 µs"]);
  assert.deepEqual(texts(0, 5e9), ["0", "1 s", "2 s", "3 s", "4 s", "5 s"]);
  const far = marksOf({ from: 61_000_020_000, to: 61_000_021_000 }, 500);
  assert.equal(far.base.text, "61.0000 s");
  assert.deepEqual(
    far.marks.slice(0, 3).map(({ text }) => text),
    ["+20.0 µs", "+20.2 µs", "+20.4 µs"],
  );
});

test("durations are formatted as in the terminal", () => {
  const cases = JSON.parse(readFileSync(new URL("../../../durations.json", import.meta.url), "utf-8"));
  assert.ok(cases.length > 10);
  for (const [ns, text] of cases) assert.equal(durationText(ns), text);
  assert.equal(secondsText(4.2e-5), "42 µs");
});

test("numbers with more than 30 bits are packed in two columns and unpacked unchanged", async () => {
  // pack({"small": [1, 2, 3], "large": [5, 10**13, -7]}) of unisono/drawing/packing.py
  const packed = JSON.parse(PACKED);
  const columns = await unpack(packed);
  assert.deepEqual(Array.from(columns.small), [1, 2, 3]);
  assert.deepEqual(Array.from(columns.large), [5, 1e13, -7]);
});

test("every text of the run page exists in both languages, with the same structure", () => {
  const shape = (words) =>
    Object.fromEntries(
      Object.entries(words).map(([name, word]) => [
        name,
        word && typeof word === "object" ? shape(word) : typeof word,
      ]),
    );
  assert.deepEqual(shape(RUN_WORDS.en), shape(RUN_WORDS.zh));
});

test("every text of the run page is used", () => {
  const folder = new URL("../../../../src/unisono/drawing/page/", import.meta.url);
  const files = readdirSync(folder, { recursive: true }).filter(
    (name) => name.endsWith(".mjs") && !name.endsWith("words.mjs"),
  );
  const code = files.map((name) => readFileSync(new URL(name, folder), "utf-8")).join("");
  const own = Object.keys(RUN_WORDS.en).filter((name) => RUN_WORDS.en[name] !== WORDS.en[name]);
  assert.deepEqual(
    own.filter((name) => !new RegExp(`\\b(${name})\\b`).test(code)),
    [],
  );
});
