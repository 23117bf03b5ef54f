"""The public API, as a newcomer explores it with dir(), help() and repr()."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import unisono
from unisono import errors


def in_new_process(code: str) -> str:
    """Return the output of a program in a process that has imported nothing yet."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_dir_lists_the_api_and_nothing_else():
    listed = set(dir(unisono))
    assert {"Communicator", "Options", "RankIdentity", "Work", "connect", "draw", "play", "prove", "spawn"} <= listed
    assert listed.isdisjoint({"Any", "TYPE_CHECKING", "import_module"})
    assert not [name for name in listed if name.startswith("_") and not name.startswith("__")]


def test_every_listed_name_exists():
    pytest.importorskip("torch")
    for name in dir(unisono):
        assert getattr(unisono, name) is not None


def test_every_error_is_a_name_of_unisono():
    for name, value in vars(errors).items():
        if inspect.isclass(value) and issubclass(value, unisono.UnisonoError):
            assert getattr(unisono, name) is value
            assert name in unisono.__all__


@pytest.mark.parametrize(
    "name", ["codecs.ErrorFeedback", "collectives.all_reduce", "tracing.read_run", "errors.PeerLost"]
)
def test_packages_need_no_separate_import(name):
    assert in_new_process(f"import unisono; print(unisono.{name} is not None)") == "True\n"


def test_the_parallel_package_needs_no_separate_import():
    pytest.importorskip("torch")
    assert in_new_process("import unisono; print(unisono.parallel.DataParallel.__name__)") == "DataParallel\n"


def test_a_star_import_does_not_need_torch():
    code = "import sys; sys.modules['torch'] = None\nfrom unisono import *\nprint(PeerLost.__name__)"
    assert in_new_process(code) == "PeerLost\n"


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        unisono.nothing  # noqa: B018


def test_find_accepts_a_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from unisono import algorithm\nfrom unisono.algorithms.ring import ring\n"
        "from unisono.collectives import all_reduce\n"
        "@algorithm(all_reduce, chunks=ring.chunks)\ndef mine(rank, size):\n    yield from ring(rank, size)\n"
    )
    assert str(unisono.find(f"{path}:mine")) == "all_reduce/mine"
    assert str(unisono.find("ring")) == "all_reduce/ring"
