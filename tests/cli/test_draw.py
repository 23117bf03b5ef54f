from __future__ import annotations

import re
import webbrowser
from pathlib import Path

import pytest

from trace_parts import write_part
from unisono.algorithms import BUILT_IN
from unisono.cli.main import main
from unisono.collectives import COLLECTIVES
from unisono.drawing.course import COURSE

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def opened(monkeypatch):
    """Record the pages that would be opened in a browser."""
    addresses: list[str] = []
    monkeypatch.setattr(webbrowser, "open", addresses.append)
    return addresses


def test_a_page_is_written_and_opened(tmp_path, capsys, opened):
    page = tmp_path / "ring.html"
    assert main(["draw", "ring", "-n", "5", "-o", str(page)]) == 0
    assert opened == [page.as_uri()]
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert re.search(r"all_reduce/ring · 5: .*ring\.html \(\d+ KB\)", capsys.readouterr().out)


def test_no_open_keeps_the_browser_closed(tmp_path, opened):
    assert main(["draw", "ring", "-o", str(tmp_path / "ring.html"), "--no-open"]) == 0
    assert opened == []


def test_without_a_file_the_page_is_opened_from_a_temporary_one(opened):
    assert main(["draw", "ring", "-n", "2"]) == 0
    assert opened[0].startswith("file://")


def test_the_error_of_a_wrong_program_is_printed_in_the_requested_language(tmp_path, capsys):
    wrong = ["draw", str(EXAMPLES / "wrong" / "zigzag_twice.py"), "-o", str(tmp_path / "page.html"), "--no-open"]
    assert main([*wrong, "--lang", "zh"]) == 1
    assert "rank 0 的输入被重复计入" in (chinese := capsys.readouterr().err)
    assert "rank 0、1、2）" in chinese
    assert "counted twice" not in chinese
    assert main(wrong) == 1
    assert "the input of rank 0 is counted twice" in capsys.readouterr().err


def test_a_program_is_animated_on_a_network(tmp_path, capsys):
    page = tmp_path / "page.html"
    arguments = ["-n", "6", "--bytes", "64KiB", "-o", str(page), "--no-open"]
    assert main(["draw", "--network", "dgx-h100", str(EXAMPLES / "zigzag.py"), *arguments]) == 0
    assert "all_reduce/zigzag · 6 · dgx-h100: " in capsys.readouterr().out
    assert '"bytes":65536' in page.read_text(encoding="utf-8")


def test_several_algorithms_are_compared_on_eight_ranks(tmp_path, capsys):
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
    ("lesson", "title"),
    [
        ("3", "Five ranks, eight steps"),
        ("ring", "Five ranks, eight steps"),
        ("halves", "Two halves"),
        ("experts", "Mixture of experts"),
        ("race", "The race"),
    ],
)
def test_a_lesson_is_drawn_by_its_number_its_name_or_that_of_a_page(tmp_path, capsys, lesson, title):
    page = tmp_path / "page.html"
    assert main(["draw", "--lesson", lesson, "-o", str(page), "--no-open", "--lang", "zh"]) == 0
    assert title in capsys.readouterr().out
    assert '"language":"zh"' in page.read_text(encoding="utf-8")


def test_the_course_is_drawn_into_a_folder_or_a_new_one_and_opened(tmp_path, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert main(["draw", "--course", "-o", str(tmp_path / "site")]) == 0
    names = {path.name for path in (tmp_path / "site").glob("*.html")}
    assert len(names) == 1 + sum(len(lesson.pages) for lesson in COURSE)
    assert opened == [(tmp_path / "site" / "index.html").as_uri()]
    assert f"{len(names)} pages" in capsys.readouterr().out


def test_a_user_file_and_a_schedule_in_text_form_are_drawn(tmp_path, capsys):
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
def test_a_program_that_fails_its_proof_is_drawn_and_the_error_is_printed(tmp_path, capsys, example, error):
    page = tmp_path / "page.html"
    assert main(["draw", str(EXAMPLES / "wrong" / f"{example}.py"), "-n", "4", "-o", str(page), "--no-open"]) == 1
    assert error in capsys.readouterr().err
    assert f'"error":"{error}"' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "nothing to draw"),
        (["rnig"], "did you mean 'all_reduce/ring'?"),
        (["all_reduce"], "is a collective; write one of its algorithms"),
        (["nothing.py"], "there is no file 'nothing.py'"),
        (["ring", "--no-open"], "would discard the page"),
        (["ring", "--root", "1"], "has no root"),
        (["ring", "--node", "2"], "no option 'node'"),
        (
            ["ring", "--lesson", "3"],
            "leave out names, size (-n), root, calls, network, bytes, step, rank and options",
        ),
        (
            ["--lesson", "ring", "-n", "5"],
            "leave out names, size (-n), root, calls, network, bytes, step, rank and options",
        ),
        (
            ["--lesson", "zero3", "-n", "5"],
            "leave out names, size (-n), root, calls, network, bytes, step, rank and options",
        ),
        (
            ["--lesson", "hosts", "--root", "1"],
            "leave out names, size (-n), root, calls, network, bytes, step, rank and options",
        ),
        (["--lesson", "9"], "no lesson '9'; expected 1 to 8, or one of rank, sums, reduce, broadcast, ring"),
        (["--lesson", "zero4"], "did you mean 'zero3'?"),
        (
            ["--preset", "four"],
            "expected --lesson NAME or draw(lesson=NAME) instead of 'four', with one of rank, sums",
        ),
        (["--course", "ring"], "expected no names, -n, --all, --lesson, --network, --bytes, --step or --rank"),
        (["--course", "-n", "3"], "expected no names, -n, --all, --lesson, --network, --bytes, --step or --rank"),
        (["--course", "--no-open"], "would discard the page"),
        (["--all"], "into a folder"),
        (["ring", "--all", "-o", "site"], "expected -o FOLDER, and no names"),
        (["--all", "-o", "/dev/null/site", "--no-open"], "pages cannot be written there"),
        (["ring", "-n", "2000"], "at most 1024"),
        (["ring", "-o", "/nowhere/at/all.html"], "there is no folder '/nowhere/at'; create it first"),
        (["ring", "--option", "n=5"], "did you mean size=?"),
        (["ring", "--network", "dgx-h10"], "did you mean 'dgx-h100'?"),
        (["ring", "--network", "polaris", "-n", "100000"], "expected: between 1 and 2240 ranks"),
        (["ring", "--bytes", "1MiB"], "expected: a network as well, such as --network dgx-h100"),
        (["ring", "--network", "ideal", "--bytes", "many"], "many"),
        (["--lesson", "ring", "--network", "ideal"], "leave out names"),
        (["ring", "-n", "5", "--step", "9"], "has no step 9; expected 1 to 8"),
        (["ring", "-n", "5", "--rank", "5"], "has no rank 5; expected 0 to 4"),
        (["--all", "-o", "site", "--step", "3"], "--step or --rank"),
        (["--all", "-o", "site", "--network", "ideal"], "no names, --lesson, --network, --bytes, --step or --rank"),
    ],
)
def test_invalid_arguments_are_explained(capsys, arguments, complaint):
    assert main(["draw", *arguments]) == 2
    printed = capsys.readouterr()
    assert complaint in printed.err
    assert printed.out == ""


def test_all_pages_are_drawn_into_a_folder(tmp_path, capsys):
    site = tmp_path / "site"
    assert main(["draw", "--all", "-n", "4", "-o", str(site), "--no-open"]) == 0
    pages = {path.name for path in site.glob("*.html")}
    assert f"{len(pages)} pages" in capsys.readouterr().out
    for algorithm in BUILT_IN:
        assert f"{algorithm.collective}-{algorithm.name}.html" in pages
    for collective in COLLECTIVES:
        assert f"compare-{collective}.html" in pages
    assert {"index.html", "lesson-1-rank.html", "lesson-7-zero3.html", "lesson-8-race.html"} <= pages
    linked = re.findall(r'"(?:page|file|compare)":"([^"]+)"', (site / "index.html").read_text(encoding="utf-8"))
    assert set(linked) == pages - {"index.html"}


def test_the_help_is_english_and_fits_into_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["draw", "--help"])
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert "Draw an algorithm as an interactive web page" in printed
    assert max(map(len, printed.splitlines())) <= 80


@pytest.fixture
def trace(tmp_path):
    """Return the folder of a trace of two ranks."""
    folder = tmp_path / "job"
    folder.mkdir()
    write_part(folder, 0)
    write_part(folder, 1)
    return folder


def test_a_recorded_run_is_drawn_from_its_folder_or_its_file(trace, tmp_path, capsys, opened):
    page = tmp_path / "run.html"
    assert main(["draw", str(trace), "-o", str(page), "--lang", "zh"]) == 0
    assert opened == [page.as_uri()]
    printed = capsys.readouterr().out
    assert re.search(r"job · 2: .*run\.html \(\d+ KB\)", printed)
    assert "调用太少" in printed
    assert '"language":"zh"' in page.read_text(encoding="utf-8")
    (part,) = trace.glob("rank-0*.json")
    assert main(["draw", str(part), "-o", str(page), "--no-open"]) == 0
    assert "There is no trace of rank 1" in capsys.readouterr().err.replace("\n", " ")


def test_some_calls_of_a_run_are_drawn(trace, tmp_path, capsys):
    page = str(tmp_path / "run.html")
    assert main(["draw", str(trace), "-o", page, "--no-open", "--calls", "2-9"]) == 0
    assert "Calls 2 to 2 of 2 are drawn" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["{trace}", "-n", "4"], "a recorded run is drawn on its own page"),
        (["{trace}", "--root", "1"], "a recorded run is drawn on its own page"),
        (["{trace}", "--rank", "1"], "a recorded run is drawn on its own page"),
        (["{trace}", "ring"], "a recorded run is drawn on its own page"),
        (["{trace}", "--calls", "7-9"], "there are no calls 7-9; expected some of 1-2"),
        (["{trace}", "--calls", "x"], "names no calls; expected e.g. 100-200"),
        (["{trace}", "--calls", "9-7"], "names no calls"),
        (["ring", "--calls", "7-9"], "selects calls of a recorded run"),
        (["{trace}/nothing.json"], "there is no file or folder"),
        (["{trace}/empty/"], "To record one: unisono run -n 4 --trace DIR"),
        (["{trace}/cut.json"], "this trace is damaged"),
        (["{trace}/text.json"], "is not JSON"),
        (["{trace}/other.json"], "not a trace of Unisono"),
    ],
)
def test_files_that_are_not_traces_are_rejected_with_an_explanation(trace, capsys, words, complaint):
    (trace / "empty").mkdir()
    whole = next(trace.glob("rank-0*.json")).read_text()
    (trace / "cut.json").write_text(whole[: len(whole) // 2])
    (trace / "text.json").write_text("hello")
    (trace / "other.json").write_text('{"traceEvents": []}')
    try:
        code = main(
            ["draw", *(word.replace("{trace}", str(trace)) for word in words), "-o", "page.html", "--no-open"]
        )
    except SystemExit as refused:  # by the argument parser
        code = refused.code
    assert code == 2
    printed = capsys.readouterr()
    assert complaint in " ".join(printed.err.split())
    assert printed.out == ""
