from __future__ import annotations

import re
import shlex
import webbrowser

import pytest

import unisono
from unisono import algorithm, draw, find, one, recv_reduce, send
from unisono.cli.main import main
from unisono.collectives import all_reduce
from unisono.drawing import messages
from unisono.errors import UsageError
from unisono.schedule.text import format_schedule


@algorithm(all_reduce, chunks=one)
def pairs(rank, size):
    """Exchange data with the other rank."""
    yield send(0, dst=1 - rank), recv_reduce(0, src=1 - rank)


def test_a_name_an_algorithm_and_a_schedule_can_be_drawn():
    assert "all_reduce/ring · 5" in draw("ring", size=5).html
    assert "all_reduce/pairs · 2" in draw(pairs, size=2).html
    assert "all_gather/ring · 3" in draw(find("all_gather/ring").schedule(3)).html


MY_FILE = """
from unisono import algorithm, recv_reduce, send
from unisono.collectives import all_reduce

@algorithm(all_reduce)
def swap(rank, size, often=1):
    yield send(0, dst=1 - rank), recv_reduce(0, src=1 - rank)
"""


def test_a_users_file_can_be_drawn(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(MY_FILE)
    text = tmp_path / "ring.txt"
    text.write_text(format_schedule(find("ring").schedule(3)))
    for name in (str(mine), mine, f"{mine}:swap"):
        made = draw(name, size=2)
        assert made.title == "all_reduce/swap · 2"
        assert "yield send(0, dst=1 - rank)" in made.html
    assert draw(str(text)).title == "all_reduce/ring · 3"


def test_python_and_the_command_line_have_the_same_defaults():
    assert draw("ring").title == "all_reduce/ring · 4"
    assert draw(["ring", "tree"]).title == draw("ring", "tree").title == "all_reduce/ring, all_reduce/tree · 8"


def test_the_error_for_an_unknown_option_lists_the_known_ones():
    with pytest.raises(UsageError, match="did you mean size=") as raised:
        draw("ring", n=5)
    assert raised.value.id == messages.NO_OPTION.id
    with pytest.raises(UsageError, match="did you mean node="):
        draw("hierarchical", nod=2)
    with pytest.raises(
        UsageError,
        match="arguments: size, root, numbers, language, lesson, calls, network, nbytes, step, rank; options: node",
    ):
        draw("ring", "hierarchical", colour=2)
    with pytest.raises(UsageError, match="options: none"):
        draw("ring", colour=2)


def test_a_program_that_fails_its_proof_is_drawn_with_its_failure():
    made = draw(pairs, size=3)
    assert [error for error, _ in made.failures] == ["ScheduleError"]
    assert draw(pairs, size=2).failures == ()


@algorithm(all_reduce)
def silent(rank, size):
    yield from ()


WRONG_FILE = """
from unisono import algorithm
from unisono.collectives import all_reduce

@algorithm(all_reduce)
def nothing(rank, size):
    yield from ()
"""


def test_the_command_in_a_hint_names_the_users_file_and_can_be_pasted(tmp_path, capsys):
    mine = tmp_path / "my file.py"
    mine.write_text(WRONG_FILE)
    ((error, message),) = draw(str(mine), size=3).failures
    assert error == "GoalError"
    command = re.search("`unisono (show .*)`", message)[1]
    assert command == f"show '{mine}' -n 3 --rank 0"
    main(shlex.split(command))
    assert "nothing" in capsys.readouterr().out


def test_the_command_in_a_hint_has_the_root_and_the_options(tmp_path, capsys):
    mine = tmp_path / "mine.py"
    mine.write_text(WRONG_FILE.replace("rank, size)", "rank, size, far=1)"))
    for arguments in (["verify", str(mine), "-n", "3"], ["show", str(mine), "-n", "3"]):
        assert main([*arguments, "--option", "far=2"]) == 1
        assert f"`unisono show {mine} --option far=2 -n 3 --rank 0`" in capsys.readouterr().out
    ((_, message),) = draw(str(mine), size=3, far=2).failures
    assert f"`unisono show {mine} --option far=2 -n 3 --rank 0`" in message


def test_the_command_in_a_hint_names_the_file_of_a_function(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    ((_, message),) = draw(silent, size=3).failures
    assert f"`unisono show {__file__}:silent -n 3 --rank 0`" in message


def test_options_and_root_are_those_of_the_algorithm():
    assert "hierarchical(node=2)" in draw("hierarchical", size=4, node=2).title
    assert "broadcast/tree(root=1)" in draw("broadcast/tree", size=3, root=1).title


def test_compared_algorithms_take_the_options_that_they_declare():
    made = draw("ring", "hierarchical", size=4, node=2)
    assert made.title == "all_reduce/ring, all_reduce/hierarchical(node=2) · 4"


@pytest.mark.parametrize(
    ("lesson", "title"), [(3, "Five ranks, eight steps"), ("zero3", "ZeRO-3"), ("busbw", "Why 2(p−1)/p")]
)
def test_lessons_are_drawn_by_number_or_name(lesson, title):
    made = draw(lesson=lesson, language="zh")
    assert made.title == title
    assert '"language":"zh"' in made.html


def test_a_drawing_displays_itself_in_a_frame_in_a_notebook():
    shown = draw("ring", size=3)._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert "data-mode=&quot;embed&quot;" in shown
    assert "<script" not in shown
    assert "html=" not in repr(draw("ring", size=3))


def test_a_page_is_saved_and_shown(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    drawing = draw("ring", size=3)
    assert drawing.save(tmp_path / "ring.html").read_text(encoding="utf-8") == drawing.html
    path = drawing.show()
    assert opened == [path.as_uri()]
    assert path.read_text(encoding="utf-8") == drawing.html


def test_invalid_calls_raise_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="nothing to draw"):
        draw()
    with pytest.raises(UsageError, match="did you mean"):
        draw("rnig", size=3)
    with pytest.raises(UsageError, match="expected a name, a file, an @algorithm, a schedule or a recorded run"):
        draw(3, size=3)
    with pytest.raises(UsageError, match="no option 'node'; arguments: size"):
        draw("ring", size=3, node=2)
    with pytest.raises(UsageError, match="language='fr'"):
        draw("ring", language="fr")
    with pytest.raises(UsageError, match="language='fr'"):
        draw(lesson="ring", language="fr")
    with pytest.raises(UsageError, match=r"no lesson 'zero4'; expected 1 to 8, or one of .*; did you mean 'zero3'"):
        draw(lesson="zero4")
    with pytest.raises(UsageError, match="lesson 'ring' determines what is drawn; leave out"):
        draw(size=5, lesson="ring")
    with pytest.raises(UsageError, match=r"no presets any more: .* instead of 'four', with one of rank, sums"):
        draw(preset="four")
    with pytest.raises(UsageError, match="calls of a recorded run"):
        draw("ring", calls=(1, 2))
    with pytest.raises(UsageError, match=r"there is no folder .*nowhere'; create it first"):
        draw("ring").save(tmp_path / "nowhere" / "page.html")
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(UsageError, match="cannot be written: Is a directory"):
        draw("ring").save(tmp_path)


@pytest.mark.parametrize(
    ("view", "error", "en", "zh"),
    [
        ({"step": 9}, "no_step", "has no step 9; expected 1 to 8, or 0", "没有第 9 步；应为 1 至 8，或者 0"),
        ({"step": -1}, "no_step", "has no step -1; expected 1 to 8", "没有第 -1 步；应为 1 至 8"),
        ({"rank": 5}, "no_rank", "has no rank 5; expected 0 to 4", "没有 rank 5；应为 0 至 4"),
        ({"rank": -1}, "no_rank", "has no rank -1; expected 0 to 4", "没有 rank -1；应为 0 至 4"),
        ({"step": "3"}, "view_not_a_number", "step='3'; expected a whole number", "step='3'；应为整数"),
        ({"rank": True}, "view_not_a_number", "rank=True; expected a whole number", "rank=True；应为整数"),
        (
            {"step": 3, "network": "dgx-h100"}, "step_in_simulated_time", "has moments, not steps",
            "只有时刻，没有步",
        ),
    ],
)  # fmt: skip
def test_a_step_or_rank_that_the_page_does_not_have_is_refused_with_its_range(view, error, en, zh):
    with pytest.raises(UsageError) as raised:
        draw("ring", size=5, **view)
    assert raised.value.id == f"drawing.{error}"
    assert en in raised.value.text("en")
    assert zh in raised.value.text("zh")


def test_the_last_step_of_the_longest_algorithm_of_a_comparison_is_in_range():
    assert '"opening":"#step=14&rank=7&by=step"' in draw("ring", "tree", size=8, step=14, rank=7).html
    with pytest.raises(UsageError, match="has no step 15; expected 1 to 14"):
        draw("ring", "tree", size=8, step=15)


def test_a_lesson_takes_neither_step_nor_rank():
    with pytest.raises(UsageError, match=r"lesson '3' determines what is drawn; leave out .* step, rank"):
        draw(lesson=3, step=0)


def test_drawing_is_imported_on_first_use():
    assert unisono.draw is draw


def test_the_gallery_compares_the_best_algorithms_with_the_ring(gallery):
    title = re.search(
        "<title>(.*)</title>", (gallery.parent / "compare-all_reduce.html").read_text(encoding="utf-8")
    )[1]
    names = title.partition(" · ")[0].split(", ")
    assert len(names) == 6
    assert "all_reduce/ring" in names
    assert "all_reduce/recursive_doubling" in names
