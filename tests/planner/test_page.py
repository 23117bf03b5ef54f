"""The page of a plan, and the verb that writes it."""

from __future__ import annotations

import json
import re

import pytest

from unisono import plan
from unisono.cli import plan as plan_verb
from unisono.cli.main import main
from unisono.planner import what_would_change
from unisono.planner.page import page_of

SMALL = "layers=4,hidden=256,heads=8,vocabulary=1000,sequence=512"
COMMAND = ["plan", "--model", SMALL, "--gpus", "16", "--tokens", "64K"]


@pytest.fixture(scope="module")
def found():
    return plan(SMALL, gpus=16, tokens="64K")


@pytest.fixture(scope="module")
def page(found):
    return page_of(found, what_would_change(found))


def test_the_page_is_one_file_in_both_languages(page):
    assert not re.search(r"(?:src|href)=|url\(|@import|\{\{", page)
    assert page.count('<span lang="zh-CN">') == page.count('<span lang="en">') > 20
    assert '<html lang="en">' in page


def test_the_page_has_two_bars_for_each_of_the_ten_best(page, found):
    assert page.count('<div class="bar">') == 20
    for each in found.candidates[:10]:
        assert page.count(f"<th>{each.configuration}</th>") == 2


def test_the_bars_of_the_slowest_shown_are_full(page, found):
    slowest = found.candidates[9]
    rows = re.findall(rf"<tr><th>{re.escape(str(slowest.configuration))}</th>.*?</tr>", page)
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", rows[0])]
    assert sum(widths) == pytest.approx(100, abs=0.1)


def test_text_of_a_user_cannot_become_markup():
    from unisono.planner import Model

    model = Model("<script>", 4, 256, 8, 1000, sequence=512)
    made = page_of(plan(model, gpus=2, tokens="8K"), [])
    assert made.count("<script>") == 1


def test_the_verb_prints_a_table_and_reasons(capsys):
    assert main([*COMMAND, "--top", "3"]) == 0
    out = capsys.readouterr().out
    assert "tokens/s/GPU" in out
    assert "slower than" in out
    assert "times the memory" in out


def test_the_verb_speaks_chinese(capsys):
    assert main([*COMMAND, "--top", "2", "--lang", "zh"]) == 0
    out = capsys.readouterr().out
    assert "显存变为 8 倍" in out
    assert all(heading in out for heading in ("重算", "每步", "被掩盖", "集合通信操作", "主机间"))
    assert all(heading not in out for heading in ("recompute", "hidden", "bubble", "per step", "near", "far"))


def test_the_tables_have_the_same_columns_in_both_languages():
    for columns in (plan_verb.COLUMNS, plan_verb.COLLECTIVE_COLUMNS, plan_verb.CALL_COLUMNS):
        english, chinese = ([name.startswith(">") for name in columns[language]] for language in ("en", "zh"))
        assert english == chinese


def test_the_verb_prints_json_and_writes_the_page(capsys, tmp_path):
    path = tmp_path / "plan.html"
    assert main([*COMMAND, "--json", "--draw", str(path)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["candidates"]) == 10
    first = data["candidates"][0]
    parts = ("parameters", "gradients", "optimizer", "activations", "buffers")
    assert first["memory_bytes"]["total"] == pytest.approx(sum(first["memory_bytes"][part] for part in parts))
    assert first["collectives"][0].keys() >= {"collective", "nbytes", "count", "link", "sent_bytes", "time_s"}
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_verb_lists_the_calls_of_unisono_parallel(capsys):
    words = ["plan", "--model", f"{SMALL},gated=no", "--gpus", "4", "--tokens", "64K", "--calls"]
    assert main([*words, "--json"]) == 0
    calls = json.loads(capsys.readouterr().out)["calls"]
    assert {call["collective"] for call in calls} >= {"all_reduce"}
    assert main(words) == 0
    assert "embedding.output" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--model", "llama-8"], "did you mean 'llama-8b'?"),
        (["--network", "dgx-h200"], "dgx-h100"),
        (["--model", "llama-405b", "--gpus", "8"], "more GPUs"),
        (["--memory", "much"], "80GB"),
        (["--gpus", "8", "--model", "llama-1b", "--calls"], "ParallelTransformer"),
        (["--gpus", "8", "--model", "gpt2", "--draw", "missing/folder/plan.html"], "missing/folder"),
    ],
)
def test_bad_arguments_are_clear_errors(words, expected, capsys):
    assert main(["plan", *words]) == 2
    assert expected in capsys.readouterr().err
