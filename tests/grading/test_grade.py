"""The arithmetic of grades, and the command that fills the page."""

import pytest

import grade_predictions
import page_parts
from grading.grade import Grade, Pick, summary

PICKS = [Pick("a", "ring", "ring", 1.0), Pick("b", "tree", "ring", 1.04), Pick("c", "tree", "ring", 1.5)]


def test_a_grade_has_median_percentile_share_and_regret():
    grade = Grade("machine", [0.1, 0.2, 0.3, 0.4, 0.5], PICKS, targets={"median": 0.12})
    assert (grade.median, grade.p90, grade.regret) == (0.3, 0.5, 1.5)
    assert grade.best == pytest.approx(2 / 3)  # 4 % slower counts as the best
    assert "| machine | 5 | 30.0% (12%) | 50% | 66.7% of 3 | 1.50 |" in summary([grade])
    assert "| c | tree | ring | 1.50 |" in grade.section()
    assert "| b |" not in grade.section()


def test_modules_that_are_missing_or_without_measurements_are_skipped(tmp_path, capsys):
    assert grade_predictions.grades_of("never_written", tmp_path) is None
    assert "tools/grading/never_written.py is missing" in capsys.readouterr().out


def test_a_part_that_is_not_graded_keeps_its_text():
    page = "<!-- one -->\nold\n<!-- end -->\n\n<!-- two -->\nkept\n<!-- end -->\n"
    filled = page_parts.fill(page, lambda name: "new" if name == "one" else page_parts.content(page, name))
    assert filled == page.replace("old", "new")


def test_the_page_has_a_part_for_every_module():
    names = page_parts.names(grade_predictions.PAGE.read_text(encoding="utf-8"))
    for module in grade_predictions.MODULES:
        assert {f"{module}-summary", module} <= set(names)
