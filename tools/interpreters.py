"""Finds the interpreters of Python on this machine, by version."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator


def find_python(version: str) -> str | None:
    """Return the path of CPython ``version``, such as 3.12, on PATH or in pyenv; None if there is none."""
    return next((path for path in _candidates(version) if _version_of(path) == version), None)


def _candidates(version: str) -> Iterator[str]:
    yield sys.executable
    name = f"python{version}"
    yield from filter(None, [shutil.which(name)])
    # pyenv puts a name on PATH for every version that it has, and most of these names only print an error.
    if pyenv := shutil.which("pyenv"):
        found = subprocess.run([pyenv, "whence", "--path", name], capture_output=True, text=True)
        yield from found.stdout.split()


def _version_of(path: str) -> str:
    code = "import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-c", code], capture_output=True, text=True)
    return done.stdout.strip().removeprefix("cpython ")
