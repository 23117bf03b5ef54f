"""The docstrings of unisono.parallel describe every parameter, so that ``help()`` is complete."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import docstrings
from unisono import parallel

# Arguments of torch's method of the same name, or of the wrapped module.
PASSED_ON = frozenset({"args", "kwargs"})
ENTRIES = {name: (value, text) for name, value, text in docstrings.entries(parallel, parallel.__all__)}


@pytest.mark.parametrize("name", ENTRIES)
def test_the_docstring_describes_every_parameter(name):
    value, text = ENTRIES[name]
    assert text, f"{name} has no docstring"
    assert docstrings.undescribed(value, text, PASSED_ON) == []


def test_methods_and_bases_are_covered():
    assert {"Zero.step", "ColumnLinear.from_linear", "Group.all_reduce", "MixtureOfExperts.of", "Log.table"} <= set(
        ENTRIES
    )
