"""``unisono run --hosts`` with a stand-in for ssh that starts the agents on this machine."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
import zlib

import pytest

from unisono.bootstrap.network_options import join_port
from unisono.launch.agent import REPORT
from unisono.launch.host_list import parse_hosts
from unisono.launch.trace_files import TRACE
from unisono.tracing import read_run

SHOW = """
import os
os.environ.setdefault("UNISONO_TRANSPORT", "-")
names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "RENDEZVOUS", "TRANSPORT")
print(*(os.environ["UNISONO_" + name] for name in names), len(os.environ["UNISONO_TOKEN"]))
"""
LIMIT_S = 60


@pytest.fixture
def ssh(tmp_path):
    """Return a stand-in for ssh: it gets a host and a command. The host "gone" cannot be reached.

    As with ssh, the command is not in the process group of the launcher.
    """
    path = tmp_path / "ssh"
    gone = '[ "$1" = gone ] && { echo "ssh: no route to gone" >&2; exit 255; }'
    path.write_text(f'#!/bin/sh\n{gone}\nshift\nexec setsid /bin/sh -c "$*"\n')
    path.chmod(0o700)
    return str(path)


def command(ssh, hosts, *program, options=()):
    return [sys.executable, "-m", "unisono", "run", "--hosts", hosts, "--ssh", ssh, *options, *program]


def run(ssh, hosts, *program, options=()):
    return subprocess.run(
        command(ssh, hosts, *program, options=options), capture_output=True, text=True, timeout=LIMIT_S
    )


def test_every_rank_gets_its_identity_and_lines_name_rank_and_host(ssh):
    done = run(ssh, "a:2,b:1", sys.executable, "-c", SHOW, options=["--rendezvous", "a:4000"])
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [
        "[0 a] 0 3 0 2 a:4000 - 64", "[1 a] 1 3 1 2 a:4000 - 64", "[2 b] 2 3 0 1 a:4000 - 64",
    ]  # fmt: skip


def test_every_rank_gets_the_transport(ssh):
    options = ["--rendezvous", "a:4000", "--transport", "ucx:/x.so"]
    done = run(ssh, "a,b", sys.executable, "-c", SHOW, options=options)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [
        "[0 a] 0 2 0 1 a:4000 ucx:/x.so 64", "[1 b] 1 2 0 1 a:4000 ucx:/x.so 64",
    ]  # fmt: skip


COMMAND_LINES = """
import contextlib, glob, os
token, seen = os.environ["UNISONO_TOKEN"].encode(), []
for name in glob.glob("/proc/*/cmdline"):
    with contextlib.suppress(OSError):  # it has ended meanwhile
        seen.append(token in open(name, "rb").read())
print(any(seen), len(seen) > 2)
"""


def test_the_token_is_in_no_command_line(ssh):
    done = run(ssh, "a,b", sys.executable, "-c", COMMAND_LINES, options=["--no-prefix"])
    assert done.stdout.splitlines() == ["False True"] * 2


def test_the_rank_that_fails_is_named_and_its_exit_code_is_that_of_the_job(ssh):
    program = (
        "import os, sys, time; rank = os.environ['UNISONO_RANK']; sys.exit(7) if rank == '2' else time.sleep(60)"
    )
    began = time.monotonic()
    done = run(ssh, "a:2,b:2", sys.executable, "-c", program)
    assert done.returncode == 7
    assert done.stderr == "rank 2 of 4 failed first: exit code 7\n"
    assert time.monotonic() - began < 30


def test_a_host_that_cannot_be_reached_is_named(ssh):
    done = run(ssh, "a,gone", sys.executable, "-c", "import time; time.sleep(60)")
    assert done.returncode == 1
    assert "ssh: no route to gone" in done.stderr
    assert "the agent on host gone ended without a report (code 255)" in done.stderr


def test_a_report_that_is_cut_off_is_none(tmp_path):
    script = tmp_path / "cut"
    script.write_text('#!/bin/sh\nprintf "\\037unisono {\\"endings\\": [[0, "\nexit 255\n')
    script.chmod(0o700)
    done = run(str(script), "a", "true")
    assert done.returncode == 1
    assert "the agent on host a ended without a report (code 255)" in done.stderr


def test_a_part_of_a_trace_that_is_none_does_not_hide_the_outcome(tmp_path):
    packed = base64.b64encode(zlib.compress(b"no trace")).decode()
    part = json.dumps({"name": "rank-0.r-0.json", "data": packed, "last": True}).encode()
    report = json.dumps({"endings": [[0, 7, False]], "faults": []}).encode()
    (tmp_path / "said").write_bytes(TRACE + part + b"\n" + REPORT + report + b"\n")
    script = tmp_path / "ssh"
    script.write_text(f"#!/bin/sh\ncat {tmp_path}/said\nexit 7\n")
    script.chmod(0o700)
    done = run(str(script), "a", "true", options=["--trace", str(tmp_path / "trace")])
    assert done.returncode == 7
    assert "rank-0.r-0.json" in done.stderr


def test_a_host_without_the_directory_says_so(ssh, tmp_path):
    script = tmp_path / "elsewhere"
    script.write_text('#!/bin/sh\nshift\nrmdir "$PWD"\nexec /bin/sh -c "$*"\n')
    script.chmod(0o700)
    (tmp_path / "here").mkdir()
    done = subprocess.run(
        command(str(script), "a", sys.executable, "-c", "print(1)"),
        capture_output=True, text=True, timeout=LIMIT_S, cwd=tmp_path / "here",
    )  # fmt: skip
    assert done.returncode == 1
    assert "host a: cannot change to" in done.stderr


SLEEPS = "import os, time; print(os.getpid(), flush=True); time.sleep(120)"


def start(ssh, hosts):
    process = subprocess.Popen(
        command(ssh, hosts, sys.executable, "-c", SLEEPS, options=["--no-prefix"]),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0,
    )  # fmt: skip
    return process, [int(process.stdout.readline()) for _ in range(2)]


def all_ended(processes):
    ends_s = time.monotonic() + 20
    while time.monotonic() < ends_s:
        if not any(os.path.exists(f"/proc/{process}") for process in processes):
            return True
        time.sleep(0.05)
    return False


def test_an_interrupt_reaches_the_ranks_of_every_host_and_is_one_line(ssh):
    process, ranks = start(ssh, "a,b")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert errors == "interrupted\n"
    assert all_ended(ranks)


def test_no_rank_outlives_a_launcher_that_is_killed(ssh):
    process, ranks = start(ssh, "a,b")
    process.kill()
    process.communicate(timeout=LIMIT_S)
    assert all_ended(ranks)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--hosts", "a:2", "-n", "3", "x"], "-n 3 does not agree with --hosts, which has 2 ranks"),
        (["--ssh", "x", "true"], "--ssh needs --hosts"),
        (["--transport", "ucx", "true"], "--transport needs --hosts"),
        (["--hosts", "a:2", "--transport", "rdma", "x"], 'transport=\'rdma\'; expected "tcp", "ucx"'),
    ],
)
def test_options_that_exclude_each_other_are_refused(words, message):
    words = [sys.executable if word == "x" and words[0] == "--hosts" else word for word in words]
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "run", *words], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 2
    assert message in done.stderr


def test_an_agent_without_a_task_explains_itself():
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "agent"], input="hello\n", capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 2
    assert "`unisono run --hosts` starts agents" in done.stderr


def test_an_ipv6_address_is_passed_to_ssh_without_brackets():
    first, second = parse_hosts("[fd00::1]:2,[fd00::2]")
    assert (first.name, second.address) == ("fd00::1", "fd00::2")
    assert join_port(first.address, 4000) == "[fd00::1]:4000"


def test_a_process_that_ssh_leaves_behind_with_its_output_open_does_not_delay_the_report(tmp_path):
    """As ssh with ControlPersist does."""
    script = tmp_path / "ssh"
    script.write_text('#!/bin/sh\nshift\nsetsid sleep 8 &\n/bin/sh -c "$*"\n')
    script.chmod(0o700)
    began_s = time.monotonic()
    done = run(str(script), "a,b", sys.executable, "-c", "import sys; sys.exit(5)", options=["--no-prefix"])
    assert done.returncode == 5
    assert "failed first: exit code 5" in done.stderr
    assert time.monotonic() - began_s < 8 + 6


TRACED = """
import numpy as np, unisono
with unisono.connect() as comm:
    comm.all_reduce(np.ones(1000), algorithm="ring")
"""


def test_the_agents_bring_the_traces_of_their_ranks_to_the_launcher(ssh, tmp_path):
    script = tmp_path / "traced.py"
    script.write_text(TRACED)
    done = run(ssh, "127.0.0.1,localhost", str(script), options=["--trace", str(tmp_path / "trace")])
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(f"trace of 2 ranks: {tmp_path / 'trace' / 'run.json'} (")
    (group,) = read_run(tmp_path / "trace").communicators
    assert [call.label for call in group.calls] == ["all_reduce/ring"]
    assert group.missing == []


SHOW_TLS = """
import os
print(*(os.environ.get(f"UNISONO_TLS_{name}") for name in ("CERTIFICATE", "KEY", "AUTHORITY")))
"""


def test_the_files_of_tls_reach_every_rank(ssh, tmp_path):
    options = ["--no-prefix", "--tls-certificate", "h.pem", "--tls-key", "/k/h.key", "--tls-authority", "a.pem"]
    done = subprocess.run(
        command(ssh, "a:1,b:1", sys.executable, "-c", SHOW_TLS, options=options),
        capture_output=True, text=True, timeout=LIMIT_S, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"{tmp_path}/h.pem /k/h.key {tmp_path}/a.pem"] * 2


def test_tls_needs_all_of_its_files_and_hosts(ssh):
    done = run(ssh, "a:1,b:1", sys.executable, "-c", "", options=["--tls-key", "h.key"])
    assert done.returncode == 2
    assert "missing: --tls-certificate, --tls-authority" in done.stderr
    words = [sys.executable, "-m", "unisono", "run", "-n", "1", "--tls-key", "h.key", sys.executable, "-c", ""]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
    assert "--tls-key needs --hosts" in done.stderr
