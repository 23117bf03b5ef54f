"""docs/errors.md shows every exception and every message, and its advice holds on real ranks."""

from __future__ import annotations

import ast
import importlib
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import errors_page
import unisono
from unisono import errors
from unisono.comm.engine_messages import FAULTS
from unisono.errors import CommError, PeerLost, UnisonoError, UsageError
from unisono.launch.spawn import outcomes_of
from unisono.message import Template


def test_every_exception_has_a_row_that_says_whether_the_program_can_go_on():
    rows = errors_page.PAGE.read_text(encoding="utf-8").split("can the program go on? |")[1].split("\n\n")[0]
    classes = [
        value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, UnisonoError)
    ]
    for kind in classes:
        if kind is UnisonoError:
            continue
        known = {f"`{base.__name__}`" for base in kind.__mro__ if issubclass(base, UnisonoError)} - {"`UnisonoError`"}
        assert any(name in rows for name in known), kind


def test_every_template_is_on_the_page_in_both_languages():
    page = errors_page.messages()
    templates = [template for found in errors_page.by_package().values() for _, template in found]
    assert {"engine.timed_out", "cache_files.ignored", "tracing.no_trace_of"} <= {each.id for each in templates}
    for template in templates:
        assert (
            f"| `{template.id}` | {errors_page.cell(template.english)} | {errors_page.cell(template.chinese)} |"
            in page
        )


def test_an_id_belongs_to_one_template():
    ids = [template.id for found in errors_page.by_package().values() for template in {t for _, t in found}]
    assert len(ids) == len(set(ids)), sorted(name for name in set(ids) if ids.count(name) > 1)


def test_the_exceptions_of_a_message_are_read_from_the_source(tmp_path, monkeypatch):
    (tmp_path / "module.py").write_text(
        "raise errors.PeerLost(messages.LOST(rank=1), rank=1)\nraise ValueError(OTHER())\n"
    )
    monkeypatch.setattr(errors_page, "SOURCE", tmp_path)
    monkeypatch.setattr(errors_page, "FAULTS", {CommError: (Template("engine.full", "full", "已满"),)})
    assert errors_page.raised_as() == {"LOST": {"PeerLost"}, "engine.full": {"CommError"}}


def raised_templates(path: Path) -> list[Template]:
    """Return the templates whose messages are arguments of an error or a warning in a module."""
    relative = path.relative_to(Path(unisono.__file__).parent).with_suffix("")
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    texts = [
        argument.func
        for call in calls
        if errors_page.name_of(call.func) in {"warn", *vars(errors)}
        for argument in (*call.args, *(word.value for word in call.keywords))
        if isinstance(argument, ast.Call) and errors_page.name_of(argument.func).isupper()
    ]
    names = vars(importlib.import_module(".".join(("unisono", *relative.parts)))) if texts else {}
    return [eval(ast.unparse(text), dict(names)) for text in texts]


def test_every_message_that_is_raised_is_on_the_page():
    page = errors_page.PAGE.read_text(encoding="utf-8")
    package = Path(unisono.__file__).parent
    raised = [template for path in sorted(package.rglob("*.py")) for template in raised_templates(path)]
    raised += errors_page.templates_in(FAULTS)
    assert len(raised) > 300
    assert [template.id for template in raised if f"| `{template.id}` |" not in page] == []


def lose_a_rank(comm):
    survivors = comm.split(0 if comm.rank < 2 else None)
    if comm.rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(PeerLost) as first:
        comm.all_reduce(np.ones(4))
    with pytest.raises(CommError):
        comm.all_reduce(np.ones(4))  # the communicator is broken
    x = np.ones(4)
    survivors.all_reduce(x)  # one without the lost rank is not
    return first.value.rank, x.tolist()


def test_after_the_loss_of_a_rank_only_communicators_without_it_work():
    outcomes = outcomes_of(lose_a_rank, 3, timeout=60.0)
    assert [outcome.value for outcome in outcomes[:2]] == [(2, [2.0] * 4)] * 2


def misuse(comm):
    with pytest.raises(UsageError):
        comm.all_reduce(np.ones(4), op="no such operation")
    x = np.ones(4)
    comm.all_reduce(x)
    return x.tolist()


def test_a_usage_error_leaves_the_communicator_as_it_was():
    assert [outcome.value for outcome in outcomes_of(misuse, 2, timeout=60.0)] == [[2.0] * 4] * 2
