"""Packages that build on a communicator use only its documented interface."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import unisono
from unisono.comm.communicator import Communicator

SOURCES = Path(unisono.__file__).parent
COMMUNICATORS = {"comm", "communicator"}  # the names of variables and attributes that hold a communicator
INTERNAL = {"dispatcher"}
# The modules of comm that other packages import: classes of the interface, and facts about arrays, codecs and links.
MODULES = {".arrays", ".call_request", ".codec_agreement", ".communicator", ".links", ".machine", ".work"}
CONNECTS = {"store_network.py", "store_rendezvous.py", "options.py"}  # the files that may import bootstrap


def files():
    return sorted(path for package in ("torch_backend", "parallel") for path in (SOURCES / package).rglob("*.py"))


def last_name(node):
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_internal_attribute(node, path):
    """Return whether an attribute is internal to a communicator, a work or a process group."""
    public = {name for name in dir(Communicator) if not name.startswith("_")} | {"rank", "size"}
    if last_name(node.value) in COMMUNICATORS:
        return node.attr not in public - INTERNAL
    if node.attr == "_dispatcher":
        return "torch_backend" not in path.parts
    return node.attr in {"endpoint", "_endpoint", "_completion", "_link", "_parts"}


def is_internal_import(node, path):
    """Return whether an import bypasses the interface."""
    if node.module == "unisono":
        return any(each.name == "_engine" for each in node.names)
    if node.module.startswith("unisono.bootstrap"):
        return path.name not in CONNECTS
    return node.module.startswith("unisono.comm.") and node.module.removeprefix("unisono.comm") not in MODULES


def offences_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if (isinstance(node, ast.Attribute) and is_internal_attribute(node, path)) or (
            isinstance(node, ast.ImportFrom) and node.module and is_internal_import(node, path)
        ):
            yield f"{path.name}:{node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", files(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_internal_attribute_of_a_communicator_is_used(path):
    assert list(offences_of(path)) == []


def test_the_check_finds_what_it_forbids(tmp_path):
    path = tmp_path / "parallel.py"
    path.write_text(
        "from unisono import _engine\n"
        "from unisono.comm.dispatch import Dispatcher\n"
        "from unisono.bootstrap.membership import Link\n"
        "self.comm.dispatcher.plan(x)\n"
        "comm._link.close()\n"
        "work._completion\n"
        "group._dispatcher.comm.size\n"
        "group.communicator.size\n"
    )
    lines = {int(text.split(":")[1]) for text in offences_of(path)}
    assert lines == {1, 2, 3, 4, 5, 6, 7}


def test_the_interface_is_documented():
    for name in (
        "plan", "run", "remember", "repeat", "broken", "token", "timeout", "check_process", "name_ranks",
        "share_programs", "courier_for",
    ):  # fmt: skip
        assert f"``{name}``" in inspect.getdoc(Communicator)
        assert inspect.getdoc(getattr(Communicator, name))
