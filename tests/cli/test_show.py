from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from builders import NAMES
from unisono.cli.main import main
from unisono.cli.show import _described
from unisono.schedule.ops import COMBINE, COPY, Op

ZIGZAG = str(Path(__file__).parents[2] / "examples" / "zigzag.py")


def test_the_program_of_one_rank_is_shown(capsys):
    assert main(["show", "ring", "-n", "5", "--rank", "2"]) == 0
    printed = capsys.readouterr().out
    assert "rank 2\n  1: send chunk 1 to rank 3; recv_reduce chunk 0 from rank 1\n" in printed
    assert "rank 1" not in printed.replace("from rank 1", "")


def test_the_programs_of_all_ranks_are_shown(capsys):
    assert main(["show", "ring", "-n", "3"]) == 0
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if line.startswith("rank")] == ["rank 0", "rank 1", "rank 2"]


def test_with_data_a_table_is_shown_after_each_step(capsys):
    assert main(["show", "ring", "-n", "4", "--data"]) == 0
    printed = capsys.readouterr().out
    assert "before" in printed
    assert "after level 0" not in printed
    assert "after level 6" in printed
    assert "after level 7" not in printed
    last = printed.split("after level 6")[1]
    assert last.count("█ 6  █ 10  █ 14  █ 18") == 4
    assert "number of ranks combined in a value" in printed


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_can_be_shown_with_data(capsys, name):
    assert main(["show", name, "-n", "5", "--data"]) == 0
    assert "after level 1" in capsys.readouterr().out


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min", "avg"])
def test_any_reduction_can_be_played(capsys, op):
    assert main(["show", "ring", "-n", "3", "--data", "--op", op]) == 0
    assert capsys.readouterr().out


def test_json_has_programs_and_frames(capsys):
    assert main(["show", "ring", "-n", "4", "--data", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["programs"]["0"][0] == ["send 3 to 1", "recv_reduce 2 from 3"]
    assert [frame["after_level"] for frame in data["frames"]] == [None, 0, 1, 2, 3, 4, 5]
    assert data["proved"] is True
    assert data["frames"][-1]["rows"]["2"][1] == {"values": [10], "ranks": 4}


def test_options_and_root(capsys):
    assert main(["show", "hierarchical", "-n", "6", "--option", "node=2", "--option", "outer=tree"]) == 0
    assert "hierarchical(node=2, outer=tree) on 6 ranks" in capsys.readouterr().out
    assert main(["show", "hierarchical", "-n", "6", "--option", "node=1,5"]) == 0
    assert "node=(1, 5)" in capsys.readouterr().out
    assert main(["show", "broadcast/tree", "-n", "3", "--root", "2"]) == 0
    assert "root=2" in capsys.readouterr().out


def test_the_source_can_be_shown(capsys):
    assert main(["show", "ring", "--source"]) == 0
    assert "yield from ring_reduce_scatter(rank, size)" in capsys.readouterr().out


def test_an_algorithm_of_a_user_file_is_shown(capsys):
    assert main(["show", f"{ZIGZAG}:zigzag", "-n", "3"]) == 0
    assert "all_reduce/zigzag on 3 ranks" in capsys.readouterr().out


def test_the_text_form_is_written_and_read(capsys, tmp_path):
    assert main(["show", "bruck_all_gather", "-n", "5", "--text"]) == 0
    text = capsys.readouterr().out
    path = tmp_path / "mine.txt"
    path.write_text(text)
    assert main(["show", str(path), "--text"]) == 0
    assert capsys.readouterr().out == text
    assert main(["verify", str(path)]) == 0
    assert "1 proved, 0 failed" in capsys.readouterr().out
    assert main(["show", str(path), "-n", "6"]) == 2
    assert "for 5 ranks; expected -n 5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["ring", "--rank", "7"], "--rank 7 with 4 ranks"),
        (["ring", "--root", "1"], "has no root"),
        (["all_reduce"], "is a collective; write one of its algorithms: all_reduce/naive"),
        (["hierarchical", "--option", "node=x"], "node='x'; expected a number of ranks"),
        (["hierarchical", "--option", "node=0"], "node=0; expected a number of ranks, 1 or more"),
        (["hierarchical", "--option", "inner=nothing"], "no reduce_scatter algorithm 'nothing'"),
        (["butterfly", "--option", "factors=x"], "expected numbers whose product is 4"),
        (["torus", "--option", "rows=x"], "rows='x' with 4 ranks"),
        (["broadcast/chain", "--option", "pieces=0"], "0 chunks for 4 ranks; expected at least 1"),
        (["broadcast/tree", "--root", "9"], "root=9 with 4 ranks"),
        (["ring", "--option", "node=4"], "no option 'node'"),
        (["ring", "--option", "node"], "expected name=value"),
        (["ring", "--option", "size=3"], "expected name=value"),
        (["hierarchical", "--option", "node=" + "-" * 20000 + "1"], "expected a number of ranks"),
        (["x" * 300 + ".py"], "there is no file"),
        (["x" * 300 + ".txt"], "cannot be read"),
        (["[/x].txt"], "there is no file '[/x].txt'"),
        (["[/red]"], "no collective '['"),
        (["rnig"], "did you mean 'all_reduce/ring'?"),
        (["nothing.txt"], "there is no file 'nothing.txt'"),
        (["nothing.py"], "there is no file 'nothing.py'"),
    ],
)
def test_invalid_arguments_are_explained(capsys, arguments, complaint):
    assert main(["show", *arguments]) == 2
    printed = capsys.readouterr()
    assert complaint in printed.err
    assert printed.out == ""


def test_numbers_are_coloured_by_the_number_of_ranks_summed(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["show", "ring", "-n", "4", "--data"]) == 0
    printed = capsys.readouterr().out
    bold_green, yellow, cyan = "\x1b[1;32m█ 18", "\x1b[33m▄ 7", "\x1b[36m▆ 12"
    for coloured in (bold_green, yellow, cyan):
        assert coloured in printed


def test_avg_ends_with_a_division(capsys):
    assert main(["show", "ring", "-n", "3", "--data", "--op", "avg"]) == 0
    assert "divided by 3, on each rank: 1 2 3; 1 2 3; 1 2 3" in capsys.readouterr().out


def test_the_tables_are_available_in_chinese(capsys):
    assert main(["show", "ring", "-n", "3", "--data", "--lang", "zh"]) == 0
    printed = capsys.readouterr().out
    for words in (
        "all_reduce/ring，3 个 rank：",
        "rank 2",
        "开始",
        "层级 1 之后",
        "步骤",
        "数值中已累加的 rank 数",
        "先让每一块绕环一圈求和",
    ):
        assert words in printed


def test_the_columns_of_slots_have_the_numbers_that_ops_use_and_the_names_of_chunks(capsys):
    assert main(["show", "naive", "-n", "3", "--data"]) == 0
    assert "0 a  1 scratch  2 scratch" in capsys.readouterr().out
    assert main(["show", "all_to_all/bruck", "-n", "2", "--data"]) == 0
    assert "0 a  1 b  2 out  3 out" in capsys.readouterr().out


def test_chunks_that_are_moved_keep_their_names(capsys):
    assert main(["show", "all_to_all/pairwise", "-n", "3", "--data"]) == 0
    last = capsys.readouterr().out.split("after level 3")[1]
    rows = [line.split() for line in last.splitlines() if line.startswith("rank")]
    assert [row[5:8] for row in rows] == [["a0", "a1", "a2"], ["b0", "b1", "b2"], ["c0", "c1", "c2"]]


def test_brackets_in_names_are_shown_literally(capsys, tmp_path):
    path = tmp_path / "[red].txt"
    path.write_text("unisono schedule 1\ncollective barrier\nalgorithm [/foo]\nsize 1\nchunks 1\nslots 1\nrank 0\n")
    assert main(["show", str(path)]) == 0
    assert "barrier/[/foo] on 1 rank" in capsys.readouterr().out
    assert main(["verify", str(path)]) == 0
    assert "barrier/[/foo] " in capsys.readouterr().out


WRONG = """
from unisono import algorithm, recv_reduce, send
from unisono.collectives import all_reduce

@algorithm(all_reduce, chunks=2)
def pushy(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    for hop in range(1, size):
        yield send(0, dst=right)
        yield send(1, dst=right)
        yield recv_reduce(0, src=left)
        yield recv_reduce(1, src=left)

@algorithm(all_reduce)
def twice(rank, size):
    for hop in range(1, size):
        yield send(0, dst=(rank + 1) % size), recv_reduce(0, src=(rank - 1) % size)

@algorithm(all_reduce)
def stops(rank, size):
    yield send(0, dst=(rank + 1) % size), recv_reduce(0, src=(rank - 1) % size)
    yield send(0, dst=size)
"""


@pytest.fixture
def wrong(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    return str(path)


@pytest.mark.parametrize("name", ["pushy", "twice", "stops"])
@pytest.mark.parametrize("data", [[], ["--data"]])
def test_an_incorrect_program_is_shown_followed_by_its_error(capsys, wrong, name, data):
    assert main(["show", f"{wrong}:{name}", "-n", "3", *data]) == 1
    printed = capsys.readouterr().out
    assert ("send 0 to 1" if data else "send chunk 0 to rank 1") in printed
    last = printed.rpartition("NOT PROVED ")[2]
    assert re.match(r"(Deadlock|Goal|Schedule)Error all_reduce/\w+ on 3 ranks, rank \d, step \d", last)
    assert "hint:" in last


def test_contributions_counted_twice_have_a_mark_instead_of_a_full_bar(capsys, wrong):
    assert main(["show", f"{wrong}:twice", "-n", "3", "--data"]) == 1
    printed = capsys.readouterr().out
    last = printed.rpartition("after level 2")[2]
    assert "█ 3" not in last.partition("number of ranks")[0]
    assert "✗ 5 (2 twice)" in last
    assert "✗ a rank is counted twice" in printed
    assert main(["show", "ring", "-n", "3", "--data"]) == 0
    assert "✗" not in capsys.readouterr().out


def test_an_incorrect_program_is_reported_in_chinese_and_as_data(capsys, wrong):
    assert main(["show", f"{wrong}:twice", "-n", "3", "--lang", "zh", "--data"]) == 1
    printed = capsys.readouterr().out
    assert "未通过证明 GoalError all_reduce/twice（3 个 rank），rank 1，第 2 步" in printed
    assert "✗ 有 rank 被重复计入" in printed
    assert main(["show", f"{wrong}:twice", "-n", "3", "--json", "--data"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["proved"] is False
    assert (data["failure"]["id"], data["failure"]["parameters"]) == ("verifier.counted_twice", {"rank": 0})
    assert data["failure"]["step"] == 1  # an index: the second step
    assert data["frames"][-1]["rows"]["0"][0]["counted_twice"] == [2]


def test_too_many_programs_are_rejected_but_one_of_them_is_shown(capsys):
    assert main(["show", "tree", "-n", "100000"]) == 2
    assert "expected -n 256 or less, or one rank with --rank R" in capsys.readouterr().err
    assert main(["show", "tree", "-n", "1000000", "--rank", "1"]) == 0
    printed = capsys.readouterr().out
    assert "rank 1\n  1: recv_reduce chunk 0 from rank 524289\n" in printed
    assert "not checked here" in printed
    assert "unisono verify tree -n 1000000" in printed


def test_a_schedule_too_large_to_show_is_rejected_at_once(capsys, tmp_path):
    path = tmp_path / "huge.txt"
    path.write_text(
        "unisono schedule 1\ncollective broadcast\nalgorithm x\nsize 2\nchunks 900000000\nslots 900000000\nroot 0\n"
        "rank 0\n0: send 0-899999999 to 1\nrank 1\n0: recv 0-899999999 from 0\n"
    )
    assert main(["show", str(path), "--data"]) == 2
    assert "too many to show" in capsys.readouterr().err
    assert main(["verify", str(path)]) == 2
    assert "a proof handles at most" in capsys.readouterr().err


def test_a_step_says_which_numbers_are_chunks_and_which_are_ranks(capsys):
    assert main(["show", "ring", "-n", "5", "--rank", "3"]) == 0
    assert "send chunk 4 to rank 4; recv_reduce chunk 3 from rank 2" in capsys.readouterr().out
    assert main(["show", "rabenseifner", "-n", "4", "--rank", "0"]) == 0
    assert "send chunks 2-3 to rank 2; recv_reduce chunks 0-1 from rank 2" in capsys.readouterr().out
    assert main(["show", "ring", "-n", "3", "--data"]) == 0
    assert "step (send CHUNK to RANK)" in capsys.readouterr().out


def test_the_steps_of_a_rank_are_shown_in_chinese(capsys):
    assert main(["show", "ring", "-n", "3", "--rank", "1", "--lang", "zh"]) == 0
    assert "rank 1\n  1: send 第 0 块到 rank 2；recv_reduce 第 2 块，来自 rank 0\n" in capsys.readouterr().out


def test_local_ops_name_two_chunks():
    assert _described(Op(COPY, 1, 2)) == "copy chunk 1 to chunk 2"
    assert _described(Op(COMBINE, range(2), range(4, 6))) == "combine chunks 0-1 into chunks 4-5"
