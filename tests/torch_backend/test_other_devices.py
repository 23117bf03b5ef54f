"""Groups can combine Unisono with a backend for another device, and pass options to that backend."""

from __future__ import annotations

import copy
import warnings
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402
from unisono.torch_backend import Options  # noqa: E402

META = torch.device("meta")  # a device that every torch has; the backend "fake" takes its tensors


def init(backend, **options):
    import torch.testing._internal.distributed.fake_pg  # noqa: F401 (registers the backend "fake")

    dist.init_process_group(backend, timeout=timedelta(seconds=30), **options)
    return dist.group.WORLD


def work_of_each_device(backend):
    group = init(backend)
    x = torch.ones(2)
    dist.all_reduce(x)
    work = dist.all_reduce(torch.ones(2, device=META), async_op=True)
    gathered = group._allgather_base(torch.ones(4, device=META), torch.ones(2, device=META))
    part = dist.new_group([0, 1])
    found = [type(of._get_backend(META)).__name__ for of in (group, part)]
    devices = sorted(device.type for device in group._device_types)
    listed = len(dist.distributed_c10d._world.pg_map), len(dist.distributed_c10d._world.tags_to_pg[""])
    dist.destroy_process_group()
    return x.tolist(), type(work).__name__, type(gathered).__name__, found, devices, listed


@pytest.mark.parametrize("backend", ["cpu:unisono,meta:fake", "meta:fake,cpu:unisono"])
def test_tensors_on_another_device_use_the_backend_of_that_device(backend):
    for found in run_ranks(work_of_each_device, 2, backend, init=False):
        assert found == (
            [2.0, 2.0], "FakeWork", "FakeWork", ["FakeProcessGroup"] * 2, ["cpu", "meta"], (2, 2)
        )  # fmt: skip


def backend_of_cuda(name):
    group = init(f"cpu:unisono,cuda:{name}")
    backend = group._get_backend(torch.device("cuda"))
    return type(backend).__name__, backend.name(), backend.size(), dist.get_backend_config()


def test_gloo_can_be_the_backend_for_cuda():
    for found in run_ranks(backend_of_cuda, 2, "gloo", init=False):
        assert found == ("ProcessGroupGloo", "gloo", 2, "cpu:unisono,cuda:gloo")


def error_of_init(backend):
    with pytest.raises((RuntimeError, AssertionError, ValueError)) as caught:
        init(backend)
    assert not dist.is_initialized()
    return str(caught.value)


@pytest.mark.skipif(dist.is_nccl_available(), reason="this torch has NCCL")
def test_a_backend_that_torch_lacks_raises_at_init():
    assert run_ranks(error_of_init, 1, "cpu:unisono,cuda:nccl", init=False) == [
        "Distributed package doesn't have NCCL built in"
    ]


def test_an_unknown_backend_raises_at_init():
    assert "NOPE" in run_ranks(error_of_init, 1, "cpu:unisono,cuda:nope", init=False)[0]


def test_unisono_as_the_backend_of_another_device_raises_at_init():
    messages = run_ranks(error_of_init, 1, "cpu:unisono,meta:unisono", init=False)[0]
    assert "takes tensors on the CPU and on CUDA devices" in messages
    assert "meta" in messages


def devices_of(backend):
    group = init(backend)
    x = torch.ones(2)
    dist.all_reduce(x)
    names = sorted(device.type for device in group._device_types)
    part = dist.new_group([0, 1])
    kinds = [type(of._get_backend(torch.device("cuda"))).__name__ for of in (group, part)]
    return x.tolist(), names, kinds, sorted(dist.get_backend_config().split(","))


@pytest.mark.parametrize("backend", ["unisono", "cpu:unisono,cuda:unisono", "cuda:unisono,cpu:unisono"])
def test_unisono_takes_tensors_of_both_devices(backend):
    for found in run_ranks(devices_of, 2, backend, init=False):
        assert found == (
            [2.0, 2.0], ["cpu", "cuda"], ["BackendFacts"] * 2, ["cpu:unisono", "cuda:unisono"]
        )  # fmt: skip


def test_unisono_can_be_the_backend_of_cuda_alone():
    for found in run_ranks(devices_of, 2, "cuda:unisono", init=False):
        assert found == ([2.0, 2.0], ["cuda"], ["BackendFacts"] * 2, ["cuda:unisono"])


def backends_beside_gloo(backend):
    group = init(backend)
    x = torch.ones(2)
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    found = [type(group._get_backend(torch.device(device))).__name__ for device in ("cpu", "cuda")]
    return x.tolist(), type(work).__name__, found


@pytest.mark.parametrize("backend", ["cuda:unisono,cpu:gloo", "cpu:gloo,cuda:unisono"])
def test_another_backend_can_serve_the_cpu(backend):
    for found in run_ranks(backends_beside_gloo, 2, backend, init=False):
        assert found == ([2.0, 2.0], "Work", ["ProcessGroupGloo", "BackendFacts"])


def parts_of_a_split():
    group = init("unisono")
    group.bound_device_id = torch.device("cuda", 0)  # a torch without CUDA refuses device_id
    torch.accelerator.is_available = lambda: True
    torch.accelerator.current_accelerator = lambda: torch.device("cuda")
    part = dist.split_group(split_ranks=[[0, 2], [1]])
    x = torch.full((2,), float(dist.get_rank()))
    dist.all_reduce(x, group=part)
    pair = dist.new_group([0, 1])
    return x.tolist(), dist.get_world_size(part), str(part.bound_device_id), str(group.bound_device_id), bool(pair)


def test_a_group_that_is_bound_to_a_gpu_can_be_split():
    found = run_ranks(parts_of_a_split, 3, init=False)
    assert [each[0] for each in found] == [[2.0, 2.0], [1.0, 1.0], [2.0, 2.0]]
    assert [each[1] for each in found] == [2, 1, 2]
    assert {each[2:4] for each in found} == {("cuda:0", "cuda:0")}


def default_backends():
    dist.init_process_group(timeout=timedelta(seconds=30))
    return dist.get_backend_config()


def test_without_a_name_torch_selects_its_own_backends():
    assert "unisono" not in run_ranks(default_backends, 1, init=False)[0]


def tensor_of_another_device():
    init("unisono")
    with pytest.raises(ValueError, match="a tensor on meta") as caught:
        dist.all_reduce(torch.ones(2, device=META))
    return str(caught.value)


def test_a_group_without_a_backend_for_a_device_rejects_its_tensors():
    assert 'init_process_group("cpu:unisono,meta:BACKEND")' in run_ranks(tensor_of_another_device, 1, init=False)[0]


class OtherOptions:
    """Options of a backend that a test registers."""


def options_that_arrive(pg_options):
    arrived = []

    def create(request, options):
        from torch._C._distributed_c10d import FakeProcessGroup

        arrived.append(options)
        return FakeProcessGroup._create_internal(request.group_rank, request.group_size)

    dist.Backend.register_backend("recorder", create, extended_api=True, devices=["meta"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        group = init("cpu:unisono,meta:recorder", pg_options=pg_options)
    return type(arrived[0]).__name__, group._options.algorithms


def test_options_of_the_other_backend_are_passed_to_it():
    assert run_ranks(options_that_arrive, 1, OtherOptions(), init=False) == [("OtherOptions", {})]


def test_unisono_options_can_contain_those_of_the_other_backend():
    ours = Options(algorithms={"all_reduce": "ring"}, others={"meta": OtherOptions()})
    assert run_ranks(options_that_arrive, 1, ours, init=False) == [("OtherOptions", {"all_reduce": "ring"})]


def test_unisono_options_are_not_passed_to_the_other_backend():
    ours = Options(algorithms={"all_reduce": "ring"})
    assert run_ranks(options_that_arrive, 1, ours, init=False) == [("NoneType", {"all_reduce": "ring"})]


def warnings_of(kind):
    options = dist.ProcessGroupGloo._Options() if kind == "gloo" else OtherOptions()
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        init("unisono", pg_options=options)
        part = dist.new_group([0], pg_options=copy.copy(options) if kind != "gloo" else options)
    x = torch.ones(1)
    dist.all_reduce(x, group=part)
    return [str(one.message) for one in messages if "pg_options" in str(one.message)]


@pytest.mark.parametrize("kind", ["gloo", "unknown"])
def test_options_of_another_backend_are_ignored_with_a_warning(kind):
    messages = run_ranks(warnings_of, 1, kind, init=False)[0]
    assert len(messages) == 2
    assert all("have no effect on the backend unisono" in one for one in messages)
