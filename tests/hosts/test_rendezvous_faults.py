"""Links and hosts that fail while the ranks of a job connect, and names that resolve late, on test hosts."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from host_jobs import run_command

HOST_S = 6.0  # a cut link or a dead host is reported within this time
LIMIT_S = 60.0
PORT = 23_458

# Ranks that pause at a step of the rendezvous: before it ("start"), when all ranks are connected ("courier"), when
# those of its host are to meet ("near"), or before the last confirmation ("confirm").
PROGRAM = """
import json, os, sys, time
import unisono
from unisono.bootstrap import network_membership, network_rendezvous, network_star

pauses, folder = json.loads(sys.argv[1]), sys.argv[2]
rank = os.environ["UNISONO_RANK"]

def pause(step):
    if pauses.get(rank) == step:
        open(f"{folder}/{rank}", "w").close()
        time.sleep(30)

def paused(step, function):
    def call(*arguments, **options):
        pause(step)
        return function(*arguments, **options)
    return call

participant = network_rendezvous.Participant
participant._courier_address = paused("courier", participant._courier_address)
network_membership._join_host = paused("near", network_membership._join_host)
network_rendezvous.Participant.leave_couriers = paused("confirm", participant.leave_couriers)
wait = network_star.StarMember.wait

def wait_for_rank_0(self):
    open(f"{folder}/{rank} waits", "w").close()
    return wait(self)

network_star.StarMember.wait = wait_for_rank_0
pause("start")
try:
    unisono.connect(connect_timeout=25).close()
except unisono.UnisonoError as error:
    print(json.dumps([rank, time.monotonic(), type(error).__name__, error.rank, str(error)]), flush=True)
    time.sleep(10)  # the launcher ends the others when a rank has ended
else:
    print(json.dumps([rank, time.monotonic(), "", None, ""]), flush=True)
"""


class Job:
    """A job whose ranks pause at steps of their rendezvous."""

    def __init__(self, hosts, layout, folder, pauses):
        self.folder, self.pauses = folder, pauses
        words = [sys.executable, "-c", PROGRAM, json.dumps(pauses), str(folder)]
        options = ["--no-prefix", "--rendezvous", f"a:{PORT}"]
        self.process = subprocess.Popen(
            run_command(hosts, layout, *words, options=options), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def wait_for_pauses(self):
        ends_s = time.monotonic() + LIMIT_S
        while not all((self.folder / name).exists() for name in (*self.pauses, "2 waits")):
            assert time.monotonic() < ends_s
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.05)
        time.sleep(0.5)  # what the ranks have sent has arrived

    def reports(self, count):
        """Return the reports of ranks, by rank: the time, the kind of the error, the rank at fault, the text."""
        found = {}
        while len(found) < count:
            line = self.process.stdout.readline()
            assert line, self.process.communicate()
            rank, *report = json.loads(line)
            found[int(rank)] = report
        return found

    def end(self):
        self.process.terminate()
        try:
            self.process.communicate(timeout=LIMIT_S)
        finally:
            self.process.kill()


@pytest.mark.parametrize("way", ["cut", pytest.param("kill", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "step", ["start", *(pytest.param(step, marks=pytest.mark.long) for step in ("courier", "near", "confirm"))]
)
def test_a_host_that_is_lost_while_ranks_connect_is_reported_on_both_sides(hosts, tmp_path, step, way):
    """Rank 2 is on host b; rank 1, on host a, pauses, so that ranks 0 and 2 wait."""
    job = Job(hosts, "aab", tmp_path, {"1": step})
    try:
        job.wait_for_pauses()
        since_s = time.monotonic()
        if way == "cut":
            hosts["b"].cut()
        else:
            hosts["b"].run("sh", "-c", "kill -STOP -1")
            hosts["b"].cut()
        waiting = [0, 2] if way == "cut" else [0]
        reports = job.reports(len(waiting))
        assert sorted(reports) == waiting
        for rank, (at_s, kind, about, text) in reports.items():
            print(f"MEASURED {way} at {step}: rank {rank} after {at_s - since_s:.2f} s: {text}")
            assert kind == "PeerLost", text
            assert about == (2 if rank == 0 else 0), text
            assert ("on b" if rank == 0 else "rank 0 at a:") in text
            assert at_s - since_s <= HOST_S
    finally:
        hosts["b"].heal()
        hosts["b"].run("sh", "-c", "kill -CONT -1")
        job.end()


LATE = """
import numpy as np, unisono
with unisono.connect(connect_timeout=40) as comm:
    x = np.ones(1000)
    comm.all_reduce(x)
    print(int(x[0]), flush=True)
"""


def test_a_name_that_resolves_late_is_resolved_again(hosts):
    """Kubernetes publishes the names of its pods with a delay; here, /etc/hosts gets the name late."""
    names = hosts.directory / "hosts"
    before = names.read_text()
    options = ["--no-prefix", "--rendezvous", f"rank-0.late:{PORT}"]
    job = subprocess.Popen(
        run_command(hosts, "aab", sys.executable, "-c", LATE, options=options), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        time.sleep(3.0)
        assert job.poll() is None
        with open(names, "a") as file:
            file.write(f"{hosts['a'].address} rank-0.late\n")
        output, errors = job.communicate(timeout=LIMIT_S)
        assert (job.returncode, output.split(), errors) == (0, ["3", "3", "3"], "")
    finally:
        job.kill()
        names.write_text(before)
