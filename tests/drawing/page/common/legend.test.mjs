import assert from "node:assert/strict";
import test from "node:test";
import { factsPanel } from "../../../../src/unisono/drawing/page/algorithm/facts.mjs";
import { legendItems } from "../../../../src/unisono/drawing/page/common/legend.mjs";
import { WORDS } from "../../../../src/unisono/drawing/page/common/words.mjs";
import { ring, scene } from "../scenes.mjs";

/** The part of the DOM that the panels use: an element knows its text. */
class Node {
  style = { setProperty() {} };
  children = [];
  append(...children) {
    this.children.push(...children);
  }
  replaceChildren(...children) {
    this.children = children;
  }
  setAttribute() {}
  get textContent() {
    return this.children.map((child) => child?.textContent ?? `${child}`).join("");
  }
}

globalThis.document = { createElement: () => new Node() };

const textOf = (items) => items.map((item) => item.textContent).join("; ");

test("the legend of a barrier speaks of arrivals, not of data", () => {
  const barrier = scene({
    size: 2,
    chunks: 1,
    carries_data: false,
    messages: [{ src: 0, dst: 1, sent: 1, got: 1, chunks: [0], reduce: true }],
    steps: [[1], [1]],
  });
  assert.match(
    textOf(legendItems(barrier, WORDS.en, "ring", false)),
    /^tells the receiver which ranks have arrived;/,
  );
  assert.match(textOf(legendItems(barrier, WORDS.zh, "ring", false)), /^告知接收方哪些 rank 已到达;/);
  assert.match(textOf(legendItems(ring(3), WORDS.en, "ring", false)), /^added to the data of the receiver; stored;/);
});

const said = (shares_result, ...course) => {
  const part = { text: "1", value: 1 };
  const facts = { steps: 1, rounds: 1, latency_ratio: 1, messages: 1, messages_per_rank: 1, tree: "x0+x1" };
  const collective = { carries_data: true, reduces: true, shares_result };
  const known = { ...facts, bytes: part, least_bytes: part, bandwidth_ratio: 1, memory: part };
  return factsPanel({ collective, facts: known, failure: null }, null, () => WORDS.en, ...course).node.textContent;
};

test("only a result that every rank has is said to be the same on all ranks", () => {
  assert.match(said(true), /every rank ends with the same bits/);
  assert.doesNotMatch(said(false), /every rank ends with the same bits/);
  assert.match(said(false), /order of additionsx0\+x1/);
});

test("a page of the course, whose steps are levels, leaves out the steps of one rank", () => {
  assert.match(said(true), /on the busiest rank/);
  assert.doesNotMatch(said(true, true), /on the busiest rank/);
  assert.match(said(true, true), /rounds1/);
});
