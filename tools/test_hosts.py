"""Test hosts on one machine: each has its own network, host name, processes and shared memory. Needs root.

    sudo .venv/bin/python tools/test_hosts.py 2 -- unisono run --ssh @ssh --hosts a:2,b:2 examples/sum_of_all.py

starts hosts ``a`` and ``b``, which are connected by a switch, runs the command on this machine, and removes the
hosts. ``@ssh`` becomes a stand-in for ssh that runs commands on the test hosts. In Python:

    with TestHosts(4, rate="1gbit") as hosts:
        subprocess.run([hosts.ssh, "b", "hostname"])
        hosts["b"].cut()    # from now on, the switch drops every frame of host b

A test host is a process in new namespaces of Linux; the switch is a bridge in another one. The namespaces have no
names, so the kernel removes them, with their interfaces, memory and processes, when that process ends, and it ends
with the process that created the hosts, even if that is killed. No host has a route out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MOST_HOSTS = len(string.ascii_lowercase)
NETWORK = "198.18.0."  # the first network that RFC 2544 reserves for measurements
NETWORK_6 = "fd00:15::"
PROGRAMS = ("ip", "tc", "unshare", "nsenter", "mount", "setsid")
LIMIT_S = 20.0
# A classic BPF program on a port of the switch decides about each frame: 2 drops it, -1 lets it pass. It is at the
# switch because TCP treats a frame that its own host drops as local congestion.
DROP_ALL = "1,6 0 0 2"
DROP_SOME = "4,32 0 0 4294963256,53 0 1 {limit},6 0 0 4294967295,6 0 0 2"  # draws a number; passes from the limit on


def what_is_missing() -> str | None:
    """Return why this machine cannot have test hosts, or None if it can."""
    missing = [program for program in PROGRAMS if shutil.which(program, path=_path()) is None]
    if missing:
        return f"no program {', '.join(missing)} (apt-get install iproute2 util-linux)"
    if os.geteuid() != 0:
        return "not root"
    attempt = subprocess.run(
        ["unshare", "--net", "ip", "link", "add", "x", "type", "bridge"], capture_output=True, text=True,
        env={**os.environ, "PATH": _path()},
    )  # fmt: skip
    return None if attempt.returncode == 0 else f"no network namespaces ({attempt.stderr.strip()})"


def _path() -> str:
    return os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


class _Namespaces:
    """New namespaces, and the process that keeps them."""

    def __init__(self, options: Sequence[str], setup: str) -> None:
        command = ["unshare", *options, "--propagation", "private", "--mount", "--pid", "--fork", "--kill-child",
                   "--mount-proc", "sh", "-c", f"{setup}\necho ready; exec env --ignore-signal=CHLD cat"]  # fmt: skip
        # In a separate group, so that Ctrl-C does not end it before the processes that run in it.
        self.keeper = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0,
            env={**os.environ, "PATH": _path()},
        )  # fmt: skip
        assert self.keeper.stdout is not None
        if self.keeper.stdout.readline() != "ready\n":
            self.close()
            raise OSError("cannot create a test host")
        self.process = int(Path(f"/proc/{self.keeper.pid}/task/{self.keeper.pid}/children").read_text())

    def command(self, words: Sequence[str], *, only_network: bool = False) -> list[str]:
        """Return the command that runs ``words`` in the namespaces."""
        others = () if only_network else ("--uts", "--ipc", "--mount", "--pid")
        return ["nsenter", "--target", str(self.process), "--net", *others, "--", *words]

    def run(self, *words: str) -> str:
        """Run a program in the network namespace, with the files and processes of this machine."""
        done = subprocess.run(
            self.command(words, only_network=True), capture_output=True, text=True, timeout=LIMIT_S,
            env={**os.environ, "PATH": _path()},
        )  # fmt: skip
        if done.returncode:
            raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def close(self) -> None:
        """End all processes in the namespaces, and with them the namespaces."""
        assert self.keeper.stdin is not None
        assert self.keeper.stdout is not None
        self.keeper.stdin.close()  # ends the first process of the namespaces; the kernel then ends the others
        try:
            self.keeper.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.keeper.kill()
            self.keeper.wait()
        self.keeper.stdout.close()


class TestHost:
    """A host, and its port at the switch."""

    __test__ = False  # not a test of pytest
    switch: _Namespaces | None = None  # none if the switch is a program

    def __init__(self, index: int, names: Path) -> None:
        self.name = string.ascii_lowercase[index]
        self.address, self.address_6 = f"{NETWORK}{index + 1}", f"{NETWORK_6}{index + 1:x}"
        self.port = f"p{index}"
        self.namespaces = _Namespaces(
            ["--net", "--uts", "--ipc"],
            f"set -e; hostname {self.name}; mount -t tmpfs tmpfs /dev/shm; mount --bind {names} /etc/hosts",
        )

    def plug_into(self, switch: _Namespaces, mtu: int) -> None:
        """Connect this host to the switch."""
        self.switch = switch
        ends = f"{self.port} mtu {mtu} type veth peer name eth0 mtu {mtu} netns {self.namespaces.process}"
        switch.run("ip", "link", "add", *ends.split())
        switch.run("ip", "link", "set", self.port, "master", "bridge", "up")
        switch.run("tc", "qdisc", "add", "dev", self.port, "clsact")

    def set_up(self, mtu: int) -> None:
        """Give the interfaces their addresses and activate them."""
        for words in (
            f"addr add {self.address}/24 dev eth0", f"addr add {self.address_6}/64 dev eth0 nodad",
            "link set lo up", f"link set eth0 mtu {mtu} up",
        ):  # fmt: skip
            self.namespaces.run("ip", *words.split())

    def command(self, *words: str) -> list[str]:
        """Return the command that runs ``words`` on this host."""
        return self.namespaces.command(words)

    def run(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command on this host."""
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=LIMIT_S, **options)

    def set_rate(self, rate: str) -> None:
        """Limit the link of this host, for example to ``1gbit``: both directions or, with a delay, what it sends."""
        shape = f"root tbf rate {rate} burst 128kb latency 100ms".split()
        if self.switch is not None:
            self._run_at_switch("tc", "qdisc", "replace", "dev", self.port, *shape)
        self.namespaces.run("tc", "qdisc", "replace", "dev", "eth0", *shape)

    def lose(self, percent: float) -> None:
        """Drop this part of the frames from and to this host, at random."""
        self._filter(DROP_SOME.format(limit=min(int(percent / 100 * (1 << 32)), (1 << 32) - 1)))

    def cut(self) -> None:
        """Drop every frame from and to this host silently: its interface stays up."""
        self._filter(DROP_ALL)

    def cut_one_way(self) -> None:
        """Drop every frame from this host silently; those to it arrive."""
        self._filter(DROP_ALL, ["ingress"])

    def heal(self) -> None:
        """Drop no frames any more."""
        for direction in ("ingress", "egress"):
            self._run_at_switch("tc", "filter", "del", "dev", self.port, direction)

    def _filter(self, program: str, directions: Sequence[str] = ("ingress", "egress")) -> None:
        self.heal()
        for direction in directions:
            words = ["tc", "filter", "add", "dev", self.port, direction, "bpf", "da", "bytecode", program]
            self._run_at_switch(*words)

    def _run_at_switch(self, *words: str) -> None:
        if self.switch is None:
            raise OSError("the switch that delays frames carries all of them")
        self.switch.run(*words)

    def carrier(self, *, up: bool) -> None:
        """Plug the cable in or out: the host notices it."""
        self._run_at_switch("ip", "link", "set", self.port, "up" if up else "down")

    def processes(self) -> list[int]:
        """Return the processes of this host but its first, as the host numbers them."""
        found = self.run("sh", "-c", "echo /proc/[0-9]*").stdout.split()
        return sorted({int(Path(name).name) for name in found} - {1})[:-1]  # without the shell itself

    def kill(self) -> None:
        """End every process of this host, as when its power fails: no packet leaves it any more."""
        self.cut()
        self.close()

    def close(self) -> None:
        """Remove this host."""
        self.namespaces.close()


class TestHosts:
    """Hosts ``a``, ``b``, ... which are connected by a switch.

    With ``delay_ms``, the switch is a program that delays every frame (delaying_switch.py) and carries all of them:
    ``cut``, ``lose`` and ``carrier`` raise OSError.
    """

    __test__ = False

    def __init__(
        self, count: int, *, rate: str | None = None, mtu: int = 1500, delay_ms: float | None = None
    ) -> None:
        if not 0 < count <= MOST_HOSTS:
            raise ValueError(f"{count} test hosts; expected 1 to {MOST_HOSTS}")
        self.count, self.rate, self.mtu, self.delay_ms = count, rate, mtu, delay_ms
        self.hosts: list[TestHost] = []

    def __enter__(self) -> TestHosts:
        self.directory = Path(tempfile.mkdtemp(prefix="test-hosts-"))
        self.switch: _Namespaces | None = None
        self.delaying: subprocess.Popen[str] | None = None
        try:
            names = self.directory / "hosts"
            lines = [f"{NETWORK}{index + 1} {string.ascii_lowercase[index]}" for index in range(self.count)]
            names.write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))
            for index in range(self.count):
                self.hosts.append(TestHost(index, names))
            self._connect()
            for host in self.hosts:
                host.set_up(self.mtu)
                if self.rate is not None:
                    host.set_rate(self.rate)
            self._write_ssh()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _connect(self) -> None:
        if self.delay_ms is not None:
            processes = [str(host.namespaces.process) for host in self.hosts]
            program = Path(__file__).with_name("delaying_switch.py")
            self.delaying = subprocess.Popen(
                [sys.executable, str(program), str(self.delay_ms), *processes], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True, process_group=0,
            )  # fmt: skip
            assert self.delaying.stdout is not None
            if self.delaying.stdout.readline() != "ready\n":
                raise OSError("cannot start the delaying switch (it needs /dev/net/tun)")
            return
        self.switch = _Namespaces(["--net"], ":")
        self.switch.run(*f"ip link add bridge mtu {self.mtu} type bridge".split())
        self.switch.run("ip", "link", "set", "bridge", "up")
        for host in self.hosts:
            host.plug_into(self.switch, self.mtu)

    def __getitem__(self, name: str) -> TestHost:
        return self.hosts[string.ascii_lowercase.index(name)]

    @property
    def ssh(self) -> str:
        """The stand-in for ssh: a program that takes the name or address of a host, and a command line."""
        return str(self.directory / "ssh")

    def _write_ssh(self) -> None:
        # As with ssh, the command is in no process group of this machine, a signal to ssh does not reach it, and ssh
        # does not notice when the host dies.
        cases = [
            f"{host.name}|{host.address}|{host.address_6}) process={host.namespaces.process};;" for host in self.hosts
        ]
        enter = 'nsenter --target "$process" --net --uts --ipc --mount --pid -- setsid --wait sh -c "$*"'
        lines = [
            "#!/bin/sh", f'case "$1" in {" ".join(cases)} *) echo "no test host $1" >&2; exit 255;; esac', "shift",
            enter, "code=$?", "[ $code -lt 128 ] || sleep 0.5", "[ -d /proc/$process ] || exec sleep 3600",
            "exit $code", "",
        ]  # fmt: skip
        Path(self.ssh).write_text("\n".join(lines))
        Path(self.ssh).chmod(0o700)

    def close(self) -> None:
        """Remove the hosts, the switch and the files."""
        for host in self.hosts:
            host.close()
        if self.switch is not None:
            self.switch.close()
        if self.delaying is not None:
            self.delaying.communicate()  # closes its standard input
        shutil.rmtree(self.directory, ignore_errors=True)


def _on_signal(number: int, _: object) -> None:
    sys.exit(128 + number)


def main() -> int:
    """Run a command beside test hosts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int, help="the number of hosts; their names are a, b, ...")
    parser.add_argument("--rate", help="of each link, such as 1gbit; by default there is no limit")
    parser.add_argument("--mtu", type=int, default=1500)
    parser.add_argument("--delay", type=float, metavar="MS", help="of each packet")
    parser.add_argument("--loss", type=float, metavar="PERCENT", help="of the packets, in each direction")
    parser.add_argument("command", nargs="+", help="@ssh stands for the program that runs commands on the hosts")
    arguments = parser.parse_args()
    if (missing := what_is_missing()) is not None:
        sys.exit(f"no test hosts: {missing}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _on_signal)
    if arguments.delay is not None and arguments.loss is not None:
        parser.error("--loss and --delay exclude each other")
    with TestHosts(arguments.count, rate=arguments.rate, mtu=arguments.mtu, delay_ms=arguments.delay) as hosts:
        for host in hosts.hosts:
            if arguments.loss is not None:
                host.lose(arguments.loss)
        command = [word.replace("@ssh", hosts.ssh) for word in arguments.command]
        process = subprocess.Popen(command)
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # the command has received it too, and ends by itself
                time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main())
