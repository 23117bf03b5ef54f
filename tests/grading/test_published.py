"""The planner's predictions for published training runs, and the arithmetic of their grade."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from grading import published
from grading.descent import descend
from unisono.planner import PROGRAMS


@pytest.fixture(scope="module")
def rows():
    return published.read_rows()


def test_the_file_has_two_sets_that_share_no_row(rows):
    assert len(set(rows)) == len(rows) == 287
    assert {row.set for row in rows} == {"first", "second"}


def test_the_constants_are_fitted_to_at_most_fifty_runs_of_the_first_set(rows):
    fitted = published.chosen_for_fit(rows)
    assert len(fitted) <= 50
    assert len(published.CONSTANTS) <= 5
    assert {row.set for row in fitted} == {"first"}


def test_models_have_the_parameters_that_their_names_state():
    for name, billions in (("mpt-7b", 6.66), ("mpt-70b", 64.9), ("kf-13b", 14.84), ("kf-175b", 175.0)):
        assert published.MODELS[name].parameters / 1e9 == pytest.approx(billions, rel=0.005)


def test_the_default_program_predicts_the_second_set_within_a_tenth(rows):
    errors = [abs(published.ratio(row) - 1) for row in rows if row.set == "second"]
    assert statistics.median(errors) < 0.1


def test_the_constants_of_the_default_program_are_those_of_the_fit(rows):
    values = published.fit(published.chosen_for_fit(rows))
    for name, value in zip(published.CONSTANTS, values, strict=True):
        assert getattr(PROGRAMS["tuned"], name) == pytest.approx(value, rel=0.02)


def test_every_source_has_a_grade(monkeypatch):
    monkeypatch.setattr(published, "fit", lambda rows: published.START)
    titles = [grade.title for grade in published.grades(Path())]
    for source in ("llm-foundry", "bigscience", "kempnerforge", "fms-fsdp", "torchtitan", "llama3"):
        assert f"{source}: tokens/s/GPU" in titles


def test_descent_finds_a_minimum():
    found = descend(lambda values: (values[0] - 3) ** 2 + (values[1] - 0.5) ** 2, (1.0, 1.0))
    assert found == pytest.approx((3, 0.5), rel=0.01)
