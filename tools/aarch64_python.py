"""The Python extension for aarch64, in the emulator: two ranks make collectives.

Python for arm64 comes from Debian's packages, unpacked in build/aarch64, so that the system does not change; numpy
comes from its wheel. The ranks are started one by one, because an emulated process cannot start another one by its
path.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

from aarch64 import COMPILER, EMULATOR, FOLDER, cross_build, run
from native import ROOT, CannotBuild

SYSTEM, PACKAGES, APT = FOLDER / "system", FOLDER / "packages", FOLDER / "apt"
DEBIAN = [
    "python3.11", "python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libpython3.11-dev", "libc6",
    "libgcc-s1", "libstdc++6", "zlib1g", "libexpat1", "libffi8", "libssl3", "libbz2-1.0", "liblzma5", "libuuid1",
    "libcrypt1",
]  # fmt: skip
PYTHON = SYSTEM / "usr" / "bin" / "python3.11"
SUFFIX = "cpython-311-aarch64-linux-gnu"
LIMIT_S = 600

RANK = """
import platform, numpy as np, unisono
with unisono.connect() as comm:
    ranks = range(1, comm.size + 1)
    for algorithm in (None, "ring"):
        x = np.arange(100_000, dtype=np.float32) % 97 * (comm.rank + 1)
        comm.all_reduce(x, algorithm=algorithm)
        assert (x == np.arange(100_000) % 97 * sum(ranks)).all()
    ones = np.ones(100_000, np.float32)
    comm.all_reduce(ones, codec="fp8_e4m3")
    assert (ones == comm.size).all()
    gathered = np.empty(3 * comm.size, np.int32)
    comm.all_gather(gathered, np.full(3, comm.rank, np.int32))
    assert (gathered == np.repeat(np.arange(comm.size), 3)).all()
    assert platform.machine() == "aarch64"
"""


def get_debian_packages() -> None:
    """Unpack Debian's arm64 packages; apt gets a separate state, in which arm64 is the only architecture."""
    archives = APT / "archives"
    for folder in (APT / "state" / "lists" / "partial", APT / "cache" / "archives" / "partial", archives):
        folder.mkdir(parents=True, exist_ok=True)
    (APT / "state" / "status").touch()
    settings = {
        "APT::Architecture": "arm64", "APT::Architectures": "arm64", "Dir::State": APT / "state",
        "Dir::State::status": APT / "state" / "status", "Dir::Cache": APT / "cache",
    }  # fmt: skip
    configuration = APT / "apt.conf"
    configuration.write_text("".join(f'{name} "{value}";\n' for name, value in settings.items()))
    environment = {**os.environ, "APT_CONFIG": str(configuration)}
    for command in (["apt-get", "update"], ["apt-get", "download", *DEBIAN]):
        done = subprocess.run(command, cwd=archives, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise CannotBuild(f"{' '.join(command[:2])}: {done.stderr.strip()[-300:]}")
    for package in archives.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, SYSTEM], check=True)


def get_wheels() -> None:
    """Unpack numpy for aarch64, and what is the same on every processor."""
    wheels = FOLDER / "wheels"
    platforms = [word for tag in ("2014", "_2_27", "_2_28") for word in ("--platform", f"manylinux{tag}_aarch64")]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "-d", wheels]
    run([*pip, "--python-version", "311", *platforms, "numpy", "rich", "nanobind"])
    for wheel in wheels.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(PACKAGES)


def build_extension() -> Path:
    """Build the extension; return a folder with the package ``unisono`` that contains it."""
    include = SYSTEM / "usr" / "include"
    cross_build(
        "-DUNISONO_BUILD_EXTENSION=ON", f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dnanobind_DIR={PACKAGES / 'nanobind' / 'cmake'}", f"-DPython_INCLUDE_DIR={include / 'python3.11'}",
        f"-DPython_NumPy_INCLUDE_DIR={PACKAGES / 'numpy' / '_core' / 'include'}", f"-DSKBUILD_SOABI={SUFFIX}",
        flags=f"-isystem {include}",
    )  # fmt: skip
    tree = FOLDER / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT / "src", tree, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copy(FOLDER / f"_engine.{SUFFIX}.so", tree / "unisono")
    return tree


def run_ranks(tree: Path, size: int) -> None:
    """Run the collectives above; exit if a rank fails."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    common = {
        "PATH": os.environ["PATH"], "HOME": str(FOLDER), "PYTHONPATH": f"{tree}:{PACKAGES}", "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    command = [EMULATOR, "-L", SYSTEM, PYTHON, "-c", RANK]
    ranks = [
        subprocess.Popen(
            command, env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}, stderr=subprocess.PIPE, text=True
        )
        for rank in range(size)
    ]
    try:
        errors = [rank.communicate(timeout=LIMIT_S)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    if any(rank.returncode for rank in ranks):
        sys.exit("make aarch64: the ranks failed\n" + "\n".join(errors))
    print(f"{size} ranks in Python made collectives")


def check_extension() -> None:
    """Build the extension and run it; say so if that is impossible on this machine."""
    problem = "" if shutil.which("apt-get") and shutil.which("dpkg") else "Python for arm64 needs Debian's apt-get"
    if not problem and sys.version_info[:2] != (3, 11):
        problem = "Debian's Python for arm64 is 3.11, and this one is not"
    try:
        if not problem and not PYTHON.exists():
            get_debian_packages()
        if not problem and not (PACKAGES / "nanobind").exists():
            get_wheels()
    except CannotBuild as failure:
        problem = str(failure)
    if problem:
        print(f"SKIPPED, NOT TESTED ON AARCH64: the Python extension ({problem})")
        return
    print(f"building the Python extension with {COMPILER}", flush=True)
    run_ranks(build_extension(), 2)
