"""Fill the generated parts of docs/errors.md: the tree of exceptions, and every message in English and Chinese."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections import defaultdict
from pathlib import Path

import page_parts
import unisono
from unisono import errors
from unisono.message import Template

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
PAGE = ROOT / "docs" / "errors.md"


def filled(page: str) -> str:
    """Return the page with its generated parts written anew."""
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
    found: dict[str, list[tuple[str, Template]]] = defaultdict(list)
    for module in message_modules():
        for name, value in vars(importlib.import_module(module)).items():
            if isinstance(value, Template) and (name, value) not in found[value.id.split(".")[0]]:
                found[value.id.split(".")[0]].append((name, value))
    return {package: templates for package, templates in found.items() if templates}


def message_modules() -> list[str]:
    """Return the modules that define templates: single-module parts, and every module whose name has ``messages``."""
    names = [module.name for module in pkgutil.walk_packages(unisono.__path__, "unisono.")]
    single = ["unisono.errors", "unisono.collectives", "unisono.reductions"]
    return [*single, *(name for name in names if "messages" in name.rsplit(".", 1)[-1])]


def raised_as() -> dict[str, set[str]]:
    """Return the exceptions that carry the message of each constant, as far as ``raise`` statements show it."""
    classes = {
        name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)
    }
    found: dict[str, set[str]] = defaultdict(set)
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
    classes = ", ".join(f"`{kind}`" for kind in sorted(raised.get(name, ())))
    return f"| `{template.id}` | {cell(template.english)} | {cell(template.chinese)} | {classes} |"


def cell(text: str) -> str:
    """Return a text as the cell of a table."""
    return text.strip().replace("|", "\\|").replace("<", "&lt;").replace("\n", "<br>")


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
