"""The docstrings of unisono.torch_backend describe every parameter, so that ``help()`` is complete."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch.distributed as dist

import docstrings
from unisono import torch_backend

ENTRIES = {name: (value, text) for name, value, text in docstrings.entries(torch_backend, torch_backend.__all__)}


def is_method_of_torch(name: str) -> bool:
    """Return whether torch defines a method of the group; its parameters are described in torch's documentation."""
    kind, _, method = name.partition(".")
    return kind == "UnisonoProcessGroup" and hasattr(dist.ProcessGroup, method)


@pytest.mark.parametrize("name", ENTRIES)
def test_the_docstring_describes_every_parameter(name):
    value, text = ENTRIES[name]
    assert text, f"{name} has no docstring"
    if not is_method_of_torch(name):
        assert docstrings.undescribed(value, text) == []


def test_methods_and_options_are_covered():
    expected = {"Options", "UnisonoProcessGroup", "UnisonoProcessGroup.from_store", "codec_hook"}
    assert expected <= {name for name in ENTRIES if not is_method_of_torch(name)}
    assert is_method_of_torch("UnisonoProcessGroup.allreduce")
