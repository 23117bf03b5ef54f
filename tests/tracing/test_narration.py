from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from stories import group, ring_of_three, run
from unisono.tracing import summary
from unisono.tracing.facts import Hosts
from unisono.tracing.narration import duration, size

RING = ring_of_three(late=1)
CHINESE = re.compile("[\u4e00-\u9fff]")


# The page formats durations in JavaScript; tests/drawing/page/run/run.test.mjs reads the same list.
DURATIONS = json.loads((Path(__file__).parents[1] / "durations.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("ns", "text"), DURATIONS)
def test_a_duration_has_a_suitable_unit(ns, text):
    assert duration(ns) == text


def test_a_summary_lists_the_calls_the_waits_and_the_critical_path():
    assert summary(run(group(3, RING))).splitlines() == [
        "3 ranks, 1 call in 130 ns: 1 × all_reduce/ring",
        "no rank repeatedly held up the others",
        "waits and their causes:",
        "  rank 0 never waited for rank 1 directly, but 110 ns because of it",
        "  rank 2 waited 110 ns for rank 1 directly, and 110 ns because of it",
        "  rank 0 waited 120 ns for rank 2 directly, and 10 ns because of it",
        "the longest call is call 1 (all_reduce/ring, 250 float32): 130 ns; its critical path:",
        "  rank 1 enters 100 ns after the first rank; its first op starts 0 ns later",
        "  rank 1: send to 2 (10 ns)",
        "  rank 2 notices the message after 0 ns",
        "  rank 2: receive and add from 1 to 0 (10 ns)",
        "  rank 0 notices the message after 0 ns",
        "  rank 0: receive and add from 2 (10 ns)",
    ]


def test_the_chinese_summary_says_the_same():
    recorded = run(group(3, RING, dropped={0: 3, 1: 4}))
    english, chinese = (summary(recorded, language).splitlines() for language in ("en", "zh"))
    assert len(english) == len(chinese)
    for one, other in zip(english, chinese, strict=True):
        assert not CHINESE.search(one)
        assert CHINESE.search(other)
        numbers = [sorted(re.findall(r"\d+ (?:ns|µs)", line)) for line in (one, other)]
        assert numbers[0] == numbers[1]


def test_missing_data_is_reported():
    text = summary(run(group(3, RING, missing=[1], dropped={0: 3, 2: 4})))
    assert "there is no trace of rank 1: it ended before it wrote one" in text
    assert "the oldest 7 events were dropped" in text


def test_a_chinese_summary_lists_ranks_with_the_chinese_comma():
    text = summary(run(group(5, RING, missing=[3, 4])), "zh")
    assert "没有 rank 3、4 的跟踪记录" in text


def test_several_communicators_are_identified_by_their_ranks_in_the_job():
    text = summary(run(group(3, RING), group(1)))
    assert "3 ranks (0, 1, 2 of the job), 1 call in 130 ns: 1 × all_reduce/ring" in text
    assert "\n\n1 rank (0 of the job), 0 calls in -: " in text


ON_HOSTS = dataclasses.replace(
    group(3, RING), hosts=Hosts(("a.example.org", "b"), (0, 1, 0)), uncertainties_ns={0: 0, 1: 12_000, 2: 0}
)


def test_on_several_hosts_a_summary_names_hosts_bytes_and_the_uncertainty_of_the_clocks():
    lines = summary(run(ON_HOSTS)).splitlines()
    assert lines[1:4] == [
        "on 2 hosts: a.example.org (ranks 0, 2), b (rank 1)",
        "the ranks sent 1 kB inside their hosts and 1 kB between hosts",
        "the clocks of the hosts differ from that of rank 0 by 12 µs at most after their alignment",
    ]
    assert "  rank 2 (a) waited 110 ns for rank 1 (b) directly, and 110 ns because of it" in lines
    chinese = summary(run(ON_HOSTS), "zh").splitlines()
    assert chinese[1:4] == [
        "位于 2 台主机：a.example.org（rank 0、2）、b（rank 1）",
        "各 rank 在主机内发送了 1 kB，在主机间发送了 1 kB",
        "各主机的时钟已对齐，与 rank 0 的时钟最多相差 12 µs",
    ]


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (14_400_000, "14.4 MB"), (5e12, "5000 GB")]
)
def test_a_number_of_bytes_has_a_suitable_unit(count, text):
    assert size(count) == text
