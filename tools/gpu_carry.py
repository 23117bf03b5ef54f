"""Collect what a machine with a GPU and without a network needs: ``python tools/gpu_carry.py --python PYTHON``.

The folder build/gpu_carry then has:

- ``engine/``: the engine, built for the machine's version of Python (that of PYTHON, an interpreter of the same
  version with numpy and nanobind; ``python3.12 -m venv V && V/bin/pip install numpy nanobind``). It needs no newer
  system library than this machine has; tools/gpu_device.py builds it there if it cannot be loaded.
- ``site/``: pure Python packages: pytest and rich with what they need, nanobind (to build the engine), and the
  metadata of Unisono, so that torch finds its backend.

The folder travels with the working tree (a few MB).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
CARRY = ROOT / "build" / "gpu_carry"
PACKAGES = ("pytest", "rich", "nanobind", "expecttest")
METADATA = "Metadata-Version: 2.1\nName: unisono\nVersion: 0.1.0\n"
ENTRY_POINTS = "[torch.backends]\nunisono = unisono.torch_backend.registration:register\n"
UNUSED = ("*.dist-info/RECORD", "bin", "**/__pycache__")


def build_engine(python: str, folder: Path, parallel: int) -> Path:
    """Build the engine for an interpreter; return its file."""
    found = subprocess.run([python, "-m", "nanobind", "--cmake_dir"], capture_output=True, text=True, check=True)
    configure = [
        "cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        f"-DPython_EXECUTABLE={python}", f"-Dnanobind_DIR={found.stdout.strip()}",
    ]  # fmt: skip
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(folder), "--target", "_engine", "-j", str(parallel)], check=True)
    (built,) = folder.glob("_engine.*.so")
    return built


def add_packages(folder: Path) -> None:
    """Put the packages into a folder; they must have no compiled parts."""
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", str(folder), "--upgrade",
        *PACKAGES,
    ]  # fmt: skip
    subprocess.run(command, check=True)
    for pattern in UNUSED:
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    compiled = [path.name for path in folder.rglob("*.so")]
    assert not compiled, compiled
    metadata = folder / "unisono-0.1.0.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text(METADATA)
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)


def main() -> int:
    """Collect everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="an interpreter of the machine's version of Python")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "gpu_engine", help="folder of the build")
    args = parser.parse_args()
    # The path is not resolved: an environment is known by the link to its interpreter.
    built = build_engine(os.path.abspath(args.python), args.build.absolute(), os.cpu_count() or 1)
    shutil.rmtree(CARRY, ignore_errors=True)
    (CARRY / "engine").mkdir(parents=True)
    shutil.copy(built, CARRY / "engine")
    add_packages(CARRY / "site")
    total = sum(path.stat().st_size for path in CARRY.rglob("*") if path.is_file())
    print(f"{CARRY.relative_to(ROOT)}: {built.name} and {', '.join(PACKAGES)}, {total / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
