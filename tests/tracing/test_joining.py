"""Parts that hosts with different clocks have recorded become one trace on one clock."""

from __future__ import annotations

import json

import pytest

from stories import CLOCK, check_structure
from trace_parts import NOTHING, plan, tape
from unisono.cli.main import main
from unisono.errors import UsageError
from unisono.tracing import read_run
from unisono.tracing.alignment import EXACT, Offset
from unisono.tracing.chrome import lines_of
from unisono.tracing.facts import Hosts, Origin, Part
from unisono.tracing.files import headers_in, part_path, parts_in, write_trace
from unisono.tracing.joining import join, merge_traces
from unisono.tracing.matching import messages_of

HOSTS = Hosts(("a", "b.example.org"), (0, 1))
OTHER = {**CLOCK, "machine": "there"}
AHEAD_NS = 7_000_000_000  # of the clock of rank 1


def write_host_part(folder, rank, offsets, run="r", communicator="c", clock=None, ahead_ns=AHEAD_NS):
    """Write the part of a rank; the clock of rank 1 is ahead of that of rank 0."""
    shift_ns = ahead_ns * rank
    origin = Origin(run, communicator, rank, 2, 100 + rank, (100, 101), rank, 0)
    part = Part(
        origin, {7: plan(rank)}, {}, clock or (OTHER if rank else CLOCK), 500 + shift_ns - rank, 900 + shift_ns,
        5000 + shift_ns, HOSTS, offsets,
    )  # fmt: skip
    events = tape(rank).timed(lambda times: times + shift_ns)
    header, lines = lines_of(part, events, NOTHING)
    path = part_path(folder, header)
    write_trace(path, [header], lines)
    return path


def test_times_of_another_host_are_those_of_the_reference_clock(tmp_path):
    write_host_part(tmp_path, 0, [EXACT])
    write_host_part(tmp_path, 1, [Offset(AHEAD_NS + 950, -AHEAD_NS, 40)])
    join(parts_in(tmp_path), tmp_path / "run.json")
    check_structure(tmp_path / "run.json")
    run = read_run(tmp_path)
    (group,) = run.communicators
    begins = {rank: call.begin_ns for rank, call in group.calls[0].ranks.items()}
    assert begins[0] == begins[1] == 990 - 499  # the earliest base
    assert run.clock == CLOCK
    assert (group.uncertainty_ns(0, 1), group.uncertainty_ns(1, 1)) == (40, 0)
    for call in group.calls:
        for message in messages_of(call):
            assert message.received.end_ns >= message.sent.begin_ns - group.uncertainty_ns(0, 1)
    assert [header["alignment"]["offset_ns"] for header in headers_in(tmp_path / "run.json")] == [0, -AHEAD_NS]
    assert group.name(1) == "1 (b)"
    assert group.sent_bytes() == (0, 160)


def test_the_drift_between_two_measurements_is_removed(tmp_path):
    write_host_part(tmp_path, 0, [EXACT])
    write_host_part(tmp_path, 1, [Offset(AHEAD_NS + 1000, -AHEAD_NS, 9), Offset(AHEAD_NS + 3000, 200 - AHEAD_NS, 9)])
    join(parts_in(tmp_path), tmp_path / "run.json")
    first, second = read_run(tmp_path).communicators[0].calls
    assert first.ranks[1].begin_ns == first.ranks[0].begin_ns
    assert abs(second.ranks[1].begin_ns - second.ranks[0].begin_ns - 200) <= 1


def test_ranks_of_one_clock_need_no_measurement(tmp_path):
    write_host_part(tmp_path, 0, [EXACT])
    write_host_part(tmp_path, 1, [], clock=CLOCK, ahead_ns=0)
    join(parts_in(tmp_path), tmp_path / "run.json")
    (group,) = read_run(tmp_path).communicators
    assert group.uncertainty_ns(0, 1) == 0
    assert len({call.begin_ns for call in group.calls[0].ranks.values()}) == 1


def test_parts_whose_clock_was_not_measured_are_kept(tmp_path):
    write_host_part(tmp_path, 0, [EXACT])
    write_host_part(tmp_path, 1, [])
    with pytest.raises(UsageError) as problem:
        join(parts_in(tmp_path), tmp_path / "run.json")
    assert problem.value.id == "tracing.clocks_unknown"
    assert len(parts_in(tmp_path)) == 2
    with pytest.raises(UsageError, match="unisono merge"):
        read_run(tmp_path)


def test_traces_of_launchers_that_do_not_know_each_other_are_merged_by_their_communicators(tmp_path, capsys):
    for rank, offsets in enumerate(([EXACT], [Offset(AHEAD_NS, -AHEAD_NS, 40)])):
        folder = tmp_path / str(rank)
        write_host_part(folder, rank, offsets, run=f"run-of-{rank}")
        join(parts_in(folder), folder / "run.json")
    output = tmp_path / "all.json"
    assert main(["merge", str(tmp_path / "0"), str(tmp_path / "1" / "run.json"), "-o", str(output)]) == 0
    assert capsys.readouterr().out.endswith("all.json: 2 ranks\n")
    (group,) = read_run(output).communicators
    assert (group.missing, group.uncertainty_ns(0, 1)) == ([], 40)
    assert (tmp_path / "1" / "run.json").exists()


def test_runs_without_a_common_communicator_are_not_one_run(tmp_path):
    write_host_part(tmp_path, 0, [EXACT], run="one", communicator="c")
    write_host_part(tmp_path, 1, [Offset(0, 0, 1)], run="two", communicator="d")
    merge_traces([tmp_path], tmp_path / "all.json")
    with pytest.raises(UsageError, match="traces of 2 runs"):
        read_run(tmp_path / "all.json", missing_ok=True)


def test_files_of_other_programs_and_damaged_events_are_refused(tmp_path):
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(UsageError, match="not a trace of Unisono"):
        merge_traces([tmp_path / "x.json"], tmp_path / "all.json")
    write_host_part(tmp_path, 0, [EXACT])
    path = write_host_part(tmp_path, 1, [Offset(0, 0, 1)])
    path.write_text(path.read_text().replace('"pid":1,"tid":0,"ts":', '"pid":9,"tid":0,"ts":'))
    with pytest.raises(UsageError, match="this trace is damaged: event 4 is invalid"):
        merge_traces([*parts_in(tmp_path)], tmp_path / "all.json")
    assert not (tmp_path / "all.json").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"hosts": 7}, {"hosts": {"names": ["a"], "host_of": [0]}}, {"hosts": {"names": ["a"], "host_of": [0, 1]}},
        {"hosts": {"names": [1], "host_of": [0, 0]}}, {"alignment": {}}, {"alignment": {"uncertainty_ns": -1}},
    ],
)  # fmt: skip
def test_invalid_hosts_and_alignments_are_refused(tmp_path, change):
    path = write_host_part(tmp_path, 0, [EXACT])
    first, _, rest = path.read_text().partition("\n")
    about = json.loads(first + "]}")
    about["otherData"]["unisono"]["parts"][0] |= change
    path.write_text(json.dumps(about, separators=(",", ":"))[:-2] + "\n" + rest)
    with pytest.raises(UsageError, match="a header is invalid"):
        read_run(path, missing_ok=True)
