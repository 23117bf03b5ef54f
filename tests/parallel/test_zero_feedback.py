"""With a codec, Zero adds the residual of a unit to its gradients in the next step."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.codecs import ErrorFeedback  # noqa: E402
from unisono.parallel import Zero  # noqa: E402

CODEC_BLOCK = 32  # elements that share one scale in int8
SMALL = 0.001  # next to 1, int8 rounds this to zero


def descend(group, stage, codec, error_feedback, steps):
    """Return the distance of some steps for gradients of 1 and for small ones, and the units with residuals."""
    kept = []

    def make(codec):
        kept.append(ErrorFeedback(codec))
        return kept[-1]

    zero = Zero(
        nn.Sequential(nn.Linear(CODEC_BLOCK * group.size, 1, bias=False)), group, stage=stage, codec=codec,
        optimizer=lambda shards: torch.optim.SGD(shards, 1.0), error_feedback=make if error_feedback else None,
    )  # fmt: skip
    before = zero.state_dict()["0.weight"].clone()
    x = torch.full((1, CODEC_BLOCK * group.size), SMALL)
    x[:, ::CODEC_BLOCK] = 1.0
    for _ in range(steps):
        zero.zero_grad()
        zero(x).sum().backward()
        zero.step()
    gone = (before - zero.state_dict()["0.weight"])[0]
    return gone[x[0] == 1].mean().item(), gone[x[0] != 1].mean().item(), [list(each.residuals) for each in kept]


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("size", [2, 3])
def test_small_gradients_of_other_ranks_arrive_late_with_feedback_and_never_without(stage, size):
    for large, small, kept in run_groups(descend, size, stage, "int8", True, 50):
        assert large == pytest.approx(50, rel=0.01)
        assert small == pytest.approx(50 * SMALL, rel=0.2)
        assert kept == [["0"]]
    for large, small, _ in run_groups(descend, size, stage, "int8", False, 50):
        assert large == pytest.approx(50, rel=0.01)
        own = 0 if stage == 1 else 50 * SMALL / size  # in a reduce-scatter, a rank sends itself nothing
        assert small == pytest.approx(own, abs=1e-6)


def test_error_feedback_without_a_codec_keeps_no_residual():
    for _, small, kept in run_groups(descend, 2, 3, None, True, 3):
        assert small == pytest.approx(3 * SMALL, rel=1e-3)
        assert kept == []
