"""Fill the generated parts of docs/errors.md: the tree of exceptions, and every message in English and Chinese."""

from __future__ import annotations

import ast
import importlib
from collections import defaultdict
from pathlib import Path

import page_parts
import unisono
from unisono import errors
from unisono.comm.engine_messages import FAULTS
from unisono.message import Template

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
PAGE = ROOT / "docs" / "errors.md"


def filled(page: str) -> str:
    """Return the page with current generated parts."""
    parts = {"tree": tree, "messages": messages}
    return page_parts.fill(page, lambda name: parts[name]())


def messages() -> str:
    """Return the tables of all messages, one for each package."""
    raised = raised_as()
    parts = []
    for package, templates in sorted(by_package().items()):
        parts += [f"### {package}", "", "| id | message | 中文 | raised as |", "|---|---|---|---|"]
        parts += [row(name, template, raised) for name, template in sorted(templates, key=lambda pair: pair[1].id)]
        parts.append("")
    return "\n".join(parts).strip()


def tree() -> str:
    """Return the tree of exceptions in the docstring of errors.py."""
    block = (errors.__doc__ or "").split("::\n\n")[1].split("\n\n")[0]
    return "\n".join(["```", *(line[4:] for line in block.splitlines()), "```"])


def by_package() -> dict[str, list[tuple[str, Template]]]:
    """Return every template with the name of its constant, by the package that defines it."""
    found: dict[str, dict[str, tuple[str, Template]]] = defaultdict(dict)  # a module may have the template of another
    for module in template_modules():
        for name, value in vars(importlib.import_module(module)).items():
            for template in templates_in(value):
                found[template.id.split(".")[0]].setdefault(template.id, (name, template))
    return {package: list(templates.values()) for package, templates in found.items()}


def template_modules() -> list[str]:
    """Return the names of all modules that define templates."""
    package = Path(unisono.__file__).parent
    return [
        ".".join(("unisono", *path.relative_to(package).with_suffix("").parts))
        for path in sorted(package.rglob("*.py"))
        if path.name not in ("message.py", "__main__.py") and "Template(" in path.read_text(encoding="utf-8")
    ]


def templates_in(value: object) -> list[Template]:
    """Return the templates in the value of a variable: the value itself, or the parts of a tuple or a dictionary."""
    match value:
        case Template():
            return [value]
        case tuple():
            return [template for part in value for template in templates_in(part)]
        case dict():
            return [template for part in value.values() for template in templates_in(part)]
    return []


def raised_as() -> dict[str, set[str]]:
    """Return the exceptions that carry each message, by its constant as far as calls in the source show it.

    The messages of the engine's faults are listed by their ids.
    """
    classes = {
        name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)
    }
    found: dict[str, set[str]] = defaultdict(set)
    for kind, templates in FAULTS.items():
        for template in templates:
            found[template.id].add(kind.__name__)
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and name_of(node.func) in classes and node.args:
                message = node.args[0]
                if isinstance(message, ast.Call):
                    found[name_of(message.func)].add(name_of(node.func))
    return found


def name_of(node: ast.expr) -> str:
    """Return the last part of a dotted name, or nothing."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def row(name: str, template: Template, raised: dict[str, set[str]]) -> str:
    """Return the row of one template."""
    classes = ", ".join(f"`{kind}`" for kind in sorted(raised.get(name) or raised.get(template.id, ())))
    return f"| `{template.id}` | {cell(template.english)} | {cell(template.chinese)} | {classes} |"


def cell(text: str) -> str:
    """Return a text as the cell of a table."""
    return text.strip().replace("|", "\\|").replace("<", "&lt;").replace("\n", "<br>")


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
