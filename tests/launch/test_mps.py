"""``unisono run --mps`` and ``spawn(mps=True)``, with a script in the place of NVIDIA's daemon."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import unisono
from launching import LIMIT_S, is_alive, wait_until
from unisono.cli.main import main
from unisono.errors import UsageError
from unisono.launch import mps
from unisono.launch.mps import CONTROL, mps_daemon

# Behaves as the control program does: `-d` starts a daemon in a new session, which writes its number to a file and
# has a child, the server; commands come from the standard input.
FAKE = r"""#!/bin/sh
pipe=$CUDA_MPS_PIPE_DIRECTORY
case "$1" in
  -d)
    echo "devices ${CUDA_VISIBLE_DEVICES-all}" >> "$FAKE_RECORD"
    if [ "$FAKE_MODE" = refuses ]; then
      echo "[09:00:00] Failed to bind the control socket" > "$CUDA_MPS_LOG_DIRECTORY/control.log"; exit 1
    fi
    setsid "$0" serve </dev/null >/dev/null 2>&1 &
    exit 0 ;;
  serve)
    echo $$ > "$pipe/new"; mv "$pipe/new" "$pipe/nvidia-cuda-mps-control.pid"
    echo "pid $$" >> "$FAKE_RECORD"
    "$0" server & echo "pid $!" >> "$FAKE_RECORD"
    trap '' TERM
    while [ ! -e "$pipe/quit" ] || [ "$FAKE_MODE" = stubborn ]; do sleep 0.02; done
    kill $!; exit 0 ;;
  server) while true; do sleep 0.02; done ;;
  *)
    read -r command
    if [ "$FAKE_MODE" = silent ] || [ ! -e "$pipe/nvidia-cuda-mps-control.pid" ]; then
      echo "Cannot find MPS control daemon process"; exit 1
    fi
    case "$command" in quit*) echo "$command" >> "$FAKE_RECORD"; touch "$pipe/quit" ;; esac ;;
esac
"""
# A program whose launcher believes that there is a GPU.
LAUNCHER = """
import sys
from pathlib import Path
from unisono.launch import mps
from unisono.cli.main import main
mps.DRIVER = Path("/dev/null")
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def record(tmp_path, monkeypatch) -> Path:
    """Put the script on the PATH; return the file in which it records its processes and commands."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / CONTROL).write_text(FAKE)
    (tools / CONTROL).chmod(0o755)
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_RECORD", str(tmp_path / "record"))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr(mps, "DRIVER", tmp_path)
    return tmp_path / "record"


def assert_nothing_is_left(record: Path) -> None:
    lines = record.read_text().splitlines()
    pids = [int(line.split()[1]) for line in lines if line.startswith("pid")]
    assert len(pids) == 2
    wait_until(lambda: not any(map(is_alive, pids)))
    wait_until(lambda: not any((record.parent / "tmp").iterdir()))


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LAUNCHER, "run", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)


def test_ranks_get_the_variables_of_a_private_daemon_that_ends_with_the_job(record):
    show = 'echo "$CUDA_MPS_PIPE_DIRECTORY $CUDA_MPS_LOG_DIRECTORY"; ls "$CUDA_MPS_PIPE_DIRECTORY"'
    done = run("-n", "3", "--mps", "--no-prefix", "--", "sh", "-c", show)
    assert done.returncode == 0, done.stderr
    folders = {line for line in done.stdout.splitlines() if "/" in line}
    assert len(folders) == 1
    pipe, log = folders.pop().split()
    assert Path(pipe).parent == Path(log).parent
    assert done.stdout.count(f"{CONTROL}.pid") == 3
    assert "quit -t 2" in record.read_text()
    assert_nothing_is_left(record)


def test_a_job_without_the_option_starts_no_daemon(record):
    done = run("-n", "2", "--no-prefix", "--", "sh", "-c", 'echo "found ${CUDA_MPS_PIPE_DIRECTORY-none}"')
    assert done.stdout.split("\n")[:2] == ["found none"] * 2
    assert not record.exists()


@pytest.mark.parametrize(
    ("program", "code"), [("exit 7", 7), ('[ "$UNISONO_RANK" = 1 ] && kill -KILL $$; sleep 60', 128 + signal.SIGKILL)]
)
def test_the_daemon_ends_when_a_rank_fails_or_is_killed(record, program, code):
    assert run("-n", "2", "--mps", "--", "sh", "-c", program).returncode == code
    assert_nothing_is_left(record)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_daemon_ends_when_the_launcher_gets_a_signal(record, number):
    command = [sys.executable, "-c", LAUNCHER, "run", "-n", "2", "--mps", "--", "sh", "-c", "echo ready; sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as launcher:
        assert launcher.stdout is not None
        assert b"ready" in launcher.stdout.readline()
        launcher.send_signal(number)
        assert launcher.wait(LIMIT_S) in (-number, 128 + number)
    assert_nothing_is_left(record)


def test_a_daemon_that_does_not_quit_is_killed_with_its_server(record, monkeypatch):
    monkeypatch.setenv("FAKE_MODE", "stubborn")
    assert run("-n", "1", "--mps", "--", "true").returncode == 0
    assert_nothing_is_left(record)


def test_the_daemon_sees_all_gpus_and_the_ranks_those_that_the_user_selected(record, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with mps_daemon() as variables:
        assert set(variables) == {"CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"}
    assert "devices all" in record.read_text()


def test_spawn_starts_a_daemon_too(record):
    paths = unisono.spawn(lambda comm: os.environ["CUDA_MPS_PIPE_DIRECTORY"], 2, mps=True)
    assert paths[0] == paths[1]
    assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ
    assert_nothing_is_left(record)


def test_spawn_ends_the_daemon_when_the_function_fails(record):
    with pytest.raises(ZeroDivisionError):
        unisono.spawn(lambda comm: 1 // comm.rank, 2, mps=True)
    assert_nothing_is_left(record)


def test_a_daemon_that_refuses_is_reported_with_its_log(record, monkeypatch):
    monkeypatch.setenv("FAKE_MODE", "refuses")
    with (
        pytest.raises(UsageError, match=r"it ended with code 1.*\n.*Failed to bind the control socket"),
        mps_daemon(),
    ):
        pass
    wait_until(lambda: not any((record.parent / "tmp").iterdir()))


def test_a_daemon_that_does_not_answer_is_reported(record, monkeypatch):
    monkeypatch.setenv("FAKE_MODE", "silent")
    monkeypatch.setattr(mps, "START_S", 0.5)
    began = time.monotonic()
    with pytest.raises(UsageError, match=r"did not answer within 0 seconds|did not answer"), mps_daemon():
        pass
    assert time.monotonic() - began < LIMIT_S / 2
    assert_nothing_is_left(record)


def test_a_machine_without_a_gpu_says_so(record, monkeypatch, tmp_path):
    monkeypatch.setattr(mps, "DRIVER", tmp_path / "none")
    with pytest.raises(UsageError, match="no NVIDIA GPU"), mps_daemon():
        pass
    assert not record.exists()


def test_a_machine_without_the_program_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=f"there is no program '{CONTROL}'"):
        unisono.spawn(lambda comm: None, 2, mps=True)


def test_several_hosts_are_refused(capsys):
    assert main(["run", "--hosts", "a,b", "--mps", "true"]) == 2
    assert "cannot be combined with --hosts" in capsys.readouterr().err
