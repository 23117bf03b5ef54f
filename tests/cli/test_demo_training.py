"""The part of the demo that trains a model."""

from __future__ import annotations

import pytest

from unisono.cli import demo_training
from unisono.cli.main import main
from unisono.cli.output import console


def shown(capsys):
    """Run that part alone; return whether it succeeded, and its output."""
    from unisono.cli import demo

    return demo._train(console()), capsys.readouterr().out


@pytest.mark.slow
def test_the_demo_trains_a_model(monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.setattr(demo_training, "STEPS", 2)
    monkeypatch.setattr(demo_training, "RANKS", 2)
    right, printed = shown(capsys)
    assert right
    assert "6. Train. A language model on 2 ranks" in printed
    assert "   zero3 on 2 ranks, 2 steps of 24 rows: loss 4." in printed
    assert "   | The " in printed
    assert "step    1" not in printed


def test_without_torch_the_demo_skips_the_training(monkeypatch, capsys):
    monkeypatch.setattr(demo_training, "find_spec", lambda name: None)
    assert main(["demo"]) == 0
    assert "skipped: torch is not installed" in capsys.readouterr().out


def test_outside_the_source_tree_the_training_is_skipped(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(demo_training, "find_spec", lambda name: name)
    monkeypatch.setattr(demo_training, "ROOT", tmp_path)
    right, printed = shown(capsys)
    assert right
    assert "skipped: there is no examples/train.py here" in printed


@pytest.mark.parametrize(
    ("program", "reported"),
    [
        ("raise SystemExit(3)", "the training ended with exit code 3"),
        ("print('zero3: loss 2.0000 -> 2.5000, slowly')", "it has not learned"),
        ("import signal; signal.pause()", "the training did not finish within 1 s"),
    ],
)
def test_a_failing_training_is_reported(monkeypatch, capsys, tmp_path, program, reported):
    monkeypatch.setattr(demo_training, "find_spec", lambda name: name)
    monkeypatch.setattr(demo_training, "ROOT", tmp_path)
    monkeypatch.setattr(demo_training, "LIMIT_S", 1.0 if "pause" in program else 60.0)
    (tmp_path / "examples").mkdir()
    (tmp_path / demo_training.EXAMPLE).write_text(program)
    right, printed = shown(capsys)
    assert not right
    assert reported in printed
