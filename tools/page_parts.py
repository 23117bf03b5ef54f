"""Generated parts of a page: the lines between ``<!-- NAME -->`` and ``<!-- end -->``.

A marker may say what its part is: ``<!-- table: NAME -->`` or ``<!-- NAME: generated from ... -->``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

PART = re.compile(r"(<!-- (?:table: )?([\w./-]+)(?:: [^>]*)? -->\n).*?(<!-- end -->)", re.DOTALL)


def names(page: str) -> list[str]:
    """Return the names of the generated parts of a page, in their order."""
    return [found[2] for found in PART.finditer(page)]


def fill(page: str, part: Callable[[str], str]) -> str:
    """Return the page with each part replaced by ``part(name)``."""
    return PART.sub(lambda found: f"{found[1]}{part(found[2]).rstrip()}\n{found[3]}", page)


def content(page: str, name: str) -> str:
    """Return the present text of a part."""
    return next(found[0][len(found[1]) : -len(found[3])] for found in PART.finditer(page) if found[2] == name)
