"""``unisono info``, ``bench`` and ``tune`` on several hosts: on pretended hosts, and with wrong options."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest

from pretend_hosts import run_on_hosts, run_verb
from unisono.cli.main import main
from unisono.collectives import all_reduce
from unisono.comm import tuning
from unisono.comm.selection import choose
from unisono.comm.tables import load_table


def test_info_shows_the_hosts_and_the_link_of_every_pair():
    results = run_on_hosts(run_verb, ["a", "b", "b"], ["info"])
    assert [code for code, _, _ in results] == [0, 0, 0]
    shown = results[0][1]
    assert "round trip" in shown
    assert "Gbit/s" in shown
    assert "tcp (no RDMA" in shown
    assert [out for _, out, _ in results[1:]] == ["", ""]


def test_info_as_json_has_the_same_facts():
    results = run_on_hosts(run_verb, ["a", "b"], ["info", "--json"])
    facts = json.loads(results[0][1])
    assert [host["ranks"] for host in facts["hosts"]] == [[0], [1]]
    assert {"host", "unisono", "python", "interface", "address", "transport", "cores"} <= set(facts["hosts"][0])
    (link,) = facts["links"]
    assert link["round_trip_us"] > 0
    assert min(link["bytes_per_s"]) > 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["info", "--hosts", "a"], "one host has no links"),
        (["info", "--hosts", "a,a"], "a"),
        (["info", "--hosts", "a,b", "--in-job"], "cannot be combined"),
        (["info", "--in-job"], "this process is not one of several ranks"),
        (["info", "--ssh", "x"], "--ssh needs --hosts"),
        (["bench", "--rendezvous", "a:1"], "--rendezvous needs --hosts"),
        (["bench", "--rate", "10Gbit"], "--rate needs --hosts"),
        (["bench", "--hosts", "a:2,b:2", "--rate", "fast"], "--rate fast"),
        (["bench", "--hosts", "a:2,b:2", "--against", "openmpi"], "expected gloo, unisono or unisono:ALGORITHM"),
        (["bench", "--hosts", "a:2,b:2", "--against", "unisono:rong"], "did you mean 'ring'"),
        (["bench", "--hosts", "a:2,b:2", "--bytes", "eight"], "--bytes eight"),
        (["info", "--in-job", "--tls-key", "k"], "this process is not one of several ranks"),
        (["tune", "--hosts", "a:1"], "nothing to select"),
        (["tune", "--hosts", "a:0,b"], "a:0"),
    ],
)
def test_wrong_options_are_rejected_before_any_rank_starts(capsys, words, complaint):
    assert main(words) == 2
    assert complaint in capsys.readouterr().err


@pytest.fixture
def ssh(tmp_path):
    """Return a stand-in for ssh that starts the agents on this machine; the host "gone" cannot be reached."""
    path = tmp_path / "ssh"
    gone = '[ "$1" = gone ] && { echo "ssh: connect to host gone port 22: No route to host" >&2; exit 255; }'
    path.write_text(f'#!/bin/sh\n{gone}\nshift\nexec setsid /bin/sh -c "$*"\n')
    path.chmod(0o700)
    return str(path)


def run(*words):
    return subprocess.run([sys.executable, "-m", "unisono", *words], capture_output=True, text=True, timeout=120)


def test_a_host_that_does_not_answer_is_named(ssh):
    done = run("info", "--hosts", "localhost,gone", "--ssh", ssh)
    assert done.returncode == 1
    assert "ssh: connect to host gone port 22" in done.stderr
    assert "the agent on host gone ended without a report" in done.stderr


def test_a_rendezvous_that_is_taken_names_the_host_and_the_port(ssh):
    """A process that is not a rank listens at the port of the rendezvous, so rank 0 cannot, and no rank can join."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ["--rendezvous", f"127.0.0.1:{port}", "--connect-timeout", "1"]
        done = run("info", "--hosts", "a,b", "--ssh", ssh, *options)
    assert done.returncode == 3
    assert f"in a job whose rank 0 is at 127.0.0.1:{port}" in done.stderr
    assert f"rank 0 cannot listen at 127.0.0.1:{port}" in done.stderr


@pytest.mark.long
def test_a_host_with_another_token_is_named_with_the_address_that_refused_it(ssh, tmp_path):
    """The token of the second host is altered on its way to the agent."""
    wrong = tmp_path / "wrong_ssh"
    alter = 'sed -u "s/\\"token\\": \\"[0-9a-f]*/\\"token\\": \\"another token of 16 characters/"'
    wrong.write_text(f'#!/bin/sh\nif [ "$1" = b ]; then {alter} | {ssh} "$@"; else exec {ssh} "$@"; fi\n')
    wrong.chmod(0o700)
    done = run("info", "--hosts", "127.0.0.1,b", "--ssh", str(wrong), "--connect-timeout", "5")
    assert done.returncode in (2, 3)
    host = socket.gethostname()
    assert f"UsageError rank 1 on host {host}, in a job whose rank 0 is at 127.0.0.1:" in done.stderr
    assert "was refused by rank 0 at 127.0.0.1:" in done.stderr
    assert "their tokens differ" in done.stderr


BENCH = ["bench", "--repeats", "1", "--time-budget", "0.01", "--bytes", "8,64KiB"]


def test_bench_has_the_columns_of_one_host_and_the_ratio_to_the_bound():
    results = run_on_hosts(run_verb, ["a", "a", "b"], [*BENCH, "--against", "unisono:ring", "--rate", "1Gbit"])
    assert [code for code, _, _ in results] == [0, 0, 0]
    printed = results[0][1]
    assert "all_reduce, 3 ranks on 2+1, links of 1 Gbit/s" in printed
    assert "bound" in printed
    assert "unisono:ring" in printed
    assert "float32  sum" in printed
    assert [out for _, out, _ in results[1:]] == ["", ""]


def test_bench_as_json_has_the_bound_and_measures_the_rate_if_none_is_given():
    results = run_on_hosts(run_verb, ["a", "b"], [*BENCH, "all_gather", "--json"])
    facts = json.loads(results[0][1])
    assert facts["hosts"] == [1, 1]
    assert facts["link_bytes_per_s"] > 0
    case = facts["cases"][-1]
    assert case["bound_us"] == pytest.approx(0.5 * case["bytes"] / facts["link_bytes_per_s"] * 1e6)
    assert case["results"][0]["calls"] > 0
    assert case["results"][0]["wrong"] == 0


@pytest.mark.slow
@pytest.mark.long
def test_bench_measures_gloo_in_the_same_processes():
    pytest.importorskip("torch")
    results = run_on_hosts(run_verb, ["a", "b"], [*BENCH, "--against", "gloo", "--json"])
    facts = json.loads(results[0][1])
    assert [each["contender"] for each in facts["cases"][0]["results"]] == ["unisono", "gloo"]
    assert all(each["wrong"] == 0 for case in facts["cases"] for each in case["results"])


def test_tune_stores_a_table_for_the_topology_and_calls_use_it(monkeypatch):
    monkeypatch.setattr(tuning, "SIZES_BYTES", (8, 2048))
    results = run_on_hosts(run_verb, ["a", "a", "b"], ["tune", "--budget", "0.2", "--json"])
    assert [code for code, _, _ in results] == [0, 0, 0], results
    assert json.loads(results[0][1])["topology"] == "2+1"
    rules = load_table()["all_reduce"]["2+1"]
    hosts = ((0, 1), (2,))
    chosen = choose(all_reduce, 3, 8, load_table(), hosts=hosts)
    assert chosen.algorithm.name == rules[0][1]
    assert "on such hosts" in chosen.reason
    assert "predicted" in choose(all_reduce, 3, 8, load_table(), hosts=((0,), (1,), (2,))).reason
