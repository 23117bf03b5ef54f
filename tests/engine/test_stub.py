"""The stub ``_engine.pyi`` agrees with the engine: the same names, parameters and plain types.

mypy's stubtest does not recognise the functions of nanobind, so this compares the stub with nanobind's signatures.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import unisono
from unisono import _engine

STUB = ast.parse((Path(unisono.__file__).parent / "_engine.pyi").read_text())
PLAIN = {"int", "str", "bool", "float", "bytes", "None", "list[str]"}


def functions_of(body: list[ast.stmt]) -> dict[str, ast.FunctionDef]:
    return {item.name: item for item in body if isinstance(item, ast.FunctionDef)}


def is_typed_dict(item: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "TypedDict" for base in item.bases)


CLASSES = {item.name: item for item in STUB.body if isinstance(item, ast.ClassDef) and not is_typed_dict(item)}
METHODS = [(name, method) for name, item in CLASSES.items() for method in functions_of(item.body)]


def runtime_signature(function: Any) -> ast.FunctionDef:
    text = function.__nb_signature__[0][0]
    text = re.sub(r"ndarray\[[^]]*]", "ndarray", text)
    (parsed,) = ast.parse(re.sub(r"^def \(", "def getter(", text) + ": ...").body
    assert isinstance(parsed, ast.FunctionDef)
    return parsed


def compare(stub: ast.FunctionDef, runtime: ast.FunctionDef) -> None:
    in_stub, in_engine = stub.args.args, runtime.args.args
    assert [argument.arg for argument in in_stub] == [argument.arg for argument in in_engine]
    assert not stub.args.defaults, "defaults live in Python"
    assert not runtime.args.defaults, "defaults live in Python"
    pairs = [(one.annotation, other.annotation) for one, other in zip(in_stub, in_engine, strict=True)]
    for one, other in [*pairs, (stub.returns, runtime.returns)]:
        if one is not None and other is not None and ast.unparse(other) in PLAIN:
            assert ast.unparse(one) == ast.unparse(other)


def test_the_stub_has_the_names_of_the_engine():
    names = {name for name in vars(_engine) if not name.startswith("__")}
    assert {*functions_of(STUB.body), *CLASSES} == names


@pytest.mark.parametrize("name", functions_of(STUB.body))
def test_a_function_has_the_same_parameters(name):
    compare(functions_of(STUB.body)[name], runtime_signature(getattr(_engine, name)))


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_the_same_members(name):
    body = CLASSES[name].body
    attributes = {
        item.target.id for item in body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    found = {member for member in vars(getattr(_engine, name)) if not member.startswith("__")}
    assert {*functions_of(body), *attributes} - {"__init__"} == found


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_a_method_has_the_same_parameters(name, method):
    found = vars(getattr(_engine, name))[method]
    compare(
        functions_of(CLASSES[name].body)[method],
        runtime_signature(found.fget if isinstance(found, property) else getattr(getattr(_engine, name), method)),
    )
