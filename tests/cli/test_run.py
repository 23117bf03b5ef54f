from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from launching import LIMIT_S, lines_of
from unisono.cli import run
from unisono.cli.main import main
from unisono.launch.run import Outcome

SHOW = "import os, sys; print(os.environ['UNISONO_RANK'], *sys.argv[1:], flush=True)\n"


@pytest.fixture
def script(tmp_path):
    """Return a file that prints its rank and its arguments."""
    path = tmp_path / "script.py"
    path.write_text(SHOW)
    return str(path)


def unisono(*arguments, **options):
    """Run the command."""
    command = [sys.executable, "-m", "unisono", *arguments]
    return subprocess.run(command, capture_output=True, timeout=LIMIT_S, **{"stdin": subprocess.DEVNULL, **options})


def test_a_script_receives_all_arguments_after_it(script):
    arguments = ["-n", "5", "--bind", "--help", "-m", "--", "--no-prefix", "ö", ""]
    done = unisono("run", "-n", "3", script, *arguments)
    assert done.returncode == 0
    assert done.stderr == b""
    for rank in range(3):
        assert lines_of(done.stdout, rank) == [" ".join([str(rank), *arguments]).encode()]


def test_a_module_receives_all_arguments_after_it(script, tmp_path):
    done = unisono("run", "-n", "2", "-m", "script", "--bind", "-n", "7", cwd=tmp_path)
    for rank in range(2):
        assert lines_of(done.stdout, rank) == [b"%d --bind -n 7" % rank]


@pytest.mark.parametrize("dashes", [["--"], []])
def test_any_program_can_be_run(dashes):
    done = unisono("run", "-n", "2", *dashes, "printf", "%s %s\\n", "--", "-n")
    for rank in range(2):
        assert lines_of(done.stdout, rank) == [b"-- -n"]


def test_a_script_after_dashes_is_a_script(script):
    assert sorted(unisono("run", "-n", "2", "--", script, "-x").stdout.splitlines()) == [b"[0] 0 -x", b"[1] 1 -x"]


def test_lines_can_be_printed_without_prefixes(script):
    assert sorted(unisono("run", "-n", "3", "--no-prefix", script).stdout.splitlines()) == [b"0", b"1", b"2"]


def test_by_default_there_is_one_rank_per_core(script):
    assert len(unisono("run", script).stdout.splitlines()) == len(os.sched_getaffinity(0))


def test_every_rank_can_be_bound_to_a_separate_core(tmp_path):
    path = tmp_path / "cores.py"
    path.write_text("import os; print(len(os.sched_getaffinity(0)))")
    assert set(unisono("run", "-n", "3", "--bind", str(path)).stdout.splitlines()) == {b"[0] 1", b"[1] 1", b"[2] 1"}


def test_a_failing_rank_is_named_and_its_exit_code_is_returned(tmp_path):
    path = tmp_path / "failing.py"
    path.write_text("import os, sys; sys.exit(17 * (os.environ['UNISONO_RANK'] == '2'))")
    done = unisono("run", "-n", "3", str(path))
    assert done.returncode == 17
    assert done.stderr == b"rank 2 of 3 failed first: exit code 17\n"


def test_a_killed_rank_is_named(tmp_path):
    path = tmp_path / "killed.py"
    path.write_text("import os; os.environ['UNISONO_RANK'] == '1' and os.kill(os.getpid(), 10)")
    done = unisono("run", "-n", "2", str(path))
    assert done.returncode == 128 + 10
    assert done.stderr == b"rank 1 of 2 failed first: killed by SIGUSR1\n"


def test_the_output_of_a_rank_appears_at_once(tmp_path):
    """Although the rank prints to a pipe and does not flush."""
    path = tmp_path / "live.py"
    path.write_text("print('here'); input()")
    command = [sys.executable, "-m", "unisono", "run", "-n", "1", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"[0] here\n"
        running.communicate(b"\n", timeout=LIMIT_S)
        assert running.returncode == 0


def test_closing_the_output_pipe_ends_the_job():
    command = [sys.executable, "-m", "unisono", "run", "-n", "2", "yes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout.readline().endswith(b"y\n")
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(LIMIT_S) == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "no program to run; expected e.g. `unisono run -n 4 script.py`"),
        (["-n", "2"], "no program to run"),
        (["--"], "no program to run"),
        (["-m"], "-m without a module"),
        (["nothing.py"], "there is no file 'nothing.py'"),
        (["."], "there is no program '.'"),
        (["no_such_program"], "there is no program 'no_such_program'; expected a file.py, -m module, or a program"),
        (["[/red].py"], "there is no file '[/red].py'"),
    ],
)
def test_invalid_arguments_are_explained(capsys, arguments, complaint):
    assert main(["run", *arguments]) == 2
    assert complaint in capsys.readouterr().err


def test_a_missing_file_suffix_is_suggested(capsys, script):
    assert main(["run", script.removesuffix(".py")]) == 2
    assert f"did you mean {script!r}?" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["0", "x", "-1", "1.5"])
def test_an_invalid_size_is_rejected(capsys, size):
    with pytest.raises(SystemExit) as caught:
        main(["run", f"-n={size}", "script.py"])
    assert caught.value.code == 2
    assert "is not a number of ranks" in capsys.readouterr().err


def test_a_file_that_the_system_cannot_run_is_reported(tmp_path):
    path = tmp_path / "program"
    path.write_bytes(b"\x00no program")
    path.chmod(0o755)
    done = unisono("run", "-n", "2", str(path))
    assert done.returncode == 2
    assert b"cannot run " in done.stderr
    assert b"Exec format error" in done.stderr


def test_the_help_explains_exit_codes(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["run", "--help"])
    assert caught.value.code == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "that of the rank that failed first" in printed
    assert "``" not in printed


def test_on_a_terminal_every_rank_has_a_colour(script, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "unisono", "run", "-n", "2", script]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE) as running:
        assert running.communicate(timeout=LIMIT_S)[1] == b""
    os.close(theirs)
    seen = os.read(ours, 4096)
    os.close(ours)
    assert b"\x1b[36m[0]\x1b[0m 0\r\n" in seen
    assert b"\x1b[35m[1]\x1b[0m 1\r\n" in seen


def test_a_job_starts_without_the_imports_of_other_verbs(script):
    code = (
        "import sys\n"
        "from unisono.cli.main import main\n"
        f"main(['run', '-n', '1', {script!r}])\n"
        "print([name for name in ('numpy', 'rich', 'unisono.verifier') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.stdout == "[0] 0\n[]\n"


@pytest.mark.parametrize(
    ("outcome", "lines"),
    [
        (Outcome(), []),
        (Outcome(ended_by=run.signal.SIGINT), ["interrupted"]),
        (Outcome(ended_by=run.signal.SIGTERM), ["ended by SIGTERM"]),
        (Outcome(1, -40), ["rank 1 of 2 failed first: killed by signal 40"]),
    ],
)
def test_the_end_of_a_job_is_reported_in_one_line(outcome, lines):
    assert run._summary(outcome, 2) == lines
