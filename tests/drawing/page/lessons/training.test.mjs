import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { notchOf, valueAt } from "../../../../src/unisono/drawing/page/common/sliders.mjs";
import { countText, decimalBytes, exactBytes } from "../../../../src/unisono/drawing/page/common/units.mjs";
import { COURSE_WORDS } from "../../../../src/unisono/drawing/page/course/course_words.mjs";
import { allReduceOn, chunksSent, factorOf } from "../../../../src/unisono/drawing/page/lessons/busbw_model.mjs";
import { BUSBW_WORDS } from "../../../../src/unisono/drawing/page/lessons/busbw_words.mjs";
import { dispatched } from "../../../../src/unisono/drawing/page/lessons/experts_panel.mjs";
import { ROWS_WORDS } from "../../../../src/unisono/drawing/page/lessons/experts_words.mjs";
import { sizesOf } from "../../../../src/unisono/drawing/page/lessons/tensor_picture.mjs";
import {
  cellAt,
  countParameters,
  memoryAt,
  memoryFormula,
  phasesOf,
  sentFormula,
  sentUpTo,
  spans,
  widthOf,
} from "../../../../src/unisono/drawing/page/lessons/training_model.mjs";
import { momentSentences } from "../../../../src/unisono/drawing/page/lessons/training_narration.mjs";
import { lanesOf } from "../../../../src/unisono/drawing/page/lessons/training_timeline.mjs";
import { activationsOf, SLIDERS } from "../../../../src/unisono/drawing/page/lessons/training_totals.mjs";
import { TRAINING_WORDS } from "../../../../src/unisono/drawing/page/lessons/training_words.mjs";
import { ring } from "../scenes.mjs";

const folder = new URL("../../../../src/unisono/drawing/", import.meta.url);
const recorded = ["data_parallel", "tensor_parallel", "zero3", "experts"].map((strategy) => ({
  strategy,
  ...JSON.parse(readFileSync(new URL(`training/${strategy}.json`, folder), "utf-8")),
}));
const [dataParallel, tensorParallel, zero3, experts] = recorded;
const at = (data, what) => data.moments.findIndex((moment) => moment.what === what);

test("the formulas give the measured memory between backward pass and update, to the byte", () => {
  for (const data of recorded) {
    for (let rank = 0; rank < data.ranks; rank++) {
      const measured = memoryAt(data, at(data, "ready"), rank);
      const given = { ...countParameters(data), ranks: data.ranks, precision: "float32" };
      const { total, ...kinds } = memoryFormula(data.strategy, given);
      for (const [kind, bytes] of Object.entries(kinds)) assert.equal(measured[kind], bytes, data.strategy);
      assert.equal(total, measured.parameters + measured.gradients + measured.optimizer);
    }
  }
});

test("the formulas give the bytes sent, exactly, plus those that tell which gradients exist", () => {
  for (const data of [dataParallel, tensorParallel, zero3]) {
    const given = { ...countParameters(data), ...activationsOf(data), ranks: data.ranks, precision: "float32" };
    const small = data.collectives.filter(({ members }) => !members.length);
    const told = small.reduce((sum, { sent_bytes: bytes }) => sum + bytes, 0);
    assert.equal(sentUpTo(data, data.moments.length - 1) - told, sentFormula(data.strategy, given));
    assert.equal(told, data === dataParallel ? 14 : 0);
  }
});

test("the formula for experts gives the bytes sent if a quarter of the rows stays on its rank", () => {
  const { rows, sums, busiest, mean } = dispatched(experts);
  assert.deepEqual(sums, [16, 18, 16, 14]);
  assert.deepEqual([busiest, mean], [1, 16]);
  const given = { ...countParameters(experts), ...activationsOf(experts), ranks: 4, precision: "float32" };
  assert.equal(given.exchanges, 4);
  const staying = rows.reduce((sum, counts, rank) => sum + counts[rank], 0) / 4; // rows, mean of the ranks
  const small = experts.collectives.filter(({ name, members }) => name.endsWith("counts") || !members.length);
  const told = small.reduce((sum, { sent_bytes: bytes }) => sum + bytes, 0);
  const uneven = given.exchanges * (16 / 4 - staying) * 64 * 4;
  assert.equal(sentUpTo(experts, experts.moments.length - 1) - told, sentFormula("experts", given) + uneven);
});

test("seven billion parameters in mixed precision take 112 GB; ZeRO-3 and tensor parallel divide that", () => {
  const given = { parameters: 7e9, ranks: 8, precision: "mixed" };
  assert.equal(memoryFormula("data_parallel", given).total, 112e9);
  assert.equal(memoryFormula("zero3", given).total, 14e9);
  assert.equal(memoryFormula("tensor_parallel", given).total, 14e9);
  assert.equal(sentFormula("data_parallel", given), 2 * (7 / 8) * 14e9);
  assert.equal(sentFormula("zero3", given), 3 * (7 / 8) * 14e9);
  assert.equal(sentFormula("zero3", { ...given, ranks: 1 }), 0);
});

test("a transformer layer has four all-reduces, as many as were recorded", () => {
  assert.equal(tensorParallel.block.length, 4);
  const given = { ranks: 4, precision: "float32", reduces: 4, activation: 2 * 8 * 64 };
  const bytes = tensorParallel.block.reduce((sum, one) => sum + one.bytes, 0);
  assert.equal(sentFormula("tensor_parallel", given), 1.5 * bytes);
  assert.equal(Math.round(widthOf(12 * 32 * 4096 ** 2, 32)), 4096);
});

test("every moment is described in both languages", () => {
  for (const data of recorded) {
    data.moments.forEach((_, level) => {
      for (const [language, letters] of [
        ["en", /^[A-Z].*\.$/],
        ["zh", /[\u4e00-\u9fff].*。$/],
      ]) {
        const said = momentSentences(data, level, language);
        assert.ok(said.length);
        for (const sentence of said) {
          assert.match(sentence, letters);
          assert.doesNotMatch(sentence, /undefined|NaN|null|\[object/);
        }
      }
    });
  }
});

test("collectives that run during a computation are mentioned", () => {
  const level = dataParallel.moments.findIndex(
    ({ what, phase, layer }) => what === "compute" && phase === "backward" && layer === 1,
  );
  assert.deepEqual(momentSentences(dataParallel, level, "en"), [
    "Every rank computes the gradients of layer 1 from its own rows, so they differ from rank to rank. The activations of this layer are freed.",
    "Meanwhile, the all-reduce of layers 3 and 2 is running.",
  ]);
});

test("every text exists in both languages and is used, and Chinese texts are in Chinese", () => {
  const shapeOf = (value) =>
    value !== null && typeof value === "object"
      ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shapeOf(inner)]))
      : typeof value;
  const files = readdirSync(new URL("page/", folder), { recursive: true }).filter(
    (name) => name.endsWith(".mjs") && !name.endsWith("words.mjs"),
  );
  const code = files.map((name) => readFileSync(new URL(`page/${name}`, folder), "utf-8")).join("");
  for (const words of [TRAINING_WORDS, BUSBW_WORDS, ROWS_WORDS, COURSE_WORDS]) {
    assert.deepEqual(shapeOf(words.zh), shapeOf(words.en));
    assert.deepEqual(
      Object.keys(words.en).filter(
        (name) =>
          !new RegExp(
            `\\bw(ords\\(\\))?\\.${name}\\b|Words\\(\\)\\.${name}\\b|\\]\\.${name}\\b|\\.(en|zh)\\.${name}\\b`,
          ).test(code),
      ),
      [],
    );
    for (const [name, text] of Object.entries(words.zh)) {
      if (typeof text === "string") assert.match(text, /[\u4e00-\u9fff]/, name);
    }
  }
});

test("a cell shows the parts that a rank has", () => {
  assert.deepEqual(cellAt(dataParallel, 0, 2, 1).parameters, [0, 1, 2, 3]);
  assert.deepEqual(cellAt(zero3, 0, 2, 1).parameters, [2]);
  assert.deepEqual(cellAt(zero3, 0, 2, 1).optimizer, [2]);
  assert.deepEqual(cellAt(tensorParallel, 0, 3, 0).parameters, [3]);
  const computed = zero3.moments.findIndex(({ what, layer }) => what === "compute" && layer === 1);
  assert.equal(cellAt(zero3, computed, 2, 1).gathered, true);
  assert.equal(cellAt(zero3, at(zero3, "loss"), 2, 1).gathered, false);
  assert.deepEqual(cellAt(zero3, at(zero3, "ready"), 2, 1).gradients, [2]);
});

test("gradients are final when their collective has finished, or at once if they have none", () => {
  const levels = dataParallel.moments.map((_, level) => level);
  const finals = levels.filter((level) => cellAt(dataParallel, level, 0, 3).gradients.length);
  assert.equal(cellAt(dataParallel, finals[0], 0, 3).final, false);
  assert.equal(cellAt(dataParallel, at(dataParallel, "ready"), 0, 3).final, true);
  const back = tensorParallel.moments.findIndex(({ phase, layer }) => phase === "backward" && layer === 2);
  assert.equal(cellAt(tensorParallel, back, 0, 2).final, true);
});

test("no two collectives overlap in the timeline", () => {
  for (const data of recorded) {
    const lanes = lanesOf(data);
    const all = spans(data);
    all.forEach((one, first) => {
      all.forEach((other, second) => {
        if (first < second && lanes[first] === lanes[second]) assert.ok(one.last < other.first);
      });
    });
  }
});

test("a step consists of forward pass, backward pass and update", () => {
  for (const data of recorded) {
    const phases = phasesOf(data, (phase) => phase);
    assert.deepEqual(
      phases.map(({ words }) => words),
      ["forward", "backward", "update"],
    );
    assert.equal(phases[0].first, 1);
    assert.equal(phases[2].last, data.moments.length - 1);
  }
});

test("the picture of column and row splits has the recorded sizes", () => {
  assert.deepEqual(sizesOf(tensorParallel), { ranks: 4, rows: 16, features: 64, hidden: 128, own: 32, out: 64 });
});

test("a ring sends 2(p−1) chunks from every rank, p−1 of them before the sums are complete", () => {
  for (const size of [2, 3, 5, 8]) {
    const { columns, levels } = ring(size);
    for (let rank = 0; rank < size; rank++) {
      assert.equal(chunksSent(columns, size - 1, rank), size - 1);
      assert.equal(chunksSent(columns, levels, rank), 2 * (size - 1));
    }
  }
});

test("on fully used links, busbw equals the speed of the link for every p", () => {
  for (const ranks of [2, 3, 7, 64]) {
    const { factor, algbw, busbw, time } = allReduceOn({ ranks, bytes: 1e9, link: 50e9 });
    assert.ok(Math.abs(busbw / 50e9 - 1) < 1e-12);
    assert.ok(Math.abs(algbw * factor - busbw) < 1);
    assert.ok(Math.abs(time - (factor * 1e9) / 50e9) < 1e-12);
  }
  assert.equal(factorOf([2, 0], 4), 1.5);
  assert.equal(factorOf([0, 1], 4), 1);
});

test("a slider returns the value that it was set to", () => {
  for (const slider of SLIDERS) {
    const top = slider.values ? slider.values.length - 1 : 1000;
    for (const notch of [0, Math.floor(top / 3), top]) assert.equal(notchOf(slider, valueAt(slider, notch)), notch);
  }
});

test("large numbers have the usual units", () => {
  assert.equal(decimalBytes(112e9), "112 GB");
  assert.equal(decimalBytes(1.5e12), "1.5 TB");
  assert.equal(countText(7e9), "7B");
  assert.equal(exactBytes(66560), "66,560 B");
});
