"""Without the engine, as on macOS and Windows, everything works but execution, which says what is missing."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from other_platforms import run_elsewhere
from unisono import codecs, find, simulate

# Every verb in one process, because a process takes as long as a verb.
VERBS = """
import json
from pathlib import Path
from unisono.cli.main import main

folder = Path(sys.argv[1])
(folder / "mine.py").write_text('''
import unisono
from unisono import algorithm, one_per_rank
from unisono.collectives import all_reduce
from unisono.algorithms.ring import ring

@algorithm(all_reduce, chunks=one_per_rank)
def mine(rank, size):
    "The ring."
    yield from ring(rank, size)

def train(comm: unisono.Communicator) -> unisono.Work:
    return comm.all_reduce([], async_op=True)

if __name__ == "__main__":
    unisono.spawn(train, 2)
''', encoding="utf-8")
page = ["--no-open", "-o", str(folder / "page.html")]
codes = {}
for words in (
    ["list"], ["list", "--networks"], ["list", "--json"], ["show", "ring", "-n", "5", "--data"],
    ["show", f"{folder}/mine.py:mine", "-n", "3"], ["verify", "ring", "-n", "1-8", "--lang", "zh"],
    ["draw", "ring", "-n", "5", *page], ["draw", "--lesson", "1", *page],
    ["draw", f"{folder}/mine.py:mine", "-n", "3", *page],
    ["simulate", "ring", "tree", "-n", "8"],
    ["simulate", "ring", "-n", "16", "--network", "dgx-h100", "--codec", "bf16"],
    ["plan", "--gpus", "16"], ["explain"], ["explain", "--topology", "2x4"],
    ["explain", "-n", "16", "--network", "dgx-h100"], ["info"], ["info", "--json"],
):
    codes[" ".join(words)] = main(words)
Path(folder / "codes.json").write_text(json.dumps(codes), encoding="utf-8")
"""

EXECUTING = """
import unisono
from unisono.cli.main import main

codes = [main([verb, *words]) for verb in ("run", "bench", "tune", "agent") for words in ([], ["--lang", "zh"])]
assert codes == [3] * 8, codes
for call in (unisono.connect, lambda: unisono.spawn(print, 2), unisono.Communicator):
    try:
        call()
    except unisono.EngineMissing as error:
        print(error.id, error.text("en"), error.text("zh"), sep="|")
"""


@pytest.mark.parametrize(("platform", "encoding"), [("win32", "cp1252"), ("linux", "utf-8")])
def test_every_verb_that_executes_nothing_works(tmp_path, platform, encoding):
    done = run_elsewhere(VERBS, str(tmp_path), platform=platform, encoding=encoding)
    assert done.returncode == 0, done.stderr
    assert set(json.loads((tmp_path / "codes.json").read_text()).values()) == {0}, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("platform", "message", "reason"),
    [
        ("win32", "native_engine.not_on_platform", "on Windows, algorithms are proved, played, drawn and simulated"),
        ("linux", "native_engine.not_installed", "wheels for Linux on x86-64 with glibc 2.34 or newer have it"),
    ],
)
def test_execution_says_in_one_sentence_what_is_missing(platform, message, reason):
    done = run_elsewhere(EXECUTING, platform=platform)
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()
    assert len(said) == 8  # a line for each call of a verb
    for english, chinese, verb in zip(said[::2], said[1::2], ("run", "bench", "tune", "agent"), strict=True):
        assert english.startswith(f"EngineMissing `unisono {verb}` needs the native engine")
        assert reason in english
        assert f"`unisono {verb}` 需要原生引擎" in chinese
    raised = [line.split("|") for line in done.stdout.splitlines()]
    assert [error[0] for error in raised] == [message] * 3
    for (_, english, chinese), subject in zip(raised, ("connect()", "spawn()", "Communicator"), strict=True):
        assert english.startswith(f"{subject} needs the native engine")
        assert "需要原生引擎" in chinese


def test_the_torch_backend_says_what_is_missing():
    code = """
import sys
sys.modules["unisono._engine"] = None
import torch.distributed as dist
try:
    dist.init_process_group("unisono", store=dist.HashStore(), rank=0, world_size=1)
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith('EngineMissing the backend "unisono" of torch.distributed needs'), done.stderr


def test_the_demo_does_what_it_can_and_says_what_it_leaves_out():
    code = """
from unisono.cli import demo
demo.LARGEST = 3
from unisono.cli.main import main
sys.exit(main(["demo"]) or main(["demo", "--json"]))
"""
    done = run_elsewhere(code)
    assert done.returncode == 0, done.stderr
    text, data = done.stdout.split("\n{", 1)
    assert "3. Prove." in text
    assert (
        "4. Run, 5. Predict and measure, 6. Train.\n   left out: executing collectives needs the native engine"
        in text
    )
    assert json.loads("{" + data)["missing"].startswith("executing collectives needs the native engine")


def test_the_whole_api_can_be_imported():
    code = """
from unisono import *
import unisono, unisono.drawing, unisono.planner
for name in unisono.__all__:
    getattr(unisono, name)
try:
    import unisono.comm.communicator
except ImportError as error:
    print(type(error).__name__)
"""
    done = run_elsewhere(code)
    assert done.stdout == "EngineMissing\n", done.stderr


def test_simulations_and_codecs_give_the_same_results_as_with_the_engine():
    """The loops in Python are compared with those of the engine in tests/simulator and tests/codecs."""
    code = """
import json
import numpy as np
from unisono import codecs, find, simulate

times = [simulate(find("ring").schedule(size), 1 << 20, "dgx-h100").time_s for size in (1, 2, 3, 5, 6, 7, 8, 13)]
values = np.linspace(-3, 3, 1000, dtype=np.float32)
wires = [codecs.encode(values, name).tobytes().hex() for name in ("fp16", "int8", "fp8_e4m3", "topk:0.1")]
print(json.dumps([times, wires]))
"""
    done = run_elsewhere(code)
    assert done.returncode == 0, done.stderr
    times, wires = json.loads(done.stdout)
    sizes = (1, 2, 3, 5, 6, 7, 8, 13)
    assert times == [simulate(find("ring").schedule(size), 1 << 20, "dgx-h100").time_s for size in sizes]
    values = np.linspace(-3, 3, 1000, dtype=np.float32)
    names = ("fp16", "int8", "fp8_e4m3", "topk:0.1")
    assert wires == [codecs.encode(values, name).tobytes().hex() for name in names]
