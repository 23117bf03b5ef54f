"""The programs of engine/tests, which run the engine without Python."""

from __future__ import annotations

import re
import subprocess

import pytest

import native

FOLDER = native.ROOT / "build" / "native"
FLAGS = "-O1 -Wall -Wextra -Werror"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def inputs():
    """Build the programs; return the files of their cases."""
    try:
        native.compiler()
    except native.CannotBuild as problem:
        pytest.skip(str(problem))
    if library := native.built_library():
        native.build_with(library, FOLDER, FLAGS)
    else:
        native.build(FOLDER, FLAGS, "-DUNISONO_BUILD_EXTENSION=OFF", "-DUNISONO_BASELINE_ONLY=ON")
    return native.write_inputs(FOLDER)


def output_of(name: str, *arguments: str) -> str:
    done = subprocess.run([FOLDER / name, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_scenarios_pass_with_ranks_that_are_threads(inputs):
    assert output_of("threads", str(inputs[0]), "1").endswith("all endings: passed\n")


@pytest.mark.parametrize("size", [2, 4])
def test_the_latency_of_8_bytes_is_measured(inputs, size):
    assert re.match(rf"{size} ranks, 8 bytes, 2000 calls: minimum \d", output_of("latency", str(size), "2000"))


def test_a_message_wakes_a_rank_that_goes_to_sleep(inputs):
    assert re.match(r"2000 messages: \d+ later than 900 microseconds", output_of("wakeups", "2000"))


def test_a_program_and_a_loop_written_by_hand_give_the_same_sums(inputs):
    rows = output_of("by_hand", str(inputs[1]), "0.01").splitlines()[1:]
    assert [row.split("|")[0].strip() for row in rows] == ["2"] * 5 + ["4"] * 5


def test_all_loops_give_the_same_bits_with_the_best_instructions_and_the_oldest(inputs):
    best = output_of("checksums")
    assert len(best.splitlines()) > 200
    assert output_of("checksums", "baseline") == best


def test_the_event_loop_of_the_simulator_runs_random_programs_and_refuses_spoiled_ones(inputs):
    lines = output_of("simulations", "300").splitlines()
    assert re.match(r"300 of 300 random programs finished", lines[0])
    assert re.match(r"[1-9]\d* of 300 spoiled programs refused", lines[1])


def test_the_programs_can_be_built_without_cmake(tmp_path, monkeypatch):
    """Every source file is also compiled on a machine without CMake."""
    commands = []
    monkeypatch.setattr(native, "run", commands.append)
    monkeypatch.setattr(native.shutil, "which", lambda name: None if name == "cmake" else name)
    native.build(tmp_path, "-g")
    made = [str(command[command.index("-o") + 1]) for command in commands]
    assert made == [str(tmp_path / name) for name in ("engine.o", *native.PROGRAMS)]
    sources = {str(word) for command in commands for word in command if str(word).endswith(".cpp")}
    there = {str(path) for folder in ("src", "tests") for path in (native.ROOT / "engine" / folder).rglob("*.cpp")}
    assert sources == there
