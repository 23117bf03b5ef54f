"""Promises about the package as a whole."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import unisono
from unisono.algorithms import BUILT_IN

ROOT = Path(__file__).parent.parent


def test_an_author_needs_two_imports():
    exec(
        "from unisono import algorithm, combine, copy, mapped, one, one_per_rank, recv, recv_reduce, send\n"
        "from unisono.collectives import all_gather, all_reduce, all_to_all, barrier, broadcast, gather, reduce, "
        "reduce_scatter, scatter\n"
    )


def test_every_public_name_exists():
    for name in unisono.__all__:
        assert getattr(unisono, name) is not None


def test_importing_unisono_imports_neither_numpy_nor_torch_nor_rich():
    code = "import sys, unisono; print([name for name in ('numpy', 'torch', 'rich') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_both_statements_of_the_version_agree():
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == unisono.__version__


def algorithms_named_in(text: str) -> set[str]:
    """Return the algorithms that a text names, also as a part of a longer name such as ring_step."""
    names = {algorithm.name for algorithm in BUILT_IN}
    return {name for name in names if re.search(f"(?<![a-z]){name}(?![a-z])", text.lower())}


def test_the_engine_knows_no_algorithm():
    assert algorithms_named_in("void ring_step(String chainsaw)  // as in Bruck's") == {"ring", "bruck"}
    for path in (ROOT / "engine").rglob("*.[ch]pp"):
        text = re.sub(r'"SSL_CTX_\w+"', "", path.read_text())  # functions of OpenSSL
        assert algorithms_named_in(text) == set(), path


def test_no_file_is_too_long_to_read():
    for folder in ("src", "tests", "engine", "tools", "examples"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".cpp", ".hpp", ".mjs", ".css") and "node_modules" not in path.parts:
                assert len(path.read_text().splitlines()) <= 400, path


def test_tests_mirror_the_source():
    """Every package has a folder of tests."""
    packages = {path.name for path in (ROOT / "src" / "unisono").iterdir() if (path / "__init__.py").exists()}
    assert packages <= {path.name for path in (ROOT / "tests").iterdir()}
