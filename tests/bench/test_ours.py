"""Unisono as a contender: real ranks, every collective, known inputs."""

from __future__ import annotations

import pytest

from unisono.bench.cases import make_cases
from unisono.bench.contender import CaseUnsupported, TrialOptions
from unisono.bench.local_ranks import unisono_ranks
from unisono.collectives import COLLECTIVES, all_reduce, reduce_scatter

OPTIONS = TrialOptions(iterations=3, warmup=1, check=True)


@pytest.fixture(scope="module", params=[1, 3, *(pytest.param(size, marks=pytest.mark.long) for size in (2, 5))])
def group(request):
    made = unisono_ranks(request.param, answer_timeout_s=60)
    made.start()
    try:
        made.wait_until_ready()
        yield made
    finally:
        made.close()


def test_every_collective_gives_the_right_result(group):
    for collective in COLLECTIVES:
        if collective.carries_data:
            for case in make_cases(collective, [8, 100_000], "float32", "sum", group.size):
                trial = group.measure(case, OPTIONS)
                assert trial.wrong == 0, case
                assert len(trial.seconds) == group.size


def test_dtypes_reductions_and_algorithms_are_passed_on(group):
    for dtype in ("float64", "float16", "bfloat16", "int32", "int64"):
        for op in ("sum", "prod", "max", "min"):
            (case,) = make_cases(all_reduce, [4096], dtype, op, group.size, algorithm="ring")
            assert group.measure(case, OPTIONS).wrong == 0, case
    (case,) = make_cases(reduce_scatter, [4096], "float32", "avg", group.size)
    assert group.measure(case, OPTIONS).wrong == 0
    (case,) = make_cases(all_reduce, [4096], "float32", "sum", group.size, algorithm="no_such")
    with pytest.raises(CaseUnsupported, match="no_such"):
        group.measure(case, OPTIONS)
