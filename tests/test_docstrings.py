"""The docstrings of the public API describe every parameter, so that ``help()`` is complete."""

from __future__ import annotations

import importlib

import pytest

import api_pages
import docstrings
import unisono
from unisono.algorithms.declaration import Algorithm
from unisono.algorithms.user_files import WrittenSchedule
from unisono.comm.explanation import Explanation
from unisono.comm.tracing import Trace
from unisono.drawing.drawing import Drawing
from unisono.player.play import Playback

COLLECTIVES = (
    "all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "gather", "reduce", "reduce_scatter", "scatter",
)  # fmt: skip
# Classes of results, which have no name in unisono.
RESULTS = (Algorithm, Drawing, Explanation, Playback, Trace, WrittenSchedule)


def public_entries():
    """Yield the entries of the API; those of packages that need torch are checked in the folders of their tests."""
    for page in api_pages.PAGES:
        if page.module not in ("unisono.parallel", "unisono.torch_backend"):
            module = importlib.import_module(page.module)
            for name, value, text in docstrings.entries(module, page.only or api_pages.public_names(module)):
                yield f"{page.module}.{name}", value, text
    for kind in RESULTS:
        yield from docstrings.entries_of_class(kind.__name__, kind)


ENTRIES = {name: (value, text) for name, value, text in public_entries()}


@pytest.mark.parametrize("name", ENTRIES)
def test_the_docstring_describes_every_parameter(name):
    value, text = ENTRIES[name]
    assert text, f"{name} has no docstring"
    assert docstrings.undescribed(value, text) == []


def test_functions_constructors_and_inherited_methods_are_covered():
    expected = {
        "unisono.connect", "unisono.spawn", "unisono.RankIdentity", "unisono.PeerLost", "unisono.PeerLost.text",
        "unisono.Work.wait", "unisono.Communicator.split", "unisono.codecs.Codec.kept", "unisono.collectives.find",
        "unisono.tracing.summary", "Algorithm.schedule", "Drawing.save",
    }  # fmt: skip
    assert expected | {f"unisono.Communicator.{name}" for name in COLLECTIVES} <= set(ENTRIES)


def test_every_name_of_unisono_is_a_module_or_covered():
    covered = {name.split(".")[1] for name in ENTRIES if name.startswith("unisono.")}
    assert set(unisono.__all__) <= covered


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_collective_describes_the_common_keywords_and_the_errors(collective):
    text = getattr(unisono.Communicator, collective).__doc__
    for part in ("``algorithm``", "``async_op``", "``timeout``", "UsageError", "CollectiveTimeout", "PeerLost"):
        assert part in text
    assert ("``codec``" in text) == (collective != "barrier")


def test_help_of_a_connected_communicator_is_that_of_the_class():
    with unisono.connect(identity=unisono.RankIdentity(0, 1, 0, 1, "alone", "test of docstrings")) as comm:
        for collective in COLLECTIVES:
            assert getattr(comm, collective).__doc__ == getattr(unisono.Communicator, collective).__doc__


@pytest.mark.parametrize("name", ["connect", "spawn", "prove", "play", "draw", "find", "algorithm", "read_run"])
def test_the_main_functions_have_an_example(name):
    assert "::\n\n" in getattr(unisono, name).__doc__


class Base:
    """A class with ``first``."""

    def __init__(self, first, second):
        """Take ``second``."""

    def method(self, first, *rest, key=None, **options):
        """Use ``first``."""

    @classmethod
    def make(cls, first):
        """Use nothing."""


class Derived(Base):
    """A class that inherits all."""


Base.__module__ = Derived.__module__ = "unisono.example"
Base.__init__.__module__ = "unisono.example"


def test_an_undescribed_parameter_is_found():
    found = {
        name: docstrings.undescribed(value, text) for name, value, text in docstrings.entries_of_class("It", Derived)
    }
    assert found == {"It": ["first"], "It.method": ["rest", "key", "options"], "It.make": ["first"]}


def test_a_parameter_that_is_passed_on_needs_no_description():
    assert docstrings.undescribed(Base.method, "Use ``first``.", frozenset({"rest", "options"})) == ["key"]
