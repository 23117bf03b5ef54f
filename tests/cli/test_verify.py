from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import pytest

from unisono.algorithms import BUILT_IN
from unisono.cli import verify, watchdog
from unisono.cli.main import main

HEADER = """
from unisono import algorithm, combine, copy, mapped, one, one_per_rank, recv, recv_reduce, send
from unisono.collectives import all_reduce
"""


@pytest.fixture
def user_file(tmp_path):
    """Return a function that writes a user's file and returns its name."""

    def write(text, name="my_algo.py"):
        path = tmp_path / name
        path.write_text(HEADER + text)
        return str(path)

    return write


def test_all_means_every_built_in(capsys):
    assert main(["verify", "all", "-n", "1-3", "-j", "1"]) == 0
    printed = capsys.readouterr().out
    for algorithm in BUILT_IN:
        assert str(algorithm) in printed
    assert "0 failed" in printed


def test_every_root_is_verified(capsys):
    assert main(["verify", "broadcast/tree", "-n", "1-5", "--json"]) == 0
    [summary] = json.loads(capsys.readouterr().out)
    assert summary["proved"] == 1 + 2 + 3 + 4 + 5
    assert main(["verify", "broadcast/tree", "-n", "40", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["proved"] == 3
    assert main(["verify", "broadcast/tree", "-n", "5", "--root", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["proved"] == 1


def test_repeated_proofs_come_from_the_cache(capsys):
    for cached in (0, 4):
        assert main(["verify", "ring", "-n", "2-5", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)[0]["from_cache"] == cached
    assert main(["verify", "ring", "-n", "2-5", "--json", "--fresh"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["from_cache"] == 0


def test_several_processes_give_the_same_result(capsys, user_file):
    path = user_file("""
@algorithm(all_reduce)
def swap(rank, size):
    for hop in range(1, size):
        yield send(0, dst=(rank + hop) % size), recv_reduce(0, src=(rank - hop) % size)
""")
    verdicts = []
    for jobs in ("1", "2"):
        assert main(["verify", path, "-n", "1-6", "-j", jobs, "--json"]) == 1
        [summary] = json.loads(capsys.readouterr().out)
        del summary["seconds"], summary["from_cache"]
        verdicts.append(summary)
    assert verdicts[0] == verdicts[1]
    # correct on two ranks; trivial on one; from three ranks on, partial sums are sent twice
    assert (verdicts[0]["proved"], verdicts[0]["failed"]) == (2, 4)
    assert verdicts[0]["errors"][0]["what"].endswith("is counted twice")


def test_a_failing_proof_is_explained_and_the_exit_code_is_1(capsys, user_file):
    path = user_file("""
@algorithm(all_reduce)
def lazy(rank, size):
    yield send(0, dst=(rank + 1) % size), recv_reduce(0, src=(rank - 1) % size)
""")
    assert main(["verify", f"{path}:lazy", "-n", "3"]) == 1
    printed = capsys.readouterr().out
    assert "GoalError" in printed
    assert "the sum of chunk 0 of 3 ranks: 0, 1, 2" in printed
    assert "missing: 1" in printed
    assert "0 proved, 1 failed" in printed


def test_a_correct_but_wasteful_algorithm_gets_a_note(capsys):
    assert main(["verify", "naive", "-n", "16"]) == 0
    assert "far from the bandwidth bound" in capsys.readouterr().out


EAGER = """
@algorithm(all_reduce, chunks=2, serves=lambda size: size == 2)
def eager(rank, size):
    for chunk in range(2):
        yield send(chunk, dst=1 - rank)
    for chunk in range(2):
        yield recv_reduce(chunk, src=1 - rank)
"""


def test_a_depth_can_be_declared_or_requested(capsys, user_file):
    path = user_file(EAGER)
    assert main(["verify", path, "-n", "2"]) == 1
    assert "channels of depth 2 avoid this" in capsys.readouterr().out
    assert main(["verify", path, "-n", "2", "--depth", "2"]) == 0
    declared = user_file(EAGER.replace("chunks=2", "chunks=2, depth=2"), "declared.py")
    assert main(["verify", declared, "-n", "2"]) == 0
    assert main(["verify", declared, "-n", "2", "--depth", "1"]) == 1
    assert main(["verify", path, "-n", "2", "--depth", "unbounded"]) == 0
    with pytest.raises(SystemExit):
        main(["verify", path, "-n", "2", "--depth", "0"])
    assert "'0' is not a channel depth; expected a number, 1 or more, or unbounded" in capsys.readouterr().err


def test_sizes_that_an_algorithm_does_not_serve_are_skipped_and_named(capsys, user_file):
    path = user_file("""
@algorithm(all_reduce, serves=lambda size: size & (size - 1) == 0)
def xor(rank, size):
    distance = 1
    while distance < size:
        yield send(0, dst=rank ^ distance), recv_reduce(0, src=rank ^ distance)
        distance *= 2
""")
    assert main(["verify", path, "-n", "1-8"]) == 0
    printed = capsys.readouterr().out
    assert "4 proved, 0 failed" in printed
    assert "skipped for 3,5-7 ranks" in printed
    assert main(["verify", path, "-n", "3"]) == 2
    assert "Algorithms for 3 ranks: naive, direct, ring" in capsys.readouterr().err


def test_sizes_without_the_root_are_skipped(capsys):
    assert main(["verify", "broadcast/tree", "-n", "1-6", "--root", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["proved"] == 3


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("@algorithm(all_reduce)\ndef mine(rank, size):\n    while True:\n        yield send(0, dst=1 - rank)\n",
         "has not ended after"),
        ("@algorithm(all_reduce)\ndef mine(rank, size):\n    yield 'hello'\n", "this is not a step"),
        ("@algorithm(all_reduce)\ndef mine(rank, size):\n    yield send(0, dst=size)\n", "there is no rank 2"),
        ("@algorithm(all_reduce)\ndef mine(rank, size):\n    yield send(0, dst=1 / rank)\n", "ZeroDivisionError"),
        ("@algorithm(all_reduce)\ndef mine(rank, size):\n    return 3\n", "the program returned int"),
        ("@algorithm(all_reduce)\ndef mine(rank, size):\n    return 3 / rank\n", "ZeroDivisionError"),
        ("@algorithm(all_reduce)\ndef mine(rank, size):\n    while True:\n        yield ()\n", "has not ended after"),
        ("@algorithm(all_reduce)\ndef mine(rank, size):\n    raise SystemExit(0)\n    yield\n", "raised SystemExit"),
        ("@algorithm(all_reduce)\ndef mine(rank, size):\n    yield send(range(10**12), dst=1 - rank)\n", "no chunk"),
    ],
)  # fmt: skip
def test_an_invalid_program_name_gets_a_clear_error(capsys, user_file, text, complaint):
    assert main(["verify", user_file(text), "-n", "2"]) == 1
    printed = capsys.readouterr()
    assert complaint in printed.out
    assert "Traceback" not in printed.out + printed.err


@pytest.mark.slow
def test_a_program_that_never_yields_is_stopped(capsys, user_file, monkeypatch):
    monkeypatch.setattr(watchdog, "TICK_S", 0.1)
    monkeypatch.setattr(watchdog, "LIMIT", 3)
    path = user_file("@algorithm(all_reduce)\ndef mine(rank, size):\n    while True:\n        pass\n    yield\n")
    assert main(["verify", path, "-n", "2"]) == 1
    assert "the program has not yielded a step after" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "function", "complaint"),
    [
        ("def mine(rank, size:\n    pass", "", "my_algo.py, line 4: SyntaxError: '(' was never closed"),
        ("import nothing_of_that_name", "", "my_algo.py, line 4: ModuleNotFoundError"),
        ("raise SystemExit(3)", "", "my_algo.py, line 4: SystemExit"),
        ("", "", "declares no algorithm; expected a generator decorated with @algorithm"),
        ("def mine(rank, size):\n    yield", ":mine", "mine is not declared as an algorithm; write @algorithm"),
        ("@algorithm(all_reduce)\ndef mine(rank, size):\n    yield", ":mien", "did you mean 'mine'?"),
        ("\n".join(f"@algorithm(all_reduce)\ndef mine{i}(rank, size):\n    yield" for i in range(2)), "",
         "the name of one of them: mine0, mine1"),
    ],
)  # fmt: skip
def test_an_unsuitable_file_gets_a_clear_error(capsys, user_file, text, function, complaint):
    assert main(["verify", user_file(text) + function, "-n", "2"]) == 2
    printed = " ".join(capsys.readouterr().err.split())
    assert complaint in printed
    assert printed.count("line 4") <= 1
    assert "Traceback" not in printed


def test_a_syntax_error_in_an_imported_file_names_that_file(capsys, user_file, tmp_path):
    (tmp_path / "neighbour_with_a_mistake.py").write_text("x = (\n")
    assert main(["verify", user_file("import neighbour_with_a_mistake"), "-n", "2"]) == 2
    printed = " ".join(capsys.readouterr().err.split())
    assert "my_algo.py, line 4: SyntaxError" in printed
    assert "(neighbour_with_a_mistake.py, line 1)" in printed


def test_everything_is_shown_in_chinese(capsys, user_file):
    assert main(["verify", "ring", "-n", "1-3", "--lang", "zh"]) == 0
    printed = capsys.readouterr().out
    for text in (
        "证明数",
        "轮数和字节数是最大 rank 数时的值。",
        "注意 all_reduce/ring：轮数远高于下界",
        "3 个通过证明，0 个失败",
    ):
        assert text in printed
    wrong = user_file("@algorithm(all_reduce)\ndef mine(rank, size):\n    yield send(0, dst=(rank + 1) % size)\n")
    assert main(["verify", wrong, "-n", "3", "--lang", "zh"]) == 1
    printed = capsys.readouterr().out
    assert "UnmatchedError all_reduce/mine（3 个 rank）" in printed
    assert "0 个通过证明，1 个失败" in printed


@pytest.mark.parametrize("sizes", ["0", "5-3", "a", "1-", "-3", "1,,2", "1-99999999999", "9" * 5000, "²"])
def test_invalid_sizes_are_rejected(capsys, sizes):
    with pytest.raises(SystemExit) as caught:
        main(["verify", "ring", f"-n={sizes}"])
    assert caught.value.code == 2
    assert "is not a list of sizes" in capsys.readouterr().err


@pytest.mark.slow
def test_an_interrupt_ends_the_command_and_its_workers(tmp_path):
    """Ctrl-C during a long proof: exit code 130, no traceback, no process left behind."""
    script = (
        "import os, signal, sys, threading\n"
        "from unisono.cli.main import main\n"
        "if __name__ == '__main__':\n"
        "    threading.Timer(4.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "    sys.exit(main(['verify', 'ring', '-n', '400-512', '-j', '2', '--fresh']))\n"
    )
    path = tmp_path / "interrupted.py"
    path.write_text(script)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60)
    # Workers share these pipes: they are closed only when no worker is left.
    assert done.returncode == 130
    assert "interrupted" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_chunks_function_that_never_returns_is_stopped(capsys, user_file, monkeypatch):
    monkeypatch.setattr(watchdog, "TICK_S", 0.1)
    monkeypatch.setattr(watchdog, "LIMIT", 3)
    path = user_file("def forever(size):\n    while True:\n        pass\n@algorithm(all_reduce, chunks=forever)\n"
                     "def mine(rank, size):\n    yield\n")  # fmt: skip
    assert main(["verify", path, "-n", "2"]) == 1
    assert "chunks= has not returned after" in capsys.readouterr().err


def test_the_ops_of_a_program_need_not_be_picklable(capsys, user_file):
    path = user_file("@algorithm(all_reduce)\ndef mine(rank, size):\n    yield send(lambda: 0, dst=1 - rank)\n")
    assert main(["verify", path, "-n", "2", "-j", "2"]) == 1
    assert "is not a chunk" in capsys.readouterr().out


def test_an_internal_error_is_reported_as_a_bug(capsys, monkeypatch):
    def broken(*_):
        raise RuntimeError("boom")

    monkeypatch.setattr(verify, "_tasks", broken)
    assert main(["verify", "ring"]) == 3
    assert "a bug in Unisono, please report it: RuntimeError: boom" in capsys.readouterr().err


def test_nothing_is_cut_off_in_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["verify", "reduce/reduce_scatter_gather", "-n", "1-9"]) == 0
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert "✓  reduce/reduce_scatter_gather" in printed


def test_on_a_terminal_a_long_proof_shows_its_progress():
    """Standard error is a terminal here; elsewhere (test_main.py) nothing is written to it."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "unisono", "verify", "all", "-n", "1-12", "--fresh", "-j", "1"]
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    ) as command:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        assert command.wait(timeout=60) == 0
    os.close(ours)
    assert "━" in seen.decode(errors="replace")
    assert re.search(rb"\d+/\d+", seen)
