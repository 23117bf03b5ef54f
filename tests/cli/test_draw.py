from __future__ import annotations

import re
import webbrowser
from pathlib import Path

import pytest

from unisono.algorithms import BUILT_IN
from unisono.cli.main import main
from unisono.collectives import COLLECTIVES
from unisono.drawing.lessons import LESSONS

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def opened(monkeypatch):
    """What would have been opened in a browser."""
    addresses: list[str] = []
    monkeypatch.setattr(webbrowser, "open", addresses.append)
    return addresses


def test_a_page_is_written_and_opened(tmp_path, capsys, opened):
    page = tmp_path / "ring.html"
    assert main(["draw", "ring", "-n", "5", "-o", str(page)]) == 0
    assert opened == [page.as_uri()]
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert re.search(r"all_reduce/ring · 5: .*ring\.html \(\d+ KB\)", capsys.readouterr().out)


def test_the_browser_stays_closed_if_asked(tmp_path, opened):
    assert main(["draw", "ring", "-o", str(tmp_path / "ring.html"), "--no-open"]) == 0
    assert opened == []


def test_without_a_file_the_page_is_opened_from_a_temporary_one(opened):
    assert main(["draw", "ring", "-n", "2"]) == 0
    assert opened[0].startswith("file://")


def test_several_are_compared_on_eight_ranks(tmp_path, capsys):
    page = tmp_path / "compare.html"
    assert main(["draw", "ring", "tree", "hierarchical", "--node", "2", "-o", str(page), "--no-open"]) == 0
    assert "all_reduce/hierarchical(node=2) · 8" in capsys.readouterr().out


def test_root_options_and_language(tmp_path, capsys):
    page = str(tmp_path / "page.html")
    assert main(["draw", "broadcast/tree", "-n", "3", "--root", "2", "-o", page, "--no-open", "--lang", "zh"]) == 0
    assert "broadcast/tree(root=2)" in capsys.readouterr().out
    assert '"language":"zh"' in Path(page).read_text(encoding="utf-8")
    assert main(["draw", "hierarchical", "-n", "6", "--option", "node=2", "-o", page, "--no-open"]) == 0
    assert "hierarchical(node=2) · 6" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("preset", "title"),
    [
        ("four", "ring · 4"),
        ("five", "ring · 5"),
        ("identity", "all_gather/ring, all_reduce/ring · 4"),
        ("nodes", "(node=4) · 8"),
        ("race", "tree · 8"),
    ],
)
def test_presets(tmp_path, capsys, preset, title):
    page = tmp_path / "page.html"
    assert main(["draw", "--preset", preset, "-o", str(page), "--no-open"]) == 0
    assert title in capsys.readouterr().out
    assert ('"numbers":true' in page.read_text(encoding="utf-8")) == (preset not in ("nodes", "race"))


@pytest.mark.parametrize("preset", LESSONS)
def test_lessons_are_presets_too(tmp_path, capsys, preset):
    page = tmp_path / "page.html"
    assert main(["draw", "--preset", preset, "-o", str(page), "--no-open", "--lang", "zh"]) == 0
    assert LESSONS[preset].title.en in capsys.readouterr().out
    assert '"language":"zh"' in page.read_text(encoding="utf-8")


def test_a_users_own_file_and_a_schedule_in_text_form(tmp_path, capsys):
    page = str(tmp_path / "page.html")
    assert main(["draw", str(EXAMPLES / "zigzag.py"), "-o", page, "--no-open"]) == 0
    assert "yield recv_reduce(0, src=rank - 1)" in Path(page).read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["show", "ring", "-n", "3", "--text"]) == 0
    text = tmp_path / "mine.txt"
    text.write_text(capsys.readouterr().out)
    assert main(["draw", str(text), "-o", page, "--no-open"]) == 0
    assert "all_reduce/ring · 3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("example", "error"),
    [("everyone_waits", "DeadlockError"), ("other_bits", "GoalError"), ("zigzag_twice", "GoalError")],
)
def test_a_program_that_fails_its_proof_is_drawn_and_the_error_is_said(tmp_path, capsys, example, error):
    page = tmp_path / "page.html"
    assert main(["draw", str(EXAMPLES / "wrong" / f"{example}.py"), "-n", "4", "-o", str(page), "--no-open"]) == 1
    assert error in capsys.readouterr().err
    assert f'"error":"{error}"' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "nothing to draw"),
        (["rnig"], "did you mean 'all_reduce/ring'?"),
        (["all_reduce"], "is a collective; say which of its algorithms"),
        (["nothing.py"], "there is no file 'nothing.py'"),
        (["ring", "--no-open"], "say where to write it"),
        (["ring", "--root", "1"], "has no root"),
        (["ring", "--node", "2"], "no option 'node'"),
        (["ring", "--preset", "four"], "leave out names, -n and options"),
        (["--preset", "four", "-n", "5"], "leave out names, -n and options"),
        (["--preset", "zero3", "-n", "5"], "leave out names, -n and options"),
        (["--all"], "into a folder"),
        (["ring", "--all", "-o", "site"], "expected nothing but -o FOLDER"),
        (["--all", "-o", "/dev/null/site", "--no-open"], "pages cannot be written there"),
        (["ring", "-n", "2000"], "at most 1024"),
        (["ring", "-o", "/nowhere/at/all.html"], "cannot be written"),
    ],
)
def test_calls_that_make_no_sense_are_explained(capsys, arguments, complaint):
    assert main(["draw", *arguments]) == 2
    printed = capsys.readouterr()
    assert complaint in printed.err
    assert printed.out == ""


def test_everything_is_drawn_into_a_folder(tmp_path, capsys):
    site = tmp_path / "site"
    assert main(["draw", "--all", "-n", "4", "-o", str(site), "--no-open"]) == 0
    pages = {path.name for path in site.glob("*.html")}
    assert f"{len(pages)} pages" in capsys.readouterr().out
    for algorithm in BUILT_IN:
        assert f"{algorithm.collective}-{algorithm.name}.html" in pages
    for collective in COLLECTIVES:
        assert f"compare-{collective}.html" in pages
    assert {"index.html", "preset-four.html", "preset-identity.html", "preset-race.html"} <= pages
    assert {f"{name}.html" for name in LESSONS} <= pages
    linked = re.findall(r'"(?:page|compare)":"([^"]+)"', (site / "index.html").read_text(encoding="utf-8"))
    assert set(linked) == pages - {"index.html"}


def test_the_help_is_there_in_both_languages(capsys):
    with pytest.raises(SystemExit):
        main(["draw", "--help"])
    printed = capsys.readouterr().out
    assert "An algorithm as a page that one can watch" in printed
    assert "把算法画成一个可以逐步观看的网页" in printed
    for line in re.findall(r"^  --?\w.*(?:\n {10,}.*)*", printed, re.MULTILINE):
        if not re.match(r"  (-h|--root|--option)", line):
            assert re.search(r"[\u4e00-\u9fff]", line), line
