"""The templates of all packages are consistent, and every error and warning is made from one."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from pathlib import Path
from string import Formatter

import pytest

import errors_page
import unisono
from unisono import errors
from unisono.errors import UnisonoError
from unisono.message import Template

SOURCE = Path(unisono.__file__).parent
# `warn` of the standard library counts too: people read warnings.
ERRORS = {"warn"} | {
    name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, UnisonoError)
}
TEXTS = ("what", "message", "expected", "found", "hint")  # arguments of errors that people read
CHINESE = re.compile("[\u4e00-\u9fff\uff00-\uffef]")  # characters and full-width punctuation


def templates() -> list[tuple[str, str, Template]]:
    """Return module, constant and value of every template that a module defines."""
    return [
        (module, constant, template)
        for module in errors_page.template_modules()
        for constant, value in vars(importlib.import_module(module)).items()
        for template in errors_page.templates_in(value)
    ]


TEMPLATES = templates()


def fields(text: str) -> set[str]:
    return {field.partition(".")[0] for _, field, _, _ in Formatter().parse(text) if field is not None}


def test_ids_are_unique():
    counts = Counter({(template.id, template) for _, _, template in TEMPLATES})
    ids = Counter(identifier for identifier, _ in counts)
    assert [identifier for identifier, count in ids.items() if count > 1] == []
    assert len(TEMPLATES) > 150


@pytest.mark.parametrize(("module", "constant", "template"), TEMPLATES, ids=[t.id for _, _, t in TEMPLATES])
def test_a_template_has_the_prefix_of_its_package_and_the_same_parameters_in_both_languages(
    module, constant, template
):
    package = module.split(".")[1]
    prefixes = "comm|engine" if package == "comm" else package  # comm words the faults that the engine reports
    assert re.fullmatch(rf"({prefixes})\.[a-z0-9_]+", template.id)
    assert fields(template.english) == fields(template.chinese)
    words = re.sub(r"\{[^}]*\}|\branks?\b", "", template.english)  # "rank" is the same word in Chinese
    if re.search(r"[a-z]{2}", words):
        assert CHINESE.search(template.chinese), "the Chinese template has no Chinese"


@pytest.mark.parametrize("template", [pytest.param(template, id=template.id) for _, _, template in TEMPLATES])
def test_a_rank_is_called_rank_in_chinese_and_only_a_process_is_called_a_process(template):
    if re.search(r"\brank \{|(?<!\{)\branks\b", template.english):
        assert "rank" in re.sub(r"\{[^}]*\}", "", template.chinese)
    if "进程" in template.chinese:
        assert re.search(r"process|parent|group", re.sub(r"\{[^}]*\}", "", template.english))


def test_no_template_is_unused():
    sources = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    unused = []
    for module in sorted({module for module, _, _ in TEMPLATES}):
        parent, _, name = module.rpartition(".")
        imports = re.compile(
            rf"from {parent} import [^\n]*\b{name}\b|from {parent} import \([^)]*\b{name}\b|{module} import"
        )
        own = (SOURCE / Path(*module.split(".")[1:])).with_suffix(".py").read_text(encoding="utf-8")
        importing = [own, *(text for text in sources if imports.search(text))]
        for constant in (constant for where, constant, _ in TEMPLATES if where == module):
            uses = sum(len(re.findall(rf"\b{constant}\b", text)) for text in importing)
            if uses < 2:  # the definition is one
                unused.append(f"{module}.{constant}")
    assert unused == []


def test_no_package_has_a_sentence_twice():
    constants: dict[tuple[str, str, str], set[str]] = {}
    for module, constant, template in TEMPLATES:
        key = (module.split(".")[1], template.english, template.chinese)
        constants.setdefault(key, set()).add(f"{template.id} ({module}.{constant})")
    same = [names for names in constants.values() if len({name.split(" ")[0] for name in names}) > 1]
    assert same == []


def is_plain(node: ast.expr) -> bool:
    """Return whether an expression is, or may be, text that is written in the source."""
    match node:
        case ast.Constant(value=str(text)):
            return bool(text)
        case ast.JoinedStr():
            return True
        case ast.BinOp(left=left, right=right):
            return is_plain(left) or is_plain(right)
        case ast.IfExp(body=body, orelse=orelse):
            return is_plain(body) or is_plain(orelse)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()))):  # "...".format(...), ", ".join(...)
            return True
    return False


def plain_errors(source: str) -> list[int]:
    """Return the lines on which an error is made with plain text."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            arguments = [*node.args[:1], *(word.value for word in node.keywords if word.arg in TEXTS)]
            if name in ERRORS and any(map(is_plain, arguments)):
                found.append(node.lineno)
    return found


def packages_with_plain_errors() -> dict[str, list[str]]:
    """Return the places of plain errors by package."""
    found: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        relative = path.relative_to(SOURCE)
        package = relative.parts[0].removesuffix(".py")
        lines = plain_errors(path.read_text(encoding="utf-8"))
        if lines:
            found.setdefault(package, []).extend(f"{relative}:{line}" for line in lines)
    return found


def test_plain_errors_are_recognized():
    assert plain_errors('raise UsageError("a text")') == [1]
    assert plain_errors('raise errors.PeerLost(f"rank {rank}", rank=rank)') == [1]
    assert plain_errors('raise GoalError(WRONG(), hint="a" if full else "b")') == [1]
    assert plain_errors('raise UsageError("a " + text)') == [1]
    assert plain_errors('warnings.warn(f"{name} is ignored", stacklevel=2)') == [1]
    assert plain_errors("raise UsageError(NO_RANK(rank=7), hint=HINT())") == []
    assert plain_errors('raise ValueError("a text")') == []


def test_every_error_and_warning_is_made_from_a_template():
    assert packages_with_plain_errors() == {}, "make these errors from templates (see src/unisono/message.py)"


def test_lists_in_messages_are_separated_as_each_language_does():
    """``listed`` does that. The parameters of a function, which are code, have commas in both languages."""
    joined = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in sorted(SOURCE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"\w=\", \"\.join\(", line) and path.name != "declaration.py"
    ]
    assert joined == []
