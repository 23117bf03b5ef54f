"""Gradients are sent in the expected buckets, in the expected order, and from the expected memory."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from gradients import assert_same, check_gradients, numbers  # noqa: E402
from models import batch, loss_of, make, share  # noqa: E402
from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.codecs import ErrorFeedback  # noqa: E402
from unisono.parallel import DataParallel, record  # noqa: E402
from unisono.parallel.buckets import fill_buckets  # noqa: E402
from unisono.parallel.over_comm import CommGroup  # noqa: E402

# ---- collectives ------------------------------------------------------------------------------------------------


def recorded(group):
    model = DataParallel(make("mlp"), group, bucket_bytes=200)
    inputs, targets = (share(part, group.rank, group.size) for part in batch("mlp", 0))
    with record() as log:
        loss = loss_of(model, inputs, targets)
        after_forward = len(log)
        loss.backward()
    return after_forward, [(entry.collective, entry.name, entry.bytes, entry.phase) for entry in log]


@pytest.mark.parametrize("kind", ["comm", "gloo"])
def test_one_all_reduce_per_bucket_from_the_last_parameter_to_the_first(kind):
    for after_forward, entries in run_groups(recorded, 3, kind=kind):
        assert after_forward == 0
        assert entries == [
            ("all_reduce", "4.weight", 5 * 13 * 8, "backward"),
            ("all_reduce", "4.bias..2.bias", (5 + 13) * 8, "backward"),
            ("all_reduce", "2.weight", 13 * 16 * 8, "backward"),
            ("all_reduce", "0.bias", 16 * 8, "backward"),
            ("all_reduce", "0.weight", 16 * 8 * 8, "backward"),
            ("all_reduce", "(which gradients exist)", 6 + 1, "backward"),
        ]


def recorded_buffers(group):
    model = make("conv")
    model[1].running_mean += group.rank
    with record() as log:
        model = DataParallel(model, group)
        at_start = model.module[1].running_mean.tolist()
        inputs, _ = batch("conv", 0)
        model(share(inputs, group.rank, group.size))
        model.eval()(inputs)
        with model.train().no_sync():
            model(inputs)
        model = DataParallel(model.unwrap(), group, broadcast_buffers=False)
        model(inputs)
    return at_start, [(entry.collective, entry.name, entry.bytes, entry.phase) for entry in log]


def test_rank_0_broadcasts_buffers_at_the_start_and_before_each_training_forward_pass():
    sent = [
        ("broadcast", "1.running_mean..5.running_var", 8 * 2 * (6 + 7)),
        ("broadcast", "1.num_batches_tracked..5.num_batches_tracked", 8 * 2),
    ]
    for at_start, entries in run_groups(recorded_buffers, 2):
        assert at_start == [0.0] * 6
        phases = ("start", "forward", "start")
        assert entries == [(*each, phase) for phase in phases for each in sent]


class Late(nn.Module):
    """Uses its layers in the order of their names or in reverse order."""

    def __init__(self, reverse):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4).double() for _ in range(5)])
        self.order = list(range(5))[:: -1 if reverse else 1]

    def forward(self, x):
        for place in self.order:
            x = torch.tanh(self.layers[place](x))
        return x


def send_in_order(group):
    model = DataParallel(Late(reverse=group.rank == 1), group, bucket_bytes=1)
    with record() as log:
        model(numbers(group.rank, 3, 4)).sum().backward()
    return [entry.name for entry in log]


def test_the_order_of_buckets_does_not_depend_on_the_order_of_gradients():
    first, second = run_groups(send_in_order, 2)
    assert first == second
    assert first[:2] == ["layers.4.bias", "layers.4.weight"]
    assert len(first) == 10 + 1


# ---- codecs -----------------------------------------------------------------------------------------------------


class Coded(CommGroup):
    """Records the codecs of its calls and sends the numbers uncompressed."""

    def duplicate(self):
        return self

    def _all_reduce(self, async_op, tensor, op, codec):
        return super()._all_reduce(async_op, tensor, op, None)


class Halved:
    """Sends half of each gradient and adds the other half to the next one, like error feedback."""

    def __init__(self, codec):
        self.codec, self.rest = codec, 0.0

    def correct(self, name, gradients):
        gradients += self.rest
        self.rest = gradients / 2
        gradients -= self.rest


def write(group):
    group = Coded(group.comm)
    coarse = {"4.bias..0.bias": "fp8_e4m3", "2.weight": "int8"}
    model = DataParallel(
        make("mlp", torch.float32), group, bucket_bytes=200, codec=lambda bucket: coarse.get(bucket.name),
        error_feedback=Halved,
    )  # fmt: skip
    inputs, targets = batch("mlp", 0, torch.float32)
    sums = {name: 0.0 for name, _ in model.named_parameters()}
    with record() as log:
        for _ in range(3):
            model.zero_grad()
            loss_of(model, inputs, targets).backward()
            for name, parameter in model.named_parameters():
                sums[name] += parameter.grad.clone()
    alone = make("mlp", torch.float32)
    loss_of(alone, inputs, targets).backward()
    for name, parameter in alone.named_parameters():
        part = 3 - 7 / 8 if name.endswith("bias") or name == "2.weight" else 3  # three steps minus the last residual
        torch.testing.assert_close(sums[name], part * parameter.grad)
    plain = DataParallel(nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2).double()]), group, codec="bf16")
    return {entry.name: entry.codec for entry in log}, [(str(bucket.dtype), bucket.codec) for bucket in plain.buckets]


def test_each_bucket_has_its_codec_and_its_residual_is_added_in_the_next_step():
    for codecs, by_type in run_groups(write, 2):
        assert codecs == {
            "4.bias..0.bias": "fp8_e4m3", "2.weight": "int8", "4.weight": "", "0.weight": "",
            "(which gradients exist)": "",
        }  # fmt: skip
        assert sorted(by_type) == [("torch.float32", "bf16"), ("torch.float64", None)]


class Decides:
    """A group on two hosts, as far as the choice of a codec is concerned."""

    def choose_codec(self, codec, collective, tensor_bytes):
        return "bf16" if codec == "auto:bf16" and collective == "all_reduce" and tensor_bytes > 100 else None


def test_the_group_decides_on_a_codec_that_is_allowed_and_residuals_belong_to_the_one_it_selects():
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(2, 2))
    for bucket in fill_buckets(list(model.named_parameters()), 100):
        bucket.encode("auto:bf16", lambda codec: f"residuals of {codec}", Decides())
        large = bucket.bytes > 100
        assert (bucket.codec, bucket.feedback) == (("bf16", "residuals of bf16") if large else (None, None))


def auto_on_one_host(group):
    wrapped = DataParallel(make("mlp"), group, codec="auto:bf16", error_feedback=ErrorFeedback)
    return [(bucket.codec, bucket.feedback) for bucket in wrapped.buckets]


def test_on_one_host_an_allowed_codec_is_not_used():
    for buckets in run_groups(auto_on_one_host, 2):
        assert set(buckets) == {(None, None)}


# ---- memory --------------------------------------------------------------------------------------------------------


def set_to_none(group, bucket_bytes):
    for way in (True, False):
        model = make("mlp")
        wrapped = DataParallel(model, group, bucket_bytes=bucket_bytes)
        pointers, gradients = [], []
        for turn in range(3):
            wrapped.zero_grad(set_to_none=way)
            loss_of(wrapped, *(share(part, group.rank, group.size) for part in batch("mlp", turn))).backward()
            pointers.append([parameter.grad.data_ptr() for parameter in model.parameters()])
            gradients.append([parameter.grad.clone() for parameter in model.parameters()])
        alone = make("mlp")
        for turn in range(3):
            alone.zero_grad()
            loss_of(alone, *batch("mlp", turn)).backward()
            assert_same(gradients[turn], [parameter.grad for parameter in alone.parameters()])
        if bucket_bytes > 1 or not way:
            assert pointers[1] == pointers[2]  # the same memory in every step


@pytest.mark.parametrize("bucket_bytes", [1, 1 << 20])
def test_gradients_may_be_set_to_none_or_to_zero(bucket_bytes):
    run_groups(set_to_none, 2, bucket_bytes)


def look_at_memory(group):
    model = nn.Linear(30, 20).double()
    made = []
    model.weight.register_post_accumulate_grad_hook(lambda weight: made.append(weight.grad.data_ptr()))
    wrapped = DataParallel(model, group, bucket_bytes=1000)
    wrapped(numbers(group.rank, 3, 30)).sum().backward()
    assert [type(bucket).__name__ for bucket in wrapped.buckets] == ["PackedBucket", "SingleBucket"]
    assert model.weight.grad.data_ptr() == made[0]
    assert model.bias.grad is wrapped.buckets[0].views[0]


def test_a_large_gradient_is_sent_from_the_memory_that_autograd_allocated():
    run_groups(look_at_memory, 1)


class Aliased(nn.Module):
    """The gradient of its second parameter shares memory with a gradient that autograd still uses."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6).double()
        self.second = nn.ParameterList([numbers(1, 3, 6)])

    def forward(self, x):
        before = self.first(x).view(-1)
        return (before + self.second[0].view(-1)).square().sum()


def alias(group):
    def step(model, rank):
        if isinstance(model, DataParallel):
            at_once = model.group.all_reduce
            model.group.all_reduce = lambda *args, **kwargs: at_once(*args, **kwargs | {"async_op": False})
        model(numbers(rank, 3, 6)).backward()

    return check_gradients(group, Aliased(), step, bucket_bytes=1).buckets[0].name


def test_a_gradient_that_autograd_still_needs_is_not_overwritten():
    """The bucket is sent immediately, so that a wrong write always shows."""
    assert run_groups(alias, 2) == ["second.0", "second.0"]
