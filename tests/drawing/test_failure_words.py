"""What is wrong with a program is said in Chinese, too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import unisono
from unisono.algorithms import algorithm
from unisono.collectives import all_reduce
from unisono.drawing.failure_words import PARTS, PHRASES, in_chinese
from unisono.drawing.scene import scene_of
from unisono.schedule import recv, send

SOURCES = Path(unisono.__file__).parent
ERRORS = {"ScheduleError", "UnmatchedError", "DeadlockError", "HazardError", "GoalError"}
PIECE = "7"  # stands for whatever differs from error to error
CHINESE = re.compile("[\u4e00-\u9fff]")


def _texts(node: ast.expr, constants: dict[str, str]) -> Iterator[str]:
    """Every text that an expression can have, with PIECE for what is not known before it runs."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=values):
            texts = [""]
            for value in values:
                texts = [before + after for before in texts for after in _texts(value, constants)]
            yield from texts
        case ast.BinOp(left=left, right=right):
            for before in _texts(left, constants):
                yield from (before + after for after in _texts(right, constants))
        case ast.IfExp(body=body, orelse=orelse):
            yield from _texts(body, constants)
            yield from _texts(orelse, constants)
        case ast.FormattedValue(value=ast.IfExp() as chosen):
            yield from _texts(chosen, constants)
        case ast.Name(id=name) if name in constants:
            yield constants[name]
        case _:
            yield PIECE


def _sentences() -> list[str]:
    """All that the modules which check and prove programs can say in an error."""
    found = set()
    for folder in ("schedule", "verifier"):
        for path in (SOURCES / folder).glob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            constants = {
                node.targets[0].id: node.value.value
                for node in tree.body
                if isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            }
            for call in ast.walk(tree):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ERRORS:
                    said = [*call.args[:1], *(word.value for word in call.keywords if word.arg in PARTS)]
                    found |= {text for part in said for text in _texts(part, constants)}
    return sorted(text for text in found if re.search("[a-z]", text))


def test_there_is_a_lot_that_an_error_can_say():
    assert len(_sentences()) > 60


@pytest.mark.parametrize("sentence", _sentences())
def test_every_sentence_of_an_error_has_its_chinese(sentence):
    chinese = in_chinese(sentence)
    assert chinese is not None, f"no phrase fits: {sentence}"
    assert CHINESE.search(chinese)


@pytest.mark.parametrize("english", PHRASES)
def test_a_phrase_in_chinese_uses_every_piece_of_the_english_one(english):
    pieces = {str(number) for number in range(english.count("{}"))}
    assert set(re.findall(r"\{(\d)\}", PHRASES[english])) == pieces


def test_a_piece_that_is_a_phrase_itself_is_said_in_chinese_too():
    text = "chunk 3 of 2 ranks added: 0, 4; plus chunk 3 of rank 4"
    assert in_chinese(text) == "2 个进程的第 3 块之和（进程 0, 4）；再加上进程 4 的第 3 块"


def test_what_is_not_known_is_left_in_english():
    assert in_chinese("the moon is full") is None


def test_a_page_of_a_program_that_hangs_says_so_in_chinese():
    @algorithm(all_reduce)
    def stuck(rank, size):
        yield recv(0, src=(rank + 1) % size)
        yield send(0, dst=(rank - 1) % size)

    chinese = scene_of(stuck.schedule(3), stuck)["failure"]["said"]["zh"]
    assert chinese["what"] == "3 个进程循环等待；加深通道也无济于事"
    assert chinese["found"].startswith("进程 0 在第 0 步等待进程 1（`recv 0 from 1`）；进程 1 ")
    assert chinese["expected"] == "每个进程都能运行到结束"
