"""torchrun starts ranks on test hosts (tools/test_hosts.py), which have separate networks, processes and memory.

The losses are compared with those of one process that has all the data.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
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


def torchrun(hosts, *program, options=None):
    """Run a program with torchrun on two ranks of each host; return the output of each host."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    agents = [
        subprocess.Popen(
            host.command(
                sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "2",
                *(options or ["--node-rank", str(number), "--master-addr", "a", "--master-port", str(PORT)]),
                *map(str, program),
            ),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
        )
        for number, host in enumerate(hosts.hosts)
    ]  # fmt: skip
    try:
        outputs = [agent.communicate(timeout=LIMIT_S)[0] for agent in agents]
    finally:
        for agent in agents:
            agent.kill()
            agent.wait()
    assert [agent.returncode for agent in agents] == [0, 0], "\n".join(outputs)
    return outputs


def test_training_on_two_hosts_matches_one_process(hosts, tmp_path):
    torchrun(hosts, PROGRAM, tmp_path / "facts", tmp_path / "checkpoint")
    facts = json.loads((tmp_path / "facts").read_text())
    assert facts["hosts"] == [[0, 1], [2, 3]]
    assert facts["messages"]
    assert facts["apart"] > 1e-2  # without communication, the losses differ
    names = {"DDP", "FSDP2", "FSDP2, hybrid", "Zero, hybrid", "tensor parallel", "checkpoint"}
    assert facts["differences"].keys() == names
    assert max(facts["differences"].values()) < 1e-6
    assert facts["differences"]["checkpoint"] == 0
    assert facts["shards"] == [1, 2]  # Zero shards inside a host
    assert facts["near"] == [[0, 1]]  # and so does the mesh of FSDP2
    assert facts["far"] == [[0], [1]]
    assert facts["used"] > 0
    assert facts["left"] == 0


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
restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("unisono")
dist.all_reduce(torch.ones(3))
if restarts == 0 and os.uname().nodename == "b" and os.environ["LOCAL_RANK"] == "1":
    print("ends", dist.get_rank(), flush=True)
    os._exit(9)
total = torch.ones(3)
try:
    dist.all_reduce(total)
except dist.DistBackendError as error:
    print("raised", error, flush=True)
    sys.exit(1)
print("sum", total[0].item(), flush=True)
dist.destroy_process_group()
"""


def test_a_job_whose_rank_has_ended_is_restarted_on_all_hosts(hosts, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(ENDS_ONCE)
    words = f"--max-restarts 1 --rdzv-backend c10d --rdzv-id x --rdzv-endpoint a:{PORT}".split()
    output = "".join(torchrun(hosts, program, options=words))
    rank = re.search(r"ends (\d)", output)
    assert rank is not None, output
    # torchrun may end a rank before it has raised.
    errors = re.findall(r"raised rank (\d) \(process \d+\) on host (\w+) has ended", output)
    assert errors == [(rank[1], "b")] * output.count("raised "), output
    assert output.count("sum 4.0") == 4
