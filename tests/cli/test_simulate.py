"""``unisono simulate``."""

from __future__ import annotations

import json
import re
import signal
import threading
import webbrowser
from pathlib import Path

import numpy as np
import pytest

import unisono
from unisono.cli.main import main
from unisono.cli.simulate import format_time
from unisono.simulator import events, simulation
from unisono.simulator.costs import costs_of

ZIGZAG = str(Path(__file__).parents[2] / "examples" / "zigzag.py")


def test_the_fastest_algorithm_comes_first_with_the_parts_of_its_time(capsys):
    assert main(["simulate", "tree", "ring", "-n", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("all_reduce, 5 ranks, 1 MiB, on ideal: ")
    assert lines[2].split()[:6] == ["ring", "176", "us", "1.00×", "5%", "95%"]
    assert lines[3].startswith("tree")
    assert "ring: simulated, folded into" in lines[4]


def test_in_chinese_the_network_the_links_and_the_method_are_chinese_too(capsys):
    assert main(["simulate", "ring", "-n", "16", "--network", "dgx-h100", "--lang", "zh"]) == 0
    printed = capsys.readouterr().out
    assert "DGX H100：NVSwitch（支持交换机内归约）连接 8 个 GPU" in printed
    assert "从主机 0 网卡 0 出发的链路" in printed
    assert "ring：模拟方式：折叠为 8 类；480 条消息；每块 1 段；消息不共享链路" in printed


def test_json_holds_the_predictions_of_every_size_and_algorithm(capsys):
    assert main(["simulate", ZIGZAG, "ring", "-n", "3", "--bytes", "8,1KiB", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [(each["algorithm"], each["bytes"]) for each in data] == [
        ("all_reduce/zigzag", 8), ("all_reduce/ring", 8), ("all_reduce/zigzag", 1024), ("all_reduce/ring", 1024),
    ]  # fmt: skip
    ring = unisono.simulate(unisono.find("all_reduce/ring").schedule(3), 8, "ideal")
    assert data[1]["time_s"] == ring.time_s
    assert sum(data[1]["critical_path"].values()) == pytest.approx(ring.time_s)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["rign"], "did you mean 'all_reduce/ring'?"),
        (["ring", "--network", "dgx-h10"], "did you mean 'dgx-h100'?"),
        (["ring", "--network", "polaris", "-n", "100000"], "expected: between 1 and 2240 ranks"),
        (["ring", "all_gather/ring"], "expected: an algorithm for all_reduce"),
        (["ring", "--bytes", "many"], "many"),
        (["ring", "--codec", "fp3"], "fp3"),
        (["ring", "--codec", "topk:0.1"], "simulate that all_gather"),
        (["ring", "--no-open"], "expected: --draw as well"),
        (["ring", "-o", "page.html"], "expected: --draw as well"),
        (["ring", "--draw", "--no-open"], "--no-open without -o would discard the page"),
    ],
)
def test_arguments_that_make_no_sense_are_explained(capsys, arguments, text):
    assert main(["simulate", *arguments]) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("nbytes", [-1, 1.5, True, "1MiB"])
def test_bytes_are_a_whole_number(nbytes):
    with pytest.raises(unisono.UsageError, match="nbytes"):
        unisono.simulate(unisono.find("ring").schedule(3), nbytes, "ideal")


def test_times_have_three_digits():
    assert [format_time(each) for each in (0.0, 1.5e-9, 0.00012345, 0.0123456, 12.3456)] == [
        "0 s", "1.50 ns", "123 us", "12.3 ms", "12.3 s",
    ]  # fmt: skip


@pytest.mark.parametrize("contention", [False, True])
def test_a_signal_interrupts_the_native_event_loop(contention):
    programs, costs, bandwidth = arguments_of("all_to_all/naive", 48, 100_000, contention)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        events.run(programs, costs, simulation.room_of(programs, 8), bandwidth, record=False)
    timer.join()


@pytest.mark.parametrize("contention", [False, True])
def test_progress_counts_the_actions(contention):
    programs, costs, bandwidth = arguments_of("all_reduce/ring", 8, 3000, contention)
    seen: list[int] = []
    events.run(programs, costs, None, bandwidth, record=False, progress=seen.append)
    assert np.all(np.diff(seen) >= 0)
    assert seen[-1] == 3000 * len(programs.rows)
    assert len(set(seen)) > 2


def arguments_of(name, size, passes, contention):
    network, algorithm = simulation.load("fugaku" if contention else "ideal"), unisono.find(name)
    schedule = algorithm.schedule(size)
    programs = simulation.rank_by_rank(schedule, network)
    sent = programs.most_sent
    cut = simulation.cut_for(schedule, algorithm.collective, sent, 1 << 20, network, None, "float32", passes)
    return programs, costs_of(programs, network, cut), network.links(size).bandwidth if contention else None


@pytest.fixture
def opened(monkeypatch):
    """Record the pages that would be opened in a browser."""
    addresses: list[str] = []
    monkeypatch.setattr(webbrowser, "open", addresses.append)
    return addresses


def test_draw_writes_and_opens_the_animation_of_one_algorithm(tmp_path, capsys, opened):
    page = tmp_path / "ring.html"
    arguments = ["--bytes", "64KiB", "--network", "dgx-h100", "--draw", "-o", str(page)]
    assert main(["simulate", "ring", "-n", "13", *arguments]) == 0
    assert opened == [page.as_uri()]
    assert "all_reduce/ring · 13 · dgx-h100" in capsys.readouterr().out
    simulated = data_of(page)["simulated"]
    expected = unisono.simulate(unisono.find("ring").schedule(13), 1 << 16, "dgx-h100")
    assert simulated["prediction"]["time_s"] == expected.time_s


def test_draw_lets_several_algorithms_race_on_the_network_and_at_the_size(tmp_path, capsys, opened):
    page = tmp_path / "race.html"
    arguments = ["-n", "3", "--bytes", "3000", "--codec", "bf16", "--draw", "--no-open", "-o", str(page), "--json"]
    assert main(["simulate", "all_gather/ring", "bruck", *arguments]) == 0
    printed = capsys.readouterr()
    predictions = json.loads(printed.out)  # the path of the page is not part of it
    assert "race.html" in printed.err
    assert opened == []
    data = data_of(page)
    race, (network,) = data["race"], data["race"]["networks"]
    assert [scene["label"] for scene in data["scenes"]] == ["all_gather/ring", "all_gather/bruck"]
    assert (network["name"], race["bytes"]) == ("ideal", 3000)
    at = race["sizes"].index(3000)
    assert [finish[at] for finish in network["finish"]] == [each["time_s"] for each in predictions]


def test_draw_shows_the_sizes_that_were_given(tmp_path, capsys):
    page = tmp_path / "sizes.html"
    assert main(["simulate", "ring", "-n", "2", "--bytes", "8,1KiB", "--draw", "--no-open", "-o", str(page)]) == 0
    assert data_of(page)["race"]["sizes"] == [8, 1024]


def data_of(page):
    text = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    return json.loads(text[1])
