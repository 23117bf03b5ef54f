from __future__ import annotations

import pytest

from unisono import combine, copy, recv, recv_reduce, send
from unisono.errors import HazardError
from unisono.schedule.hazards import check_hazards


@pytest.mark.parametrize(
    "step",
    [
        (recv(0, src=1), recv(0, src=2)),
        (recv(0, src=1), recv_reduce(0, src=2)),
        (recv(range(3), src=1), recv((2, 4), src=2)),
        (copy(1, to=0), recv(0, src=1)),
        (combine(1, into=0), combine(2, into=0)),
        (recv(0, src=1), copy(0, to=1)),
        (recv_reduce(0, src=1), combine(0, into=1)),
        (copy(0, to=1), copy(1, to=0)),
        (combine(0, into=0),),
        (copy((0, 1), to=(1, 2)),),
    ],
    ids=str,
)
def test_a_step_that_depends_on_the_order_of_its_ops_is_refused(step):
    with pytest.raises(HazardError, match=r"written twice|written by another"):
        check_hazards(step)


@pytest.mark.parametrize(
    "step",
    [
        (send(0, dst=1), recv(0, src=1)),  # a send reads what was there before the step
        (send(0, dst=1), send(0, dst=2), copy(0, to=1)),
        (recv_reduce(0, src=1), recv_reduce(0, src=2)),  # they add in the order written
        (recv(0, src=1), recv(1, src=2), copy(2, to=3)),
        (combine(0, into=1), combine(0, into=2)),
    ],
    ids=str,
)
def test_a_step_with_one_meaning_is_accepted(step):
    check_hazards(step)
