"""``unisono run --hosts --trace`` between test hosts: one trace, although the hosts have different clocks.

A time namespace gives the ranks of a host a clock that is ahead of that of the other hosts.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from host_jobs import LIMIT_S, run_command
from stories import check_structure
from unisono.bootstrap import ucx_search
from unisono.cli.main import main
from unisono.tracing import read_run, summary
from unisono.tracing.files import headers_in
from unisono.tracing.matching import messages_of

AHEAD_S = 5000
SCRIPT = """
import sys
import numpy as np, unisono
with unisono.connect(transport=sys.argv[1]) as comm:
    for _ in range(5):
        comm.all_reduce(np.ones(30_000, np.float32), algorithm="ring")
    half = comm.split(comm.rank % 2)
    half.all_gather(np.ones(5 * half.size), np.ones(5), algorithm="ring")
    near = comm.split(comm.rank // 2)
    near.all_reduce(np.ones(100), algorithm="ring")
    comm.recv(np.ones(9), 0, tag=4) if comm.rank == 2 else comm.rank == 0 and comm.send(np.ones(9), 2, tag=4)
    comm.barrier()
    if "die" in sys.argv and comm.rank == 0:
        import os
        os.kill(os.getpid(), 9)
    comm.barrier()
"""


@pytest.fixture
def job(hosts, tmp_path):
    """Return a function that runs the script on hosts of which b has another clock."""
    (tmp_path / "script.py").write_text(SCRIPT)
    ssh = tmp_path / "ssh"
    other_clock = f'exec {hosts.ssh} b unshare --time --monotonic {AHEAD_S} --fork -- "$@"'
    ssh.write_text(f'#!/bin/sh\nhost=$1; shift\n[ "$host" = b ] && {other_clock}\nexec {hosts.ssh} "$host" "$@"\n')
    ssh.chmod(0o700)

    def run(*words):
        options = ["--ssh", str(ssh), "--trace", str(tmp_path / "trace")]
        command = run_command(hosts, "aabb", str(tmp_path / "script.py"), *words, options=options)
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)

    return run


@pytest.mark.parametrize(
    "transport",
    ["tcp", pytest.param("ucx", marks=pytest.mark.long)],
)
def test_the_trace_of_a_job_on_several_hosts_is_one_file_with_one_clock(job, tmp_path, transport):
    if transport == "ucx" and not ucx_search.packaged_libraries():
        pytest.skip("SKIPPED, NOT TESTED OVER UCX (pip install libucx-cu12)")
    done = job(transport)
    path = tmp_path / "trace" / "run.json"
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(f"trace of 4 ranks: {path} (")
    assert [each.name for each in path.parent.iterdir()] == ["run.json"]
    check_structure(path)
    run = read_run(path)
    assert [len(group.job_ranks) for group in run.communicators] == [4, 2, 2, 2, 2]
    uncertain_ns = set()
    for group in run.communicators:
        for call in group.calls:
            for message in messages_of(call):
                limit_ns = group.uncertainty_ns(message.src, message.dst)
                assert message.received.end_ns + limit_ns > message.sent.begin_ns
                uncertain_ns.add(limit_ns)
    print(f"MEASURED uncertainty of the clocks: {max(uncertain_ns) / 1000:.1f} µs")
    assert len(uncertain_ns) == 2
    assert max(uncertain_ns) < 1e9
    for header in headers_in(path):
        shift_s = header["alignment"]["offset_ns"] / 1e9
        assert round(shift_s) == (-AHEAD_S if header["job_rank"] >= 2 else 0)
    assert "on 2 hosts: a (ranks 0, 1), b (ranks 2, 3)" in summary(run)
    assert main(["draw", str(path.parent), "--no-open", "-o", str(tmp_path / "page.html")]) == 0


@pytest.mark.long
def test_the_traces_of_the_survivors_of_a_job_on_several_hosts_are_one_file(job, tmp_path):
    done = job("tcp", "die")
    assert done.returncode == 128 + 9
    assert "trace of 3 ranks, without rank 0: " in done.stderr
    path = tmp_path / "trace" / "run.json"
    groups = read_run(path, missing_ok=True).communicators
    assert any(group.missing == [0] and group.size == 4 for group in groups)
    parts = json.loads(path.read_text())["otherData"]["unisono"]["parts"]
    assert {part["job_rank"] for part in parts} == {1, 2, 3}


TRAINING = """
import torch, torch.distributed as dist
import unisono.torch_backend
dist.init_process_group("unisono")
for _ in range(5):
    dist.all_reduce(torch.ones(30_000))
near, far = dist.new_group([2, 3]), dist.new_group([0, 3])
for group, ranks in ((near, (2, 3)), (far, (0, 3))):
    if dist.get_rank() in ranks:
        dist.all_reduce(torch.ones(100), group=group)
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.long
def test_the_traces_of_one_launcher_on_each_host_are_merged(hosts, tmp_path):
    """The ranks are started by torchrun. The launchers do not know each other, and each writes to its own folder."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(TRAINING)
    started = []
    for node, name in enumerate("ab"):
        torchrun = ["-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "2", "--node-rank", str(node)]
        address = ["--master-addr", hosts["a"].address, "--master-port", "29511", str(tmp_path / "train.py")]
        traced = ["-m", "unisono", "run", "-n", "1", "--trace", str(tmp_path / name), "--"]
        clock = ["unshare", "--time", "--monotonic", str(AHEAD_S), "--fork", "--"] if name == "b" else []
        words = [*clock, sys.executable, *traced, sys.executable, *torchrun, *address]
        started.append(subprocess.Popen(hosts[name].command(*words), stderr=subprocess.PIPE, text=True))
    said = [process.communicate(timeout=2 * LIMIT_S)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    assert all(f"trace of 2 ranks: {tmp_path / name}" in text for name, text in zip("ab", said, strict=True))
    path = tmp_path / "all.json"
    assert main(["merge", str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(path)]) == 0
    check_structure(path)
    run = read_run(path)
    members = {tuple(sorted(group.job_ranks.values())) for group in run.communicators}
    assert members == {(0, 1, 2, 3), (2, 3), (0, 3)}
    for header in headers_in(path):
        assert round(header["alignment"]["offset_ns"] / 1e9) == (-AHEAD_S if header["job_rank"] >= 2 else 0)
