from __future__ import annotations

import pytest

from bench.fakes import Fake
from unisono.bench import report
from unisono.bench.cases import Case
from unisono.bench.contender import CaseUnsupported, ContenderFailed, Trial
from unisono.bench.measure import FEWEST, MOST, Effort, Times, measure
from unisono.collectives import COLLECTIVES, all_gather, all_reduce

SMALL, LARGE = Case(all_reduce, 2, "float32"), Case(all_reduce, 256, "float32")


def test_contenders_take_turns_and_each_repeat_starts_with_a_different_one():
    log = []
    contenders = [Fake(name, 1e-3, log) for name in "ABC"]
    measure(contenders, [SMALL, LARGE], 2, Effort(repeats=3, budget_s=0.1))
    trials = [name for where, name in log if where == SMALL.bytes]
    assert "".join(trials) == "ABCBCACABABC"  # the first trial measures the duration of a call
    assert log[:3] == [("start", name) for name in "ABC"]  # all start at once
    # A repeat measures all cases before the next one begins.
    assert [where for where, _ in log[3:]] == ([8] * 3 + [1024] * 3) * 4


def test_the_result_of_a_contender_that_is_alone_is_known_before_the_next_case_begins():
    log = []

    def on_result(measurement, result):
        log.append(("result", result.times["A"].calls))

    measure([Fake("A", 1e-3, log)], [SMALL, LARGE], 2, Effort(repeats=2, budget_s=0.02), on_result=on_result)
    assert [where for where, _ in log] == ["start", 8, 8, 8, "result", 1024, 1024, 1024, "result"]


def test_results_of_several_contenders_are_known_in_the_last_repeat_one_by_one():
    log = []
    contenders = [Fake(name, 1e-3, log) for name in "AB"]
    measure(
        contenders, [SMALL, LARGE], 2, Effort(repeats=1, budget_s=0.02),
        on_result=lambda measurement, result: log.append(("result", result.case.bytes)),
    )  # fmt: skip
    assert [where for where, _ in log[-6:]] == [8, 8, "result", 1024, 1024, "result"]


def test_a_trial_has_as_many_calls_as_fit_into_its_time():
    usual, fast, slow = Fake("usual", 1e-3), Fake("fast", 1e-9), Fake("slow", 10.0)
    measure([usual, fast, slow], [SMALL], 2, Effort(repeats=2, budget_s=0.4))
    # 0.2 s in each repeat; the slower rank takes 2 ms
    assert [options.iterations for options in usual.options] == [FEWEST, 100, 100]
    assert [options.iterations for options in fast.options] == [FEWEST, MOST, MOST]
    assert [options.iterations for options in slow.options] == [FEWEST, FEWEST, FEWEST]
    assert all(options.warmup >= 1 for options in usual.options)


def test_results_are_checked_first_and_last():
    fake = Fake("A", 1e-3, wrong=7)
    measurement = measure([fake], [SMALL], 2, Effort(repeats=3, budget_s=0.1))
    assert [options.check for options in fake.options] == [True, False, False, True]
    assert measurement.results[0].times["A"].wrong == 14


def test_the_time_is_the_median_on_the_slowest_rank():
    times = Times()
    times.add(Trial([[1.0, 2.0, 90.0], [4.0, 5.0, 6.0]], mean_s=7.0, wrong=1))
    times.add(Trial([[1.0, 2.0], [5.0, 80.0]], mean_s=9.0, wrong=2))
    assert times.time_s == 5.0
    assert Times(Effort(quantile=0.0), times.calls_s).time_s == 4.0
    assert times.quantile_s(0.0) == 4.0
    assert times.quantile_s(0.99) > 79
    assert times.mean_s == 8.0
    assert times.wrong == 3
    assert times.calls == 5


def test_the_time_can_be_that_of_the_fastest_trial():
    times = Times(Effort(fastest_trial=True))
    times.add(Trial([[1.0, 2.0, 90.0], [4.0, 6.0, 8.0]], mean_s=7.0, wrong=0))
    times.add(Trial([[1.0, 2.0, 3.0], [5.0, 5.5, 60.0]], mean_s=9.0, wrong=0))
    assert times.time_s == 5.5  # the median of the second trial, on its slower rank


def test_a_contender_that_cannot_start_is_dropped_and_the_others_continue():
    bad = Fake("bad", 1.0, trouble={"ready": ContenderFailed("no such library\n  its last words")})
    good = Fake("good", 1e-3)
    measurement = measure([bad, good], [SMALL], 2, Effort(2, 0.1))
    assert measurement.dropped == {"bad": "no such library\n  its last words"}
    assert set(measurement.results[0].times) == {"good"}
    assert bad.options == []
    assert bad.closed >= 1
    assert good.closed == 1


def test_a_contender_that_fails_keeps_its_earlier_results():
    bad = Fake("bad", 1e-3, trouble={4: ContenderFailed("rank 1 hung up")})
    measurement = measure([bad, Fake("good", 1e-3)], [SMALL, LARGE], 2, Effort(3, 0.1))
    assert len(bad.options) == 4
    assert measurement.results[0].times["bad"].calls == bad.options[2].iterations
    assert "bad" not in measurement.results[1].times
    assert measurement.results[1].times["good"].calls


def test_a_case_that_is_not_supported_is_not_tried_again():
    partly = Fake("partly", 1e-3, trouble={1: CaseUnsupported("no bfloat16")})
    measurement = measure([partly], [SMALL, LARGE], 2, Effort(3, 0.1))
    assert measurement.results[0].times["partly"].unsupported == "no bfloat16"
    assert measurement.results[1].times["partly"].calls
    assert measurement.dropped == {}
    assert report.as_data(measurement, "unisono")["cases"][0]["unsupported"] == {"partly": "no bfloat16"}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("a bug of ours")])
def test_every_contender_is_always_closed(error):
    contenders = [Fake("A", 1e-3), Fake("B", 1e-3, trouble={2: error}), Fake("C", 1e-3)]
    contenders[0].close = lambda: (_ for _ in ()).throw(KeyboardInterrupt)  # and a second exception while closing
    with pytest.raises(BaseException):  # noqa: B017, PT011 (whichever)
        measure(contenders, [SMALL], 2, Effort(2, 0.1))
    assert [each.closed for each in contenders] == [0, 1, 1]


@pytest.fixture
def measurement():
    contenders = [
        Fake("unisono", 1e-6), Fake("gloo", 100e-6), Fake("mpi:default", 2e-6),
        Fake("memcpy", 0.5e-6, communicates=False),
    ]  # fmt: skip
    return measure(contenders, [Case(all_reduce, 250_000, "float32")], 4, Effort(2, 0.01))


def test_a_ratio_is_the_time_of_a_rival_relative_to_ours(measurement):
    found = report.ratios(measurement, measurement.results[0], "unisono")
    assert found == {"gloo": pytest.approx(100), "mpi:default": pytest.approx(2)}  # but not the memory
    assert measurement.results[0].fastest(report.rivals(measurement, "unisono")) == "mpi:default"


def test_algbw_and_busbw_follow_from_the_slowest_rank(measurement):
    figures = report.figures(measurement, measurement.results[0], "unisono")
    assert figures.time_us == pytest.approx(2.0)  # of the slower rank
    assert figures.algbw == pytest.approx(500.0)  # 1 MB in 2 µs
    assert figures.busbw == pytest.approx(500.0 * 2 * 3 / 4)
    memory = report.figures(measurement, measurement.results[0], "memcpy")
    assert memory.busbw == memory.algbw


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_busbw_is_algbw_times_the_factor_of_nccl_tests(size):
    expected = {
        "all_reduce": 2 * (size - 1) / size, "broadcast": 1, "reduce": 1, "all_gather": (size - 1) / size,
        "reduce_scatter": (size - 1) / size, "all_to_all": (size - 1) / size, "gather": (size - 1) / size,
        "scatter": (size - 1) / size,
    }  # fmt: skip
    for collective in COLLECTIVES:
        if collective.carries_data:
            measurement = measure([Fake("A", 1e-6)], [Case(collective, 8 * size, "float32")], size, Effort(1, 0.001))
            figures = report.figures(measurement, measurement.results[0], "A")
            assert figures.busbw == pytest.approx(figures.algbw * expected[collective.name]), collective


def test_a_line_shows_unisono_or_else_the_fastest_contender(measurement):
    assert report.chosen(measurement, measurement.results[0], "unisono") == "unisono"
    del measurement.results[0].times["unisono"]
    assert report.chosen(measurement, measurement.results[0], "unisono") == "mpi:default"
    assert report.ratios(measurement, measurement.results[0], "unisono") == {}


def test_a_measurement_is_available_as_data(measurement):
    data = report.as_data(measurement, "unisono")
    assert data["ranks"] == 4
    assert [each["name"] for each in data["contenders"]] == ["unisono", "gloo", "mpi:default", "memcpy"]
    (case,) = data["cases"]
    assert case["collective"] == "all_reduce"
    assert (case["bytes"], case["count"], case["dtype"], case["op"]) == (1_000_000, 250_000, "float32", "sum")
    assert [each["contender"] for each in case["results"]] == ["unisono", "gloo", "mpi:default", "memcpy"]
    assert set(case["results"][0]) == {
        "contender", "time_us", "median_us", "min_us", "p99_us", "mean_us", "algbw", "busbw", "wrong", "calls",
    }  # fmt: skip
    assert case["best_rival"] == "mpi:default"
    assert case["ratio_to_best_rival"] == pytest.approx(2)


def test_a_collective_that_adds_nothing_has_no_reduction():
    assert report.case_words(Case(all_gather, 4, "float32")) == ["16", "4", "float32", "none"]
