"""``unisono info``, ``bench`` and ``tune`` between test hosts, and their errors when a host is unreachable."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from certificates import Authority, needs_openssl


def run(hosts, *words, limit_s=90):
    return subprocess.run(
        [sys.executable, "-m", "unisono", *words, "--ssh", hosts.ssh], capture_output=True, text=True, timeout=limit_s
    )


def test_info_measures_every_pair_of_hosts_and_names_interface_and_address(hosts):
    done = run(hosts, "info", "--hosts", "a:2,b,c", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert [(each["host"], each["interface"], each["address"]) for each in facts["hosts"]] == [
        (name, "eth0", hosts[name].address) for name in "abc"
    ]
    assert [link["hosts"] for link in facts["links"]] == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert all(link["round_trip_us"] > 0 and min(link["bytes_per_s"]) > 0 for link in facts["links"])


@pytest.mark.long
def test_a_host_that_is_cut_off_is_named_with_the_port_and_the_other_host(hosts):
    hosts["b"].cut()
    options = ["--rendezvous", "a:23458", "--connect-timeout", "4"]
    done = run(hosts, "info", "--hosts", "a,b", *options)
    assert done.returncode == 3
    assert "rank 1 on host b, in a job whose rank 0 is at a:23458" in done.stderr
    assert f"{hosts['a'].address}:23458" in done.stderr


@needs_openssl
@pytest.mark.long
def test_the_links_can_be_measured_with_tls(hosts, tmp_path):
    files = vars(Authority(tmp_path, "authority").issue("every-host"))
    options = [f"--tls-{name}={path}" for name, path in files.items()]
    done = run(hosts, "info", "--hosts", "a,b", "--json", *options)
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert min(facts["links"][0]["bytes_per_s"]) > 0
    assert "TLS" in facts["hosts"][0]["transport"]


def only_port(port):
    """Return a filter of the switch that drops the TCP packets from and to all other ports, as a firewall does."""
    drop, passes = (6, 0, 0, 2), (6, 0, 0, 0xFFFFFFFF)
    instructions = [
        (0x28, 0, 0, 12), (0x15, 0, 8, 0x800),  # not IPv4: pass
        (0x30, 0, 0, 23), (0x15, 0, 6, 6),  # not TCP: pass
        (0xB1, 0, 0, 14), (0x48, 0, 0, 14), (0x15, 3, 0, port), (0x48, 0, 0, 16), (0x15, 1, 0, port), drop, passes,
    ]  # fmt: skip
    return ",".join([str(len(instructions)), *(" ".join(map(str, each)) for each in instructions)])


@pytest.mark.long
def test_a_firewall_that_blocks_the_ports_of_the_ranks_is_reported_with_both_hosts_and_the_port(hosts):
    hosts["b"]._filter(only_port(23459))
    done = run(hosts, "info", "--hosts", "a,b", "--rendezvous", "a:23459")
    assert done.returncode == 3
    assert "PeerLost rank 0 on host a" in done.stderr
    assert f"rank 1 on host b is lost (no connection to {hosts['b'].address} port " in done.stderr


@pytest.mark.long
def test_bench_and_tune_measure_the_ranks_of_all_hosts(hosts, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    short = ["--bytes", "8,1MiB", "--repeats", "1", "--time-budget", "0.05"]
    done = run(hosts, "bench", "--hosts", "a:2,b:2", "--oversubscribe", *short)
    assert done.returncode == 0, done.stderr
    assert "all_reduce, 4 ranks on 2x2, slowest link measured at" in done.stdout
    done = run(hosts, "tune", "--hosts", "a:1,b:1", "--budget", "0.5", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["topology"] == "2x1"
