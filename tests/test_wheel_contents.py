"""The wheel without the engine and the sdist: what they contain. `make wheels` builds and tests all wheels."""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from scikit_build_core import build

import test_wheels as wheels_tool
from build_wheels import NO_ENGINE
from interpreters import find_python

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def tracked(folder: str) -> set[str]:
    found = subprocess.run(["git", "ls-files", "-z", folder], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in found.stdout.split("\0") if name and (ROOT / name).exists()}


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """Build them from the tracked files, as in a fresh clone: the backend would look at every file of .venv."""
    folder, clone = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("clone")
    for name in tracked("."):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.chdir(clone)
        build.build_sdist(str(folder))
        build.build_wheel(str(folder), dict(NO_ENGINE))
    return folder


@pytest.fixture(scope="module")
def wheel(dist):
    (path,) = dist.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_wheel_without_the_engine_is_for_every_platform(wheel):
    assert Path(wheel.filename).name == f"unisono-{PROJECT['version']}-py3-none-any.whl"
    assert "Root-Is-Purelib: true" in wheel.read(f"unisono-{PROJECT['version']}.dist-info/WHEEL").decode()


def test_the_wheel_without_the_engine_has_every_file_of_the_package_and_no_other(wheel):
    files = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert files == {name.removeprefix("src/") for name in tracked("src/unisono")}


def test_the_wheel_states_its_requirements_and_entry_points(wheel):
    folder = f"unisono-{PROJECT['version']}.dist-info"
    metadata = Parser().parsestr(wheel.read(f"{folder}/METADATA").decode())
    assert metadata["Requires-Python"] == PROJECT["requires-python"]
    required = [each for each in metadata.get_all("Requires-Dist") if "extra ==" not in each]
    assert sorted(required) == sorted(PROJECT["dependencies"])
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    entry_points = wheel.read(f"{folder}/entry_points.txt").decode()
    assert "[console_scripts]\nunisono = unisono.cli.main:main" in entry_points.replace("=", " = ").replace("  ", " ")
    assert "unisono.torch_backend.registration:register" in entry_points


def test_the_sdist_has_every_file_of_the_repository(dist):
    (sdist,) = dist.glob("*.tar.gz")
    assert wheels_tool.missing_in(sdist) == []


def test_an_interpreter_is_found_by_its_version():
    current = "%d.%d" % sys.version_info[:2]
    assert find_python(current) is not None
    assert find_python("3.99") is None
