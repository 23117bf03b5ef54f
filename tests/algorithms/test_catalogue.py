from __future__ import annotations

import inspect
import re

import pytest

from unisono import find
from unisono.algorithms import BUILT_IN, algorithms_of
from unisono.algorithms.chinese import IDEAS
from unisono.collectives import COLLECTIVES, all_gather
from unisono.errors import UsageError

# The algorithms that each collective must have.
REQUIRED = {
    "broadcast": {"naive", "tree", "chain", "scatter_all_gather"},
    "scatter": {"naive", "tree"},
    "gather": {"naive", "tree"},
    "reduce": {"naive", "tree", "chain", "reduce_scatter_gather"},
    "all_gather": {"naive", "ring", "recursive_doubling", "bruck", "neighbour_exchange"},
    "reduce_scatter": {"naive", "ring", "recursive_halving", "pat"},
    "all_reduce": {
        "naive", "ring", "bidirectional_ring", "recursive_doubling", "butterfly", "tree", "double_tree",
        "rabenseifner", "hierarchical", "torus", "swing",
    },
    "all_to_all": {"naive", "pairwise", "bruck", "hierarchical"},
    "barrier": {"dissemination", "tree"},
}  # fmt: skip


@pytest.mark.parametrize("collective", COLLECTIVES, ids=str)
def test_every_required_algorithm_exists(collective):
    assert {algorithm.name for algorithm in algorithms_of(collective)} >= REQUIRED[collective.name]


def test_names_are_unique_within_a_collective():
    names = [str(algorithm) for algorithm in BUILT_IN]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("algorithm", BUILT_IN, ids=str)
def test_every_algorithm_is_short_and_its_docstring_states_idea_and_source(algorithm):
    body = [line for line in algorithm.source.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert len(body) <= 40
    idea = algorithm.idea
    assert re.search(r"\((.*\d{4}|MPI's linear algorithm|textbook)\.?\)\.?$", idea), idea
    assert 30 < len(idea) < 260


@pytest.mark.parametrize("algorithm", BUILT_IN, ids=str)
def test_every_algorithm_serves_every_size(algorithm):
    assert algorithm.serves is None


@pytest.mark.parametrize("algorithm", BUILT_IN, ids=str)
def test_programs_describe_only_the_order_of_communication(algorithm):
    """A program uses integers, ranges and other programs: no arrays, dtypes, sockets, threads or environment."""
    source = inspect.getsource(inspect.getmodule(algorithm.function))
    imported = set(re.findall(r"^(?:from|import) (\S+)", source, re.MULTILINE))
    allowed = {"collections.abc", "functools", "itertools", "math"}
    assert all(name.startswith("unisono.") or name in allowed for name in imported), imported


def test_a_bare_name_prefers_all_reduce():
    assert str(find("ring")) == "all_reduce/ring"
    assert str(find("pairwise")) == "all_to_all/pairwise"
    assert str(find("all_gather/ring")) == "all_gather/ring"
    assert str(find("ring_all_gather")) == "all_gather/ring"
    assert str(find("ring", all_gather)) == "all_gather/ring"


def test_an_ambiguous_name_is_rejected_with_all_candidates():
    with pytest.raises(UsageError, match="all_gather/bruck, all_to_all/bruck"):
        find("bruck")


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("rnig", "all_reduce/ring"),
        ("rabenseiffner", "all_reduce/rabenseifner"),
        ("all_gather/brook", "bruck"),
        ("allgather/ring", "all_gather"),
    ],
)
def test_a_wrong_name_gets_a_suggestion(name, suggestion):
    with pytest.raises(UsageError, match=f"did you mean '{suggestion}'"):
        find(name)


@pytest.mark.parametrize("algorithm", BUILT_IN, ids=str)
def test_every_idea_has_a_chinese_text(algorithm):
    assert IDEAS[str(algorithm)].endswith("。")
    assert algorithm.idea_in("zh") == IDEAS[str(algorithm)]
    assert algorithm.idea_in("en") == algorithm.idea


def test_every_chinese_idea_belongs_to_an_algorithm():
    assert set(IDEAS) == {str(algorithm) for algorithm in BUILT_IN}
