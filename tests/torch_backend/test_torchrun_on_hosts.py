"""torchrun starts ranks on test hosts (tools/test_hosts.py), which have separate networks, processes and memory.

The losses are compared with those of one process that has all the data.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from test_hosts import TestHosts, what_is_missing

pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("torchrun_program.py")
TRAIN = ROOT / "examples" / "train.py"
PORT = 29500
LIMIT_S = 280.0
missing = what_is_missing()
pytestmark = [
    pytest.mark.hosts,
    pytest.mark.long,  # each test starts six processes that import torch
    pytest.mark.skipif(missing is not None, reason=f"SKIPPED, NOT TESTED: torchrun on several hosts ({missing})"),
]


@pytest.fixture(scope="module")
def hosts():
    with TestHosts(2) as made:
        yield made


@pytest.fixture
def four_hosts():
    with TestHosts(4) as made:
        yield made


def start_agent(host, options, program):
    """Start torchrun on a host."""
    return subprocess.Popen(
        host.command(sys.executable, "-m", "torch.distributed.run", *options, *map(str, program)),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip


def static_rendezvous(number):
    return ["--node-rank", str(number), "--master-addr", "a", "--master-port", str(PORT)]


def torchrun(hosts, *program, options=None, each=2):
    """Run a program with torchrun on ``each`` ranks of each host; return the output of each host."""
    size = ["--nnodes", str(hosts.count), "--nproc-per-node", str(each)]
    agents = [
        start_agent(host, [*size, *(options or static_rendezvous(number))], program)
        for number, host in enumerate(hosts.hosts)
    ]
    try:
        outputs = [agent.communicate(timeout=LIMIT_S)[0] for agent in agents]
    finally:
        for agent in agents:
            agent.kill()
            agent.wait()
    assert [agent.returncode for agent in agents] == [0] * hosts.count, "\n".join(outputs)
    return outputs


def train(hosts, each, folder):
    """Train in several ways on ``each`` ranks of each host; return the facts after the checks for any hosts."""
    torchrun(hosts, PROGRAM, folder / "facts", folder / "checkpoint", each=each)
    facts = json.loads((folder / "facts").read_text())
    assert facts["messages"]
    assert facts["apart"] > 1e-2  # without communication, the losses differ
    names = {"DDP", "FSDP2", "FSDP2, hybrid", "Zero, hybrid", "tensor parallel", "pipeline", "checkpoint"}
    assert facts["differences"].keys() == names
    assert max(facts["differences"].values()) < 1e-6
    assert facts["differences"]["checkpoint"] == 0
    assert facts["used"] == 1  # all groups share one port
    assert facts["left"] == 0
    return facts


def test_training_on_two_hosts_matches_one_process(hosts, tmp_path):
    facts = train(hosts, 2, tmp_path)
    assert facts["hosts"] == [[0, 1], [2, 3]]
    assert facts["shards"] == [1, 2]  # Zero shards inside a host
    assert facts["near"] == [[0, 1]]  # and so does the mesh of FSDP2
    assert facts["far"] == [[0], [1]]


def test_training_on_four_hosts_matches_one_process(four_hosts, tmp_path):
    facts = train(four_hosts, 1, tmp_path)
    assert facts["hosts"] == [[0], [1], [2], [3]]
    assert facts["shards"] == [1, 1]
    assert facts["near"] == [[0]]
    assert facts["far"] == [[0], [1], [2], [3]]


def losses_in(output):
    """Return the losses of the steps that examples/train.py prints."""
    return [float(loss) for loss in re.findall(r"step +\d+ of \d+: loss ([0-9.]+)", output)]


@pytest.mark.parametrize("strategy", ["ddp", "zero3", "hybrid"])
def test_the_training_example_prints_the_same_losses_on_two_hosts_as_in_one_process(hosts, strategy):
    options = [TRAIN, "--steps", 4, "--sample", 5]
    alone = subprocess.run(
        [sys.executable, *map(str, options)], capture_output=True, text=True, timeout=LIMIT_S, check=True
    )
    expected = losses_in(alone.stdout)
    assert len(expected) == 4
    output = torchrun(hosts, *options, "--strategy", strategy)[0]
    assert losses_in(output) == pytest.approx(expected, abs=2e-4)
    words = [sys.executable, "-m", "unisono", "run", "--ssh", hosts.ssh, "--hosts", "a:2,b:2", "--oversubscribe"]
    run = subprocess.run(
        [*words, sys.executable, *map(str, options), "--strategy", strategy], capture_output=True, text=True,
        timeout=LIMIT_S,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert losses_in(run.stdout) == pytest.approx(expected, abs=2e-4)


ENDS_ONCE = """
import os, sys
import torch, torch.distributed as dist
say = lambda *words: os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # at once: ranks share the output
restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("unisono")
dist.all_reduce(torch.ones(3))
if restarts == 0 and os.uname().nodename == "b" and os.environ["LOCAL_RANK"] == "1":
    say("ends", dist.get_rank())
    os._exit(9)
total = torch.ones(3)
try:
    dist.all_reduce(total)
except dist.DistBackendError as error:
    say("raised", error)
    sys.exit(1)
say("sum", total[0].item())
dist.destroy_process_group()
"""


SHRINKS = """
import os, sys
import torch, torch.distributed as dist
import torch.distributed.checkpoint as dcp
say = lambda *words: os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # at once: ranks share the output
folder = sys.argv[1]
dist.init_process_group("unisono")
state = {"step": torch.zeros(1)}
if os.path.exists(folder + "/.metadata"):
    dcp.load(state, checkpoint_id=folder)
first = int(state["step"])
say("begins", dist.get_world_size(), first)
for step in range(first, 6):
    total = torch.ones(1)
    dist.all_reduce(total)
    state["step"] += 1
    if step < 3 and dist.get_world_size() == 4:
        dcp.save(state, checkpoint_id=folder)
    if step == 2 and dist.get_world_size() == 4:
        open(folder + "/saved", "w").close()
        while True:  # until host b is gone
            dist.all_reduce(torch.ones(1))
say("ends", dist.get_world_size(), int(state["step"]))
dist.destroy_process_group()
"""


def test_an_elastic_job_continues_from_its_checkpoint_when_a_host_dies(tmp_path):
    program, folder = tmp_path / "program.py", tmp_path / "checkpoint"
    folder.mkdir()
    program.write_text(SHRINKS)
    limits = "keep_alive_interval=1,keep_alive_max_attempt=3,last_call_timeout=2"
    words = f"--nnodes 1:2 --max-restarts 3 --rdzv-backend c10d --rdzv-id y --rdzv-endpoint a:{PORT}".split()
    with TestHosts(2) as hosts:
        agents = [
            start_agent(host, [*words, "--nproc-per-node", "2", "--rdzv-conf", limits], [program, folder])
            for host in hosts.hosts
        ]
        try:
            deadline_s = time.monotonic() + LIMIT_S
            while not (folder / "saved").exists():
                assert time.monotonic() < deadline_s
                assert agents[0].poll() is None, agents[0].communicate()[0]
                time.sleep(0.1)
            hosts["b"].kill()
            output = agents[0].communicate(timeout=LIMIT_S)[0]
        finally:
            for agent in agents:
                agent.kill()
                agent.wait()
    assert agents[0].returncode == 0, output
    assert output.count("begins 4 0") == 2, output
    assert re.search(r"PeerLost: rank [23] .*on host b", output), output
    assert output.count("begins 2 3") == output.count("ends 2 6") == 2, output


def test_a_job_whose_rank_has_ended_is_restarted_on_all_hosts(hosts, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(ENDS_ONCE)
    words = f"--max-restarts 1 --rdzv-backend c10d --rdzv-id x --rdzv-endpoint a:{PORT}".split()
    output = "".join(torchrun(hosts, program, options=words))
    rank = re.search(r"ends (\d)", output)
    assert rank is not None, output
    # torchrun may end the other rank of host b before the ranks of host a have raised; then they may name that one.
    errors = re.findall(r"raised rank (\d)(?: \(process \d+\))? on host (\w+) (?:has ended|is lost)", output)
    assert len(errors) == output.count("raised "), output
    assert set(errors) <= {(rank[1], "b"), (str(int(rank[1]) ^ 1), "b")}, output
    assert output.count("sum 4.0") == 4, output
