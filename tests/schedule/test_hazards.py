from __future__ import annotations

import pytest

from builders import written
from unisono import combine, copy, prove, recv, recv_reduce, send
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
def test_a_step_that_depends_on_the_order_of_its_ops_is_rejected(step):
    with pytest.raises(HazardError, match=r"written twice|written by another"):
        check_hazards(step)


@pytest.mark.parametrize(
    "step",
    [
        (send(0, dst=1), recv(0, src=1)),  # a send reads the contents from before the step
        (send(0, dst=1), send(0, dst=2), copy(0, to=1)),
        (recv_reduce(0, src=1), recv_reduce(0, src=2)),  # they are added in the order written
        (recv(0, src=1), recv(1, src=2), copy(2, to=3)),
        (combine(0, into=1), combine(0, into=2)),
    ],
    ids=str,
)
def test_an_unambiguous_step_is_accepted(step):
    check_hazards(step)


@pytest.mark.parametrize(
    "step",
    [
        "recv 0 from 0; recv 0 from 2",  # one chunk each
        "recv 0-1 from 0; recv 1,3 from 2",  # several
        "recv 0 from 0; copy 0 to 1",
        "copy 0 to 1; copy 1 to 2",
        "combine 0 into 0",
        "copy 0-1 to 1-2",
    ],
)
def test_a_proof_detects_hazards_in_every_kind_of_step(step):
    with pytest.raises(HazardError) as caught:
        prove(written("all_reduce", 4, "send 0 to 1", step, "send 0 to 1"))
    assert (caught.value.rank, caught.value.step) == (1, 0)


def test_the_same_op_twice_is_two_ops():
    with pytest.raises(HazardError, match="written twice"):
        check_hazards([recv(0, src=1)] * 2)
