"""The engine describes a fault as data; Python turns it into English and Chinese."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from unisono.comm.engine_messages import FAULTS, TEMPLATES, group_note, sentence_of
from unisono.comm.faults import EXCEPTIONS
from unisono.message import translated

ENGINE = Path(__file__).parents[2] / "engine"
CHAIN = (
    b"timed_out_in_call|rank=@0|peer=@2|seconds=5.0|step=3|call=all_reduce(8 float32)\n"
    b"waits|rank=@2|peer=@1|step=3\nnot_entered|rank=@1|made=4|expected=5"
)


def test_a_timeout_names_the_rank_the_time_and_the_chain_of_ranks():
    message = sentence_of(CHAIN)
    assert message == (
        "rank 0 timed out after 5.0 s (the timeout of the call) waiting for rank 2 at step 3 of "
        "all_reduce(8 float32); "
        "rank 2 is waiting for rank 1 at step 3; rank 1 has not entered this call (it has made 4 of 5 calls)"
    )
    assert message.id == "engine.timed_out_in_call"
    assert message.parameters["step"] == 3
    assert translated(message, "zh") == (
        "rank 0 在 all_reduce(8 float32) 的第 3 步等待 rank 2，5.0 秒后超时（该调用的时限）；"
        "rank 2 正在第 3 步等待 rank 1；rank 1 尚未进入此次调用（已完成 5 次调用中的 4 次）"
    )
    assert translated(pickle.loads(pickle.dumps(message)), "zh") == translated(message, "zh")


@pytest.mark.parametrize(
    ("value", "english"),
    [
        ("@3", "rank 3"),
        ("@3//77", "rank 3 (process 77)"),
        ("@3/1", "rank 3 of the job (rank 1 of its group)"),
        ("@3/1/77", "rank 3 of the job (rank 1 of its group, process 77)"),
    ],
)
def test_ranks_are_named_by_their_number_in_the_job_and_in_the_group(value, english):
    assert sentence_of(f"interrupted|rank={value}".encode()) == f"{english} was interrupted"


def test_a_message_about_a_part_of_a_job_lists_the_group():
    assert sentence_of(b"interrupted|rank=@3/1\ngroup|ranks=2, 3").endswith("was interrupted. The group is {2, 3}")
    assert group_note(b"large_group|ranks=2, 3|count=20") == ". The group is {2, 3, ... (20 ranks)}"
    assert group_note(b"") == ""


def test_reserved_characters_of_a_text_are_preserved():
    message = sentence_of(b"aborted|rank=@0|reason=%40x%7Cy=%250%0Az @")
    assert message == "rank 0 aborted: @x|y=%0\nz @"


@pytest.mark.parametrize("length", range(len(CHAIN)))
def test_a_description_truncated_at_any_byte_still_gives_a_sentence(length):
    assert translated(sentence_of(CHAIN[:length]), "zh") is not None


def test_a_description_truncated_inside_a_character_still_gives_a_sentence():
    assert sentence_of("aborted|rank=@0|reason=错".encode()[:-1]) == "rank 0 aborted: "


def test_every_id_of_the_engine_has_a_template_and_every_template_is_used():
    code = "".join(path.read_text() for folder in ("src", "bindings") for path in (ENGINE / folder).rglob("*.[ch]pp"))
    for template in TEMPLATES.values():
        assert f'"{template.id.removeprefix("engine.")}"' in code, template.id
    messages = r"(?:FaultMessage(?: \w+)?|detail|MemoryRefused)[({]([^;]*?)[)},]"
    for arguments in re.findall(messages, code):
        for name in re.findall(r'"([a-z_]+)"', arguments):
            assert f"engine.{name}" in TEMPLATES, name


def test_a_fault_is_listed_under_the_exception_that_the_engine_reports_with_it():
    names = re.search(
        r"enum class Fault : std::uint32_t \{([^}]*)\}", (ENGINE / "include/unisono/memory.hpp").read_text()
    )
    kinds = dict(zip(re.findall(r"\w+", names[1]), EXCEPTIONS, strict=True))
    functions = [
        function
        for folder in ("src", "bindings")
        for path in (ENGINE / folder).rglob("*.cpp")
        for function in re.split(r"\n}\n", path.read_text())
    ]
    checked = set()
    for exception, templates in FAULTS.items():
        for template in templates:
            name = template.id.removeprefix("engine.")
            for function in functions:
                reported = {kinds[kind] for kind in re.findall(r"Fault::(\w+)", function)} - {kinds["none"]}
                if f'"{name}"' in function and reported:
                    assert reported == {exception}, name
                    checked.add(name)
    assert len(checked) >= 12  # the other faults are created in one function and reported in another
