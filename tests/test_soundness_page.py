"""docs/soundness.md shows the counts of the campaigns."""

from __future__ import annotations

import json

import pytest

import soundness_page


def test_the_page_shows_the_stored_counts():
    stored = json.loads(soundness_page.COUNTS.read_text())
    page = soundness_page.PAGE.read_text()
    assert soundness_page.table_of(stored["counts"]) in page
    assert stored["run"] in page
    assert soundness_page.filled(page, stored) == page


def test_counts_of_one_file_are_added_up(tmp_path):
    report = tmp_path / "report.xml"
    count = '<properties><property name="calls" value="{}"/></properties>'
    case = f'<testcase classname="tests.comm.test_calls">{count}</testcase>'
    report.write_text(f"<testsuite>{case.format(3)}{case.format(4)}</testsuite>")
    assert soundness_page.counts_of(report) == {"tests/comm/test_calls.py": {"calls": 7}}


def test_a_failed_campaign_writes_no_page(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuite><testcase classname="tests.x" name="a"><failure message="wrong"/></testcase></testsuite>'
    )
    with pytest.raises(SystemExit, match=r"tests\.x\.a failed"):
        soundness_page.counts_of(report)
