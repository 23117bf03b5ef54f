"""Install the programs that the tests of the page need and pip cannot install: Chromium, its driver, node and npm.

`make test` runs this first. Without the permission to install packages, it prints the command, and the tests that
need a browser are skipped with a visible message.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

PACKAGES = {"chromium": "chromium", "chromedriver": "chromium-driver", "node": "nodejs", "npm": "npm"}
LIMIT_S = 300


def missing_packages() -> list[str]:
    """Return the Debian packages whose programs are missing."""
    return [package for program, package in PACKAGES.items() if shutil.which(program) is None]


def get(packages: list[str]) -> bool:
    """Install packages; return whether that was possible."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    quietly = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    for command in (["apt-get", "update"], install):
        try:
            done = subprocess.run(command, env=quietly, capture_output=True, text=True, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            print(f"{' '.join(command)}: not finished after {LIMIT_S} s", file=sys.stderr)
            return False
        if done.returncode != 0:
            print(f"{' '.join(command)}: {done.stderr.strip()}", file=sys.stderr)
            return False
    return True


def main() -> None:
    """Install missing packages, or print the command that does."""
    packages = missing_packages()
    if not packages:
        return
    print(f"the tests of the page need {', '.join(packages)}: installing", flush=True)
    if not get(packages):
        print(
            f"SKIPPED: the page is not tested in a browser; as root: apt-get install {' '.join(packages)}",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
