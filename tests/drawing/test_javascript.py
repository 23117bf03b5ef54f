"""The JavaScript modules of the pages pass their tests and the linter."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from console_blocks import ROOT

LINTER = ROOT / "tools" / "javascript" / "node_modules" / ".bin" / "biome"
NO_NODE = "SKIPPED, NOT TESTED: the page's JavaScript needs node 20 or newer (apt-get install nodejs npm)"
NO_LINTER = "SKIPPED, NOT LINTED: the page's JavaScript (npm ci --prefix tools/javascript)"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120)


def node_is_new_enough() -> bool:
    if shutil.which("node") is None:
        return False
    return int(run("node", "--version").stdout.removeprefix("v").partition(".")[0]) >= 20


def test_the_modules_pass_their_own_tests():
    if not node_is_new_enough():
        pytest.skip(NO_NODE)
    tests = sorted(str(path) for path in (ROOT / "tests" / "drawing" / "page").rglob("*.test.mjs"))
    assert len(tests) >= 5
    done = run("node", "--test", *tests)
    assert done.returncode == 0, done.stdout


def test_the_modules_are_formatted_and_linted():
    if not LINTER.exists() or not node_is_new_enough():
        pytest.skip(NO_LINTER)
    where = ["src/unisono/drawing/page", "tests/drawing/page", "tools/in_page"]
    done = run(str(LINTER), "check", "--config-path=tools/javascript", "--error-on-warnings", *where)
    assert done.returncode == 0, done.stdout + done.stderr
