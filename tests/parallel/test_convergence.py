"""Trains a language model with each strategy and each codec, using the functions of examples/train.py.

**Tolerance.** All strategies add the same numbers in different orders, so their losses differ only by rounding:
adjacent float32 numbers above 4 are 4.8e-7 apart. Training amplifies differences (AdamW divides by the magnitude of a
gradient, even where that is little more than rounding), but in 60 steps they stayed below 1e-6. The tests allow 100
times as much, because other machines add in other orders. That is still 10,000 times less than the decrease of the
loss in these steps.

A codec changes the gradients themselves, so this tolerance does not apply: the loss must be close to that of float32.
"""

from __future__ import annotations

from statistics import mean

import pytest

torch = pytest.importorskip("torch")

from worlds import run_groups  # noqa: E402

from language.model import Shape  # noqa: E402
from language.text import Text  # noqa: E402
from train import fill_in, parse_options, train  # noqa: E402

TOLERANCE = 1e-4
SMALL = {"features": 32, "heads": 4, "layers": 2, "longest": 16, "experts": 5}


def train_all(group, trainings, steps, rows):
    """Train one model after the other; return the losses of each and the text that it generates."""
    text = Text()
    shape = Shape(len(text.characters), **SMALL)
    found = []
    for words in trainings:
        options = parse_options(f"--steps {steps} --batch {rows} --sample 20 --strategy {words}".split())
        fill_in(options, group)
        done = train(options, group, text, shape, lambda *_: None)
        found.append((done.losses, done.sample))
    return found


def trained(size, trainings, steps=60, rows=12, kind="comm"):
    """Return the results, which must be the same on all ranks, to the bit."""
    found = run_groups(train_all, size, trainings, steps, rows, kind=kind)
    assert all(each == found[0] for each in found)
    return found[0]


def assert_same(size, trainings, steps=60, rows=12, kind="comm", alone="ddp"):
    """Compare the loss of each step and the generated text with those of one process that has all rows."""
    ((expected, text),) = trained(1, [alone], steps, rows)
    assert expected[-1] < expected[0] - 0.02 * steps
    for words, (losses, sample) in zip(trainings, trained(size, trainings, steps, rows, kind), strict=True):
        assert losses == pytest.approx(expected, abs=TOLERANCE), words
        assert sample == text, words


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "steps"), [(3, 20), *(pytest.param(size, 60, marks=pytest.mark.long) for size in (2, 3))]
)
def test_each_strategy_reaches_the_loss_of_one_process(size, steps):
    assert_same(size, ["ddp", "tp", "zero1", "zero2", "zero3", "hybrid"], steps)


@pytest.mark.long
def test_combined_strategies_reach_the_loss_of_one_process():
    assert_same(4, ["hybrid", "tp --tp 2", "zero1 --tp 2", "zero3 --tp 2", "hybrid --tp 2"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "rows", "steps"),
    [
        (3, 12, 20),
        *(pytest.param(size, rows, 60, marks=pytest.mark.long) for size, rows in ((2, 12), (3, 12), (5, 15))),
    ],
)
def test_the_loss_of_a_mixture_of_experts_does_not_depend_on_the_distribution_of_experts(size, rows, steps):
    assert_same(size, ["moe"], steps, rows, alone="moe")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("gloo", marks=pytest.mark.long), "unisono"])
def test_strategies_reach_the_loss_of_one_process_on_torch_process_groups(kind):
    assert_same(2, ["ddp", "tp", "zero3"], steps=20, kind=kind)


def last(losses):
    """Return the mean of the last ten losses: the rows of some steps are easier than others."""
    return mean(losses[-10:])


@pytest.mark.slow
@pytest.mark.parametrize(
    "codecs",
    [["fp8_e4m3", "int8"], *(pytest.param([each], marks=pytest.mark.long) for each in ("fp16", "bf16", "fp8_e5m2"))],
)
def test_the_loss_with_a_codec_is_close_to_the_loss_with_float32(codecs):
    strategies = ("ddp", "ddp --error-feedback", "zero3 --error-feedback")
    runs = ["ddp", *(f"{each} --codec {codec}" for codec in codecs for each in strategies)]
    (exact, _), *others = trained(3, runs, steps=30)
    for losses, _ in others:
        assert losses != exact, "the codec changed nothing"
        assert last(losses) == pytest.approx(last(exact), abs=0.01)


@pytest.mark.long
def test_error_feedback_lowers_the_loss_if_a_codec_sends_one_percent():
    runs = ["ddp", "ddp --codec topk:0.01", "ddp --codec topk:0.01 --error-feedback"]
    exact, without, fed_back = (last(losses) for losses, _ in trained(3, runs, steps=100))
    assert exact < fed_back < without - 0.02


def test_codecs_work_on_process_groups_of_the_unisono_backend():
    runs = ["ddp --codec int8", "zero2 --codec fp16", "zero1 --codec topk:0.1 --error-feedback"]
    assert trained(2, runs, steps=5, kind="unisono") == trained(2, runs, steps=5)
