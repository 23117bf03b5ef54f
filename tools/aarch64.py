"""Compile the engine for aarch64 and run it in an emulator: `make aarch64`.

Everything is built in build/aarch64 with Debian's cross-compiler and runs under qemu-user. The object code is checked
for NEON instructions; the programs of engine/tests must pass; and `checksums` must print what it prints on this
processor: results have the same bits. Last, the Python extension makes collectives (aarch64_python.py). An emulator
shows that code is correct, not how fast it is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from native import PROGRAMS, ROOT, CannotBuild, build, built_library, write_inputs

FOLDER = ROOT / "build" / "aarch64"
PREFIX = "aarch64-linux-gnu-"
COMPILER, DISASSEMBLER, EMULATOR = f"{PREFIX}g++", f"{PREFIX}objdump", "qemu-aarch64"
INSTALL = "apt-get install g++-aarch64-linux-gnu qemu-user"
LIBRARIES = "/usr/aarch64-linux-gnu"  # where Debian puts those of the cross-compiler

# What a loop contains for each reduction: on floats, on integers, and on booleans.
SUM, PROD, MAX, MIN, BAND, BOR, BXOR = map(str, range(7))
EXPECTED = {
    SUM: ("fadd", "add", "orr"), PROD: ("fmul", "mul", "and"), MAX: ("fcmgt", "[su]max|cm(gt|hi)", "orr"),
    MIN: ("fcmgt", "[su]min|cm(gt|hi)", "and"),
    BAND: ("", "and", "and"), BOR: ("", "orr", "orr"), BXOR: ("", "eor", "eor"),
}  # fmt: skip
FLOAT_TYPE = re.compile(r"^(float|double|BFloat|Small<.*>|Complex<.*>)$")
FUSED = re.compile(r"\tf(n?m(add|sub)|ml[as]l?2?|cmla)\t")
SCALAR = re.compile(r"\tf(add|sub|mul|div|max|min)\t[hsd]\d")
# NEON has no product of 64-bit integers.
SCALAR_LOOPS = [("long", PROD), ("unsigned long", PROD)]


def missing(*programs: str) -> str:
    """Return what is missing on this machine, and how to install it; an empty string if nothing is."""
    absent = [name for name in programs or (COMPILER, DISASSEMBLER, EMULATOR) if not shutil.which(name)]
    return f"{', '.join(absent)} not found ({INSTALL})" if absent else ""


def emulated(program: Path, *arguments: str | Path) -> list[str | Path]:
    """Return the command that runs a program in the emulator."""
    return [EMULATOR, "-L", LIBRARIES, program, *arguments]


def functions(objects: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the instructions of every function of an object file or a library."""
    command = [DISASSEMBLER, "-d", "-C", "--no-show-raw-insn", objects]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for block in text.split("\n\n"):
        first, _, code = block.strip("\n").partition("\n")
        if found := re.match(r"[0-9a-f]+ <(.*)>:$", first):
            yield re.sub(r"unisono::(baseline::)?", "", found[1]), code


def expected_in(name: str) -> str | None:
    """Return a pattern for the instruction that a loop must apply to whole registers; None if it is no such loop."""
    if found := re.match(r"void combine_many<\(Reduction\)(\d), (.*), \(Addends\)\d>\(", name):
        reduction, type_name = found.groups()
        if (type_name, reduction) in SCALAR_LOOPS:
            return None
        on_floats, on_integers, on_booleans = EXPECTED[reduction]
        return on_floats if FLOAT_TYPE.match(type_name) else on_booleans if type_name == "bool" else on_integers
    if name.startswith("void divide<"):
        return "fmul" if name.startswith("void divide<Complex") else "fdiv"
    if name.startswith("void encode_all<BrainFloat"):
        return "add"  # on the bits
    if name.startswith("void encode_all<"):
        return "fadd|fmul"
    if found := re.match(r"void decode_combine<.*, Add<\(Reduction\)(\d)>", name):
        return EXPECTED[found[1]][0]
    return None


def findings(objects: Path) -> tuple[list[str], int]:
    """Return what is wrong with the loops of an object file or a library, and the number of loops looked at."""
    wrong, loops = [], 0
    for name, code in functions(objects):
        if FUSED.search(code):
            wrong.append(f"{name}: a product and a sum are one operation")
        expected = expected_in(name)
        if expected is None:
            continue
        loops += 1
        if not re.search(rf"\t({expected})\tv\d+\.(16b|8h|4s|2d), ", code):
            wrong.append(f"{name}: no {expected} on a whole register")
        # Other loops compute something once: the inverse of a divisor, the scale of a codec block.
        if SCALAR.search(code) and name.startswith("void combine_many<"):
            wrong.append(f"{name}: floating-point arithmetic on single numbers")
    return wrong, loops


def run(command: Sequence[str | Path], limit_s: int = 900) -> str:
    """Run a command and return its output; exit if it fails."""
    print("$", *(str(word).removeprefix(f"{ROOT}/") for word in command), flush=True)
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=limit_s)
    if done.returncode:
        output = f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        sys.exit(f"{output}\nmake aarch64: the command above ended with {done.returncode}")
    return done.stdout


def cross_build(*options: str, flags: str = "") -> None:
    """Build the programs for aarch64; a warning is an error."""
    system = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64"]
    build(FOLDER, f"-O2 -Wall -Wextra -Werror {flags}".strip(), *system, *options, cxx=COMPILER)


def check_same_bits() -> None:
    """Compare the results of every loop with those of every instruction set of this processor."""
    if built_library() is None:
        print("SKIPPED, NOT COMPARED with this processor: the installed engine is out of date (make venv)")
        return
    emulator = run(emulated(FOLDER / "checksums"))
    native_program = FOLDER / "checksums-native"
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-Iengine/include", "-Iengine/tests", "-o", native_program]
    run([*command, "engine/tests/checksums.cpp", str(built_library()), "-pthread", "-ldl"])
    for variant in run([sys.executable, "-c", "from unisono import _engine; print(*_engine.variants())"]).split():
        if run([native_program, variant]) != emulator:
            sys.exit(f"make aarch64: the results differ from those of {variant} here")
    print(f"{emulator.count(chr(10))} checksums are the same as on this processor")


def main() -> None:
    """Build, check and run everything; exit with a message at the first finding."""
    if problem := missing():
        sys.exit(f"make aarch64: {problem}")
    print("building for aarch64; this takes minutes", flush=True)
    cross_build("-DUNISONO_BUILD_EXTENSION=OFF")
    wrong, loops = findings(FOLDER / "libunisono_engine.a")
    if wrong or loops == 0:
        sys.exit("\n".join(["make aarch64: the object code is not as expected", *wrong]))
    print(f"{loops} loops use NEON, and no operation is fused")
    check_same_bits()
    every, around = write_inputs(FOLDER)
    arguments = {
        "latency": ["2", "200"], "wakeups": ["200"], "by_hand": [str(around), "0.01"], "checksums": [],
        "simulations": ["300"], "threads": [str(every), "1"],
    }  # fmt: skip
    for name in PROGRAMS:
        run(emulated(FOLDER / name, *arguments[name]))  # whatever times they print mean nothing here
    from aarch64_python import check_extension

    check_extension()
    print("no findings")


if __name__ == "__main__":
    try:
        main()
    except CannotBuild as failure:
        sys.exit(f"make aarch64: {failure}")
