"""The page of a run as data: artificial runs with times that can be checked by hand."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import zlib

import numpy as np
import pytest

from stories import call, group, op, rank_call, ring_of_three, run, wait
from unisono import draw, find
from unisono.drawing.packing import HIGH, LOW_BITS, pack
from unisono.drawing.page import Settings
from unisono.drawing.run_data import NO_SCHEDULE, NOT_WHOLE, RANKS_MISSING, WRONG_SCHEDULE
from unisono.drawing.runs import is_trace, write_run_page
from unisono.errors import UsageError
from unisono.schedule.text import format_schedule
from unisono.tracing.facts import Hosts
from unisono.tracing.run import Transfer


def data_of(page):
    """Return the data of the page, as a browser reads it."""
    found = re.search(r'id="data">(.*?)</script>', page.html, re.DOTALL)
    return json.loads(found[1])["run"]


def columns_of(packed):
    """Unpack columns like unpack.mjs."""
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), "<i4").astype(np.int64)
    ends = np.cumsum(packed["lengths"])[:-1]
    columns = dict(zip(packed["names"], map(np.cumsum, np.split(numbers, ends)), strict=True))
    return {
        name: ((columns[name + HIGH] << LOW_BITS if name + HIGH in columns else 0) + column).tolist()
        for name, column in columns.items()
        if not name.endswith(HIGH)
    }


def late(count=4, at=0):
    """Return calls to which rank 1 always comes late."""
    return [ring_of_three(late=1, at=at + 5000 * number, number=number + 1) for number in range(count)]


def two_ranks(number=1, at=0, schedule="naive"):
    """Return a broadcast on two ranks with the schedule of the built-in algorithm."""
    return dataclasses.replace(
        call(
            rank_call(0, at, at + 30, op(0, "send", at + 10, at + 30, to=[1])),
            rank_call(
                1, at + 5, at + 50,
                op(1, "receive", at + 30, at + 50, wait(1, 0, at + 5, at + 30), sources=[0]),
            ),
            number=number, collective="broadcast", algorithm="naive",
        ),
        schedule=schedule,
    )  # fmt: skip


def test_the_slow_rank_is_named_first_in_both_languages():
    page = write_run_page(run(group(3, *late())))
    (found,) = data_of(page)["groups"]
    assert found["slow"] == 1
    assert found["verdict"]["title"] == {"en": "Rank 1 was slow", "zh": "rank 1 较慢"}
    assert found["verdict"]["tale"]["en"] == "The others waited 400 ns for it in 4 of 4 calls."
    assert "It entered its calls late" in found["verdict"]["why"]["en"]
    assert page.verdict[0].en == "Rank 1 was slow"


def test_a_run_without_a_slow_rank_is_reported_as_such():
    verdicts = [
        data_of(write_run_page(run(group(*given))))["groups"][0]["verdict"]["title"]["en"]
        for given in (
            (3, *[ring_of_three(late=number % 3, at=5000 * number, number=number) for number in range(6)]),
            (3, ring_of_three()),
            (1, call(rank_call(0, 0, 10, op(0, "copy", 0, 10)))),
        )
    ]
    assert verdicts == [
        "No rank was slow", "Too few calls to tell whether a rank is slow", "One rank, which waits for no other",
    ]  # fmt: skip


def test_the_page_has_ops_waits_messages_and_the_path_with_their_times():
    (found,) = data_of(write_run_page(run(group(3, *late(2)))))["groups"]
    columns = columns_of(found["packed"])
    assert columns["call_begin"] == [0, 5000]
    assert columns["op_begin"][:3] == [100, 110, 120]
    assert columns["op_end"][:3] == [10, 10, 10]  # their durations
    assert [found["details"][detail][0] for detail in columns["op_detail"][:3]] == ["send", "reduce", "reduce"]
    assert (columns["wait_rank"][0], columns["wait_peer"][0], columns["wait_end"][0]) == (0, 2, 120)
    assert columns["message_sent"][:2] == [0, 1]
    assert [found["whats"][what] for what in columns["path_what"]][:2] == ["begin", "work"]
    assert (columns["call_culprit"], columns["call_lost"]) == ([1, 1], [110, 110])  # 100 late, and 10 for its send


def test_direct_waits_and_their_causes_are_distinguished():
    (found,) = data_of(write_run_page(run(group(3, *late(3)))))["groups"]
    assert [0, 2, 360] in found["waited"]  # rank 0 waits for rank 2, which waits for rank 1, the cause
    assert any(pair[:2] == [0, 1] and pair[2] == 300 for pair in found["blamed"])
    assert not any(pair[:2] == [0, 1] for pair in found["waited"])


def test_times_longer_than_two_seconds_are_exact_to_the_nanosecond():
    far = 7_123_456_789
    (found,) = data_of(write_run_page(run(group(3, ring_of_three(), ring_of_three(at=far, number=2)))))["groups"]
    assert columns_of(found["packed"])["call_begin"] == [0, far]
    assert columns_of(pack({"large": [5, 10**13, -7]}))["large"] == [5, 10**13, -7]


def test_a_call_with_its_schedule_can_be_replayed_at_its_times():
    schedules = {"naive": format_schedule(find("broadcast/naive").schedule(2, 0))}
    made = dataclasses.replace(run(group(2, two_ranks(), two_ranks(2, 900))), schedules=schedules)
    data = data_of(write_run_page(made))
    assert [scene["label"] for scene in data["scenes"]] == ["broadcast/naive"]  # one for both calls
    columns = columns_of(data["groups"][0]["packed"])
    assert (columns["call_scene"], columns["call_why"]) == ([0, 0], [0, 0])
    assert (columns["time_sent"], columns["time_taken"]) == ([10, 10], [40, 40])
    assert columns["time_finished"] == [10, 50, 10, 50]


def test_the_reason_why_a_call_cannot_be_replayed_is_stored():
    schedules = {"naive": format_schedule(find("broadcast/naive").schedule(2, 0)), "nonsense": "what is this?"}
    alone = two_ranks(3)
    alone = dataclasses.replace(alone, ranks={0: alone.ranks[0]})
    failed = two_ranks(4)
    failed.ranks[1].failed = True
    calls = [two_ranks(1, schedule="unknown"), two_ranks(2, schedule="nonsense"), alone, failed]
    made = dataclasses.replace(run(group(2, *calls)), schedules=schedules)
    columns = columns_of(data_of(write_run_page(made))["groups"][0]["packed"])
    assert columns["call_why"] == [NO_SCHEDULE, WRONG_SCHEDULE, RANKS_MISSING, NOT_WHOLE]
    assert columns["call_scene"] == [-1] * 4


def test_a_schedule_of_another_call_is_not_replayed():
    ring = format_schedule(find("all_reduce/ring").schedule(2))
    texts = {
        "other size": format_schedule(find("broadcast/naive").schedule(3, 0)),
        "other collective": ring,
        "wrong": ring.replace("all_reduce", "broadcast").replace("size 2", "size 2\nroot 0"),
        "huge": ring.replace("chunks 2", "chunks 999999999").replace("slots 2", "slots 999999999"),
    }
    calls = [two_ranks(number, 1000 * number, schedule=name) for number, name in enumerate(texts)]
    page = write_run_page(dataclasses.replace(run(group(2, *calls)), schedules=texts))
    assert columns_of(data_of(page)["groups"][0]["packed"])["call_why"] == [WRONG_SCHEDULE] * 4


def test_the_communicator_with_the_most_time_in_calls_is_first():
    small = dataclasses.replace(group(1, call(rank_call(0, 0, 10, op(0, "copy", 0, 10)))), communicator="small")
    sizes = [found["size"] for found in data_of(write_run_page(run(small, group(3, *late()))))["groups"]]
    assert sizes == [3, 1]


def test_a_communicator_with_only_sends_and_receives_is_drawn():
    both = [Transfer(0, 1, True, 0, 8, 1, 500, 600), Transfer(1, 0, False, 0, 8, 1, 450, 650)]
    made = dataclasses.replace(group(2), transfers=both)
    columns = columns_of(data_of(write_run_page(run(made)))["groups"][0]["packed"])
    assert sorted(columns["transfer_begin"]) == [0, 50]


def test_of_too_many_events_the_first_calls_are_drawn_and_the_page_says_so():
    events = sum(len(one.ops) + len(one.waits) for one in ring_of_three(late=1).ranks.values())
    page = write_run_page(run(group(3, *late(20))), most_events=5 * events)
    (found,) = data_of(page)["groups"]
    assert found["call_count"] == 5
    assert "Calls 1 to 5 of 20 are drawn" in found["notes"][0]["en"]
    assert "--calls 6-" in page.notes[0].en
    assert "第 1 至 5 次调用" in page.notes[0].zh
    assert "in 20 of 20 calls" in page.verdict[1].en  # the analysis covers all calls


def test_a_call_that_is_too_large_for_a_page_is_rejected_with_a_hint():
    small = call(rank_call(0, 0, 10, op(0, "copy", 0, 10)), number=7)
    made = run(group(3, small, *late(2)))
    with pytest.raises(
        UsageError, match=r"call 1, 2 \(all_reduce/ring\) has \d+ ops and waits; a page holds 3\. .*--calls"
    ):
        write_run_page(made, most_events=3)
    assert write_run_page(made, calls=(7, 7), most_events=3).html


def test_of_too_many_sends_the_first_are_drawn_and_the_page_says_so():
    sends = [Transfer(0, 1, True, 0, 8, number, 10 * number, 10 * number + 5) for number in range(50)]
    page = write_run_page(run(dataclasses.replace(group(2), transfers=sends)), most_events=20)
    (found,) = data_of(page)["groups"]
    assert len(columns_of(found["packed"])["transfer_begin"]) == 20
    assert found["notes"][0]["en"].startswith("The first 20 of 50 sends and receives are drawn")


def test_other_calls_can_be_selected():
    made = run(group(3, *late(20)))
    numbers = {
        calls: columns_of(data_of(write_run_page(made, calls=calls))["groups"][0]["packed"])["call_number"]
        for calls in ((7, 9), (18, None), (4, 4))
    }
    assert numbers == {(7, 9): [7, 8, 9], (18, None): [18, 19, 20], (4, 4): [4]}
    with pytest.raises(UsageError, match="there are no calls 30-40; expected some of 1-20"):
        write_run_page(made, calls=(30, 40))


def test_small_communicators_are_drawn_completely_and_the_others_share_the_rest():
    one_call = sum(len(one.ops) + len(one.waits) for one in ring_of_three(late=1).ranks.values())
    groups = [dataclasses.replace(group(3, *late(count)), communicator=str(count)) for count in (1, 30, 20)]
    counts = [
        found["call_count"] for found in data_of(write_run_page(run(*groups), most_events=11 * one_call))["groups"]
    ]
    assert counts == [5, 5, 1]


def test_missing_ranks_and_dropped_events_are_reported():
    made = run(group(3, ring_of_three(), missing=[2], dropped={0: 7}))
    (found,) = data_of(write_run_page(made))["groups"]
    assert found["missing"] == [2]
    assert [note["en"] for note in found["notes"]] == [
        "There is no trace of rank 2: it ended before it wrote one.", "The oldest 7 events were dropped.",
    ]  # fmt: skip


def test_the_page_of_a_run_on_several_hosts_names_the_host_of_each_rank_and_the_bytes_between_hosts():
    hosts = Hosts(("a", "b.example.org"), (0, 0, 1))
    (data,) = data_of(write_run_page(run(dataclasses.replace(group(3, *late()), hosts=hosts))))["groups"]
    assert data["names"] == ["0 (a)", "1 (a)", "2 (b)"]
    assert [line["en"] for line in data["hosts"]] == [
        "On 2 hosts: a (ranks 0, 1), b.example.org (rank 2).",
        "The ranks sent 0 B inside their hosts and 8 kB between hosts.",
    ]
    assert data["hosts"][0]["zh"] == "位于 2 台主机：a（rank 0、1）、b.example.org（rank 2）。"
    (data,) = data_of(write_run_page(run(group(3, *late()))))["groups"]
    assert (data["names"], data["hosts"]) == (["0", "1", "2"], [])


def test_a_run_without_communication_is_rejected():
    with pytest.raises(UsageError, match="no rank made a call"):
        write_run_page(run(group(2)))


def test_a_trace_is_distinguished_from_an_algorithm(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("run", "ring"):
        (tmp_path / name).mkdir()
    assert is_trace("run")
    assert is_trace("run/")
    assert is_trace("nothing.json")
    assert not is_trace("ring")  # the algorithm
    assert is_trace("./ring")
    assert not is_trace("rnig")
    assert not is_trace("x" * 5000)


def test_in_python_a_run_is_drawn_from_its_path_or_as_an_object(tmp_path):
    drawing = draw(run(group(3, *late())), language="zh")
    assert '"language":"zh"' in drawing.html
    assert drawing._repr_html_().startswith("<iframe")
    with pytest.raises(UsageError, match="there is no trace in this folder"):
        draw(tmp_path)
    with pytest.raises(UsageError, match=f"{tmp_path.name}: a recorded run is drawn on its own page"):
        draw("ring", tmp_path)
    with pytest.raises(UsageError, match=f"{tmp_path.name}: a recorded run is drawn on its own page"):
        draw(str(tmp_path), node=2)


def test_a_name_in_the_trace_cannot_end_the_page():
    wicked = dataclasses.replace(ring_of_three(), algorithm="</script><b>")
    page = write_run_page(run(group(3, wicked)), Settings(language="en"))
    assert "</script><b>" not in page.html


def test_a_page_without_data_is_small():
    assert len(write_run_page(run(group(3, ring_of_three()))).html.encode()) < 300_000
