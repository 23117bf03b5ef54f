from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.cells import cell_len

from unisono.algorithms import BUILT_IN, algorithms_of, find
from unisono.cli.main import main
from unisono.cli.output import wrapped
from unisono.collectives import COLLECTIVES, all_reduce

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_every_algorithm_is_listed_under_its_collective(capsys):
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    for collective in COLLECTIVES:
        assert f"{collective}: {collective.summary.en}" in printed
    assert sum(printed.count(f"\n{algorithm.name} ") for algorithm in algorithms_of(all_reduce)) >= len(
        algorithms_of(all_reduce)
    )


def test_the_costs_are_those_of_the_proof_at_that_size(capsys):
    assert main(["list", "all_reduce", "-n", "5"]) == 0
    ring = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("ring "))
    assert ring.split()[1:] == ["8", "8", "2.67×", "8/5", "=", "1.6", "1.00×", "0"]


def test_the_bytes_are_those_of_the_busiest_rank(capsys):
    assert main(["list", "gather", "-n", "8"]) == 0
    naive = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("naive "))
    assert naive.split()[4:] == ["7/8", "=", "0.875", "1.00×", "0"]


def test_names_are_not_cut_in_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    for algorithm in BUILT_IN:
        assert f"\n{algorithm.name} " in printed
    assert "…" not in printed.replace("f1·f2·…", "")


def test_a_rounded_fraction_is_marked_as_approximate(capsys):
    assert main(["list", "all_gather", "-n", "13"]) == 0
    assert "12/13 ≈ 0.92" in capsys.readouterr().out


def test_a_barrier_moves_nothing(capsys):
    assert main(["list", "barrier"]) == 0
    assert "No algorithm on 8 ranks needs fewer than 3 rounds.\n" in capsys.readouterr().out


def test_descriptions_can_be_shown_in_chinese(capsys):
    assert main(["list", "all_reduce", "--lang", "zh"]) == 0
    printed = capsys.readouterr().out
    assert all_reduce.story.zh in printed
    assert "算法" in printed


def test_json_contains_everything(capsys):
    assert main(["list", "--json", "-n", "3"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert sum(len(entry["algorithms"]) for entry in data) == len(BUILT_IN)
    assert data[0]["collective"] == "broadcast"
    assert data[0]["story"]["zh"].endswith("。")
    assert data[0]["algorithms"][0]["idea"]["zh"].endswith("。")


def test_a_misspelled_collective_gets_a_suggestion(capsys):
    assert main(["list", "allreduce"]) == 2
    assert "did you mean 'all_reduce'?" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["0", "-1", "x", "1.5"])
def test_a_size_that_is_not_a_number_is_rejected(capsys, size):
    with pytest.raises(SystemExit) as caught:
        main(["list", "-n", size])
    assert caught.value.code == 2
    assert "number of ranks" in capsys.readouterr().err or size == "-1"


def test_a_file_is_listed_with_its_costs(capsys):
    assert main(["list", str(EXAMPLES / "zigzag.py"), "-n", "8"]) == 0
    printed = capsys.readouterr().out
    assert next(line for line in printed.splitlines() if line.startswith("zigzag ")).split()[1:3] == ["4", "14"]
    assert "  zigzag: Hand the sum along" in printed
    assert "ring" not in printed
    assert main(["list", f"{EXAMPLES / 'zigzag.py'}:zigzag", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [each["name"] for entry in data for each in entry["algorithms"]] == ["zigzag"]


def test_an_algorithm_that_does_not_serve_this_size_is_skipped(capsys, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from unisono import algorithm\nfrom unisono.algorithms.ring import ring\n"
        "from unisono.collectives import all_reduce\n"
        "@algorithm(all_reduce, chunks=ring.chunks, serves=lambda size: size % 2 == 0)\n"
        "def even(rank, size):\n    yield from ring(rank, size)\n"
    )
    assert main(["list", str(path), "-n", "3"]) == 0
    assert "all_reduce/even: skipped, it is not declared for 3 ranks" in capsys.readouterr().out


def test_an_incorrect_algorithm_of_a_file_is_not_listed(capsys):
    assert main(["list", str(EXAMPLES / "wrong" / "zigzag_twice.py"), "-n", "4"]) == 1
    assert "is counted twice" in capsys.readouterr().err


@pytest.mark.parametrize(("columns", "language"), [("80", "en"), ("50", "zh")])
def test_descriptions_wrap_between_words(capsys, monkeypatch, columns, language):
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["list", "all_reduce", "--lang", language]) == 0
    lines = capsys.readouterr().out.splitlines()
    colon = {"en": ": ", "zh": "："}[language]
    start = next(number for number, line in enumerate(lines) if line.startswith(f"  naive{colon}"))
    end = next(number for number, line in enumerate(lines) if line.startswith(f"  direct{colon}"))
    described = lines[start:end]
    assert len(described) > 1
    assert max(map(cell_len, described)) <= int(columns)
    space = " " if language == "en" else ""
    idea = f"naive{colon}" + find("naive").idea_in(language)
    assert space.join(line.strip() for line in described) == idea


def test_no_text_is_lost_at_line_breaks():
    for algorithm in BUILT_IN:
        for language in ("en", "zh"):
            idea = algorithm.idea_in(language)
            for width in (20, 57):
                lines = wrapped(idea, width)
                assert "".join(lines).replace(" ", "") == idea.replace(" ", "")
                assert max(map(cell_len, lines)) <= width + 4  # punctuation that may not begin a line hangs over


def test_sizes_that_take_minutes_to_prove_are_rejected_with_a_reason(capsys):
    assert main(["list", "-n", "100000"]) == 2
    assert "expected -n 512 or less" in capsys.readouterr().err


def test_a_chinese_line_ends_with_a_punctuation_mark():
    text = "步数取各 rank 中的最大值。轮数表示所需的时间：假设每个 rank 同一时刻最多发一条、收一条消息。"
    assert wrapped(text, 60) == [
        "步数取各 rank 中的最大值。轮数表示所需的时间：",
        "假设每个 rank 同一时刻最多发一条、收一条消息。",
    ]
    assert wrapped("甲乙丙，" + "丁" * 30, 20)[0] == "甲乙丙，" + "丁" * 6
    assert wrapped("one two three", 8) == ["one two", "three"]


def test_a_label_has_the_colon_of_the_language(capsys):
    assert main(["list", "barrier", "-n", "2", "--lang", "zh"]) == 0
    assert "barrier：所有 rank" in capsys.readouterr().out
    assert main(["list", "barrier", "-n", "2"]) == 0
    assert "barrier: No rank" in capsys.readouterr().out
