"""The test hosts themselves: they are separate, and nothing of them is left, however the tool ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from console_blocks import ROOT
from test_hosts import TestHosts

TOOL = ROOT / "tools" / "test_hosts.py"
long = pytest.mark.long
WAITS = "@ssh b 'readlink /proc/self/ns/net; sleep 100'"


def users_of(namespace):
    """Return the processes in a network namespace."""
    found = []
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            if os.readlink(link) == namespace:
                found.append(link.parts[2])
        except OSError:
            continue  # it has ended
    return found


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGINT, marks=long), pytest.param(signal.SIGTERM, marks=long), signal.SIGKILL],
    ids=["Ctrl-C", "SIGTERM", "SIGKILL"],
)
def test_nothing_is_left_however_the_tool_ends(number, tmp_path):
    process = subprocess.Popen(
        [sys.executable, TOOL, "2", "--", "sh", "-c", WAITS], stdout=subprocess.PIPE, text=True, process_group=0,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    namespace = process.stdout.readline().strip()
    assert namespace != os.readlink("/proc/self/ns/net")
    assert len(users_of(namespace)) >= 2  # the first process of the host, and the command
    (process.send_signal if number == signal.SIGKILL else lambda sent: os.killpg(process.pid, sent))(number)
    process.wait(timeout=30)
    deadline_s = time.monotonic() + 10
    while users_of(namespace):
        assert time.monotonic() < deadline_s, users_of(namespace)
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL) if number == signal.SIGKILL else None
    process.stdout.close()
    if number != signal.SIGKILL:
        assert not list(tmp_path.iterdir())


def test_hosts_have_separate_names_processes_memory_and_networks():
    with TestHosts(2) as hosts:
        for host in hosts.hosts:
            assert host.run("hostname").stdout.strip() == host.name
            assert host.processes() == []
            host.run("touch", f"/dev/shm/{host.name}")
        assert hosts["b"].run("ls", "/dev/shm").stdout.split() == ["b"]
        done = subprocess.run([hosts.ssh, "a", "getent hosts b; exit 4"], capture_output=True, text=True)
        assert (done.returncode, done.stdout.split()) == (4, [hosts["b"].address, "b"])
    assert not hosts.directory.exists()


CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 4000), timeout=0.7).close()"
LISTEN = "import socket; s = socket.create_server(('', 4000)); print('listens', flush=True)\nwhile True: s.accept()"


@long
def test_a_link_can_be_cut_and_healed():
    with TestHosts(2) as hosts:
        listener = subprocess.Popen(
            hosts["a"].command(sys.executable, "-c", LISTEN), stdout=subprocess.PIPE, text=True
        )
        assert listener.stdout.readline() == "listens\n"

        def reaches():
            return hosts["b"].run(sys.executable, "-c", CONNECT, hosts["a"].address).returncode == 0

        assert reaches()
        for break_link in (hosts["b"].cut, hosts["b"].cut_one_way, lambda: hosts["b"].lose(100)):
            break_link()
            assert not reaches()
            hosts["b"].heal()
            assert reaches()
    listener.communicate(timeout=10)


@long
@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_the_commands_of_the_readme_for_two_machines_work(hosts, page):
    commands = re.findall(r"^unisono (run --hosts [^\n#]*)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        words = command.replace("a:4,b:4", "a:2,b:2").split()
        more = ["--steps", "2", "--sample", "10"] if "train.py" in command else []
        done = subprocess.run(
            [sys.executable, "-m", "unisono", words[0], "--ssh", hosts.ssh, "--oversubscribe", *words[1:], *more],
            capture_output=True, text=True, cwd=ROOT, timeout=200,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "[0 a] " in done.stdout
