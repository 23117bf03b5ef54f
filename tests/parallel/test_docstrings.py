"""The docstrings of unisono.parallel describe every parameter, so that ``help()`` is complete."""

from __future__ import annotations

import inspect
import re

import pytest

pytest.importorskip("torch")

from unisono import parallel

PASSED_ON = {"args", "kwargs"}  # arguments of torch's method of the same name, or of the wrapped module


def public_functions():
    """Yield the name, the function or class, and its docstring for all public names and methods."""
    for name in parallel.__all__:
        value = getattr(parallel, name)
        yield name, value, vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        if inspect.isclass(value):
            for member, method in methods_of(value):
                yield f"{name}.{member}", method, inspect.getdoc(method)


def methods_of(kind):
    """Yield the public methods that Unisono defines in a class or its bases."""
    for base in kind.__mro__:
        if base.__module__.startswith("unisono."):
            for name in vars(base):
                method = inspect.getattr_static(kind, name)
                if not name.startswith("_") and (inspect.isroutine(method) or isinstance(method, classmethod)):
                    yield name, getattr(kind, name)


def undescribed(function, docstring):
    """Return the parameters that a docstring does not mention as ````name````."""
    described = set(re.findall(r"``(\w+)``", docstring or ""))
    return [
        name for name in inspect.signature(function).parameters
        if name not in described | PASSED_ON | {"self"} and not name.startswith("_")
    ]  # fmt: skip


FUNCTIONS = {name: (value, docstring) for name, value, docstring in public_functions()}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_docstring_describes_every_parameter(name):
    function, docstring = FUNCTIONS[name]
    assert docstring, f"{name} has no docstring"
    assert undescribed(function, docstring) == []


def test_methods_and_bases_are_covered():
    assert {"Zero.step", "ColumnLinear.from_linear", "Group.all_reduce", "MixtureOfExperts.of", "Log.table"} <= set(
        FUNCTIONS
    )


def test_an_undescribed_parameter_is_found():
    def function(first, second, *args, **options):
        """Use ``first``."""

    assert undescribed(function, function.__doc__) == ["second", "options"]
