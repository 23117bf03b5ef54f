from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from whole_models import WholeTransformer  # noqa: E402
from worlds import KINDS, run_groups  # noqa: E402

from unisono.errors import UsageError  # noqa: E402
from unisono.parallel import ParallelTransformer, full_state_dict, load_full_state_dict, record  # noqa: E402

SIZES = (13, 12, 4, 2, 8)


def load_and_return(group):
    """Load the state of a whole model into a split one, compare their losses, and load it back."""
    torch.manual_seed(0)
    whole, split = WholeTransformer(*SIZES), ParallelTransformer(*SIZES, group)
    with record() as log:
        load_full_state_dict(split, whole.state_dict())
    loaded = full_state_dict(split)
    same = all(torch.equal(loaded[name], value) for name, value in whole.state_dict().items())
    text = torch.arange(9).remainder(13).view(1, 9)
    own = split.state_dict()
    difference = split(text[:, :-1], text[:, 1:]) - whole(text[:, :-1], text[:, 1:])
    whole.load_state_dict(loaded)
    split.load_state_dict(own)
    return same, len(log), abs(difference.item()) < 1e-5, own["head.weight"].shape[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_of_a_whole_model_can_be_split_and_reassembled(kind):
    assert run_groups(load_and_return, 3, kind=kind) == [(True, 0, True, words) for words in (5, 4, 4)]


def load_wrong(group):
    split = ParallelTransformer(*SIZES, group)
    with pytest.raises(UsageError) as caught:
        load_full_state_dict(split, WholeTransformer(12, *SIZES[1:]).state_dict())
    state = WholeTransformer(*SIZES).state_dict()
    del state["norm.bias"]
    with pytest.raises(RuntimeError, match=r"Missing key.*norm\.bias"):
        load_full_state_dict(split, state)
    return str(caught.value)


def test_the_state_of_a_different_model_is_rejected():
    for message in run_groups(load_wrong, 2):
        assert "embedding.weight has 12 rows along dimension 0; expected 13" in message
