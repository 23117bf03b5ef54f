"""All private parts of torch that the backend uses are listed, and checked before use."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

from unisono.errors import UsageError  # noqa: E402
from unisono.torch_backend import private  # noqa: E402

FOLDER = Path(private.__file__).parent
TREES = {path.name: ast.parse(path.read_text()) for path in sorted(FOLDER.glob("*.py"))}
LISTED = {name.rpartition(".")[2] for name in (*private.NAMES, *private.OPTIONAL)}


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def names_that_we_define():
    """Return the private names that Unisono defines: functions, classes and attributes."""
    found = {
        "_dispatcher",
        "_engine",
        "_getframe",
        "_replace",
    }  # sys._getframe and that of a NamedTuple belong to Python
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.attr if isinstance(node, ast.Attribute) else node.id)
    return found


def imports_of_private_parts(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for alias in node.names if alias.name.startswith("torch") for part in alias.name.split(".")]
        else:
            continue
        yield from filter(is_private, names)


@pytest.mark.parametrize("file", [name for name in TREES if name != "private.py"])
def test_no_other_module_imports_private_parts_of_torch(file):
    assert list(imports_of_private_parts(TREES[file])) == []


@pytest.mark.parametrize("file", list(TREES))
def test_private_attributes_of_torch_objects_are_listed(file):
    used = {node.attr for node in ast.walk(TREES[file]) if isinstance(node, ast.Attribute) and is_private(node.attr)}
    assert used - names_that_we_define() - LISTED == set()


def test_every_name_on_the_list_is_used():
    text = "".join(ast.unparse(tree) for tree in TREES.values())
    for name in (*LISTED, *private.VARIABLES):
        assert text.count(name) > 1, name


def test_every_method_that_torch_looks_up_is_defined():
    from unisono.torch_backend import UnisonoProcessGroup

    base = vars(dist.ProcessGroup)
    ours = {
        name for kind in UnisonoProcessGroup.__mro__ if kind.__module__.startswith("unisono") for name in vars(kind)
        if is_private(name) and name in base
    }  # fmt: skip
    assert ours - {"_get_backend_name"} == set(private.METHODS)


def test_the_installed_torch_has_all_listed_names():
    assert private.missing(private.NAMES) == []


def test_the_error_lists_all_missing_names_and_the_tested_versions():
    names = {"torch._C._nothing": "one purpose", "torch.no.such_module": "another"}
    with pytest.raises(UsageError) as caught:
        private.check(names, (), ("_ask_nothing",), "9.9.9")
    said = str(caught.value)
    for part in (
        "torch 9.9.9 lacks", "torch._C._nothing (one purpose)", "torch.no.such_module (another)",
        "torch.distributed.ProcessGroup._ask_nothing", "2.11 and 2.13",
    ):  # fmt: skip
        assert part in said


def test_a_renamed_variable_of_torch_is_an_error():
    with pytest.raises(UsageError, match="the variable no_such_variable of _new_process_group_helper"):
        private.check({}, ("no_such_variable",), (), "2.13.0")


def test_an_untested_version_causes_a_warning():
    with pytest.warns(UserWarning, match=r"tested with torch 2\.11 and 2\.13, and this is torch 2\.99\.0"):
        private.check(private.NAMES, private.VARIABLES, private.METHODS, "2.99.0")


def test_a_tested_version_causes_no_warning(recwarn):
    private.check(private.NAMES, private.VARIABLES, private.METHODS, "2.13.0+cpu")
    assert not recwarn.list
