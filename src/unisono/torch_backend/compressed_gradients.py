"""Compressed gradients for torch's own DDP: ``ddp.register_comm_hook(None, codec_hook("fp8_e4m3"))``.

A *bucket* is an array of gradients that DDP exchanges at once. The hook gives each one to our all-reduce with a codec
and hands the average back. (No `from __future__ import annotations` here: DDP inspects the annotations of a hook.)
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist

from unisono.codecs import AutoCodec, Codec, ErrorFeedback, encode
from unisono.codecs.topk import add_pieces
from unisono.collectives import all_gather, all_reduce
from unisono.comm.call_request import CallRequest
from unisono.comm.codec_agreement import auto_codec_of, codec_for
from unisono.compiler import Lengths
from unisono.errors import UsageError
from unisono.torch_backend import messages
from unisono.torch_backend.dispatch import GroupDispatcher
from unisono.torch_backend.dynamo import hide_from_dynamo
from unisono.torch_backend.process_group import UnisonoProcessGroup
from unisono.torch_backend.tensor_call import ASYNCHRONOUS, TensorCall
from unisono.torch_backend.tensors import number_type

Hook = Callable[[Any, Any], Any]


def codec_hook(codec: str | Codec | AutoCodec, *, error_feedback: bool = False) -> Hook:
    """Return a hook for ``register_comm_hook`` that averages gradients with ``codec``, a codec or its name.

    ``codec="auto:bf16"`` allows a codec, which is used for buckets where it pays: between hosts, over slow links
    (``Options(link_rate=...)``).

    The hook's state is the process group whose ranks exchange gradients, the one that DDP was given; None: the
    default group. It must be one of backend "unisono", and gradients must be float32, on the CPU or on a
    CUDA device. With ``error_feedback`` (default: False), what the codec cuts off a rank's gradients is added to
    those of the next step, which takes one more array per bucket. UsageError is raised if there is no such codec.
    For example::

        model.register_comm_hook(None, codec_hook("fp8_e4m3", error_feedback=True))
    """
    auto = auto_codec_of(all_reduce, codec)
    found = codec_for(all_reduce, codec, "float32") if auto is None else auto.codec
    assert found is not None
    feedback = ErrorFeedback(found) if error_feedback else None

    def exchange(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        group = state if state is not None else dist.group.WORLD
        if not isinstance(group, UnisonoProcessGroup):
            backend = dist.get_backend(group) if isinstance(group, dist.ProcessGroup) else type(group).__name__
            raise UsageError(messages.HOOK_BACKEND(codec=repr(str(found)), backend=backend))
        gradients = bucket.buffer()
        if not (gradients.is_cpu or gradients.is_cuda):
            raise UsageError(messages.HOOK_DEVICE(codec=repr(str(found)), device=gradients.device))
        codec_for(all_reduce, found, number_type(gradients, "all_reduce"))
        used: Codec | None = found
        if auto is not None:
            algorithm = _request(group._dispatcher, gradients, None).algorithm
            chosen = group.communicator.choose_codec(auto, all_reduce, gradients.nbytes, algorithm=algorithm)
            used = chosen.codec
        if feedback is not None and used is not None:
            _correct(feedback, bucket.index(), gradients)
        work = (_average_largest if found.is_topk else _average)(group._dispatcher, gradients, used)
        return work.get_future().then(lambda done: done.value()[0])

    exchange.__name__ = exchange.__qualname__ = f"codec_hook[{found if auto is None else auto}]"
    return exchange


def _correct(feedback: ErrorFeedback, key: int, gradients: Any) -> None:
    residual = feedback.residuals.get(key)
    if residual is not None and len(residual) != gradients.numel():
        feedback.forget(key)  # after the first step DDP makes other buckets
    feedback.correct(key, gradients)


def _request(dispatcher: GroupDispatcher, gradients: Any, codec: Codec | None) -> CallRequest:
    lengths = Lengths((gradients.numel(),), (gradients.numel(),))
    return dispatcher.request(all_reduce, lengths, "float32", "avg", codec=codec)


def _average(dispatcher: GroupDispatcher, gradients: Any, codec: Codec | None) -> dist.Work:
    request = _request(dispatcher, gradients, codec)
    return dispatcher.call(TensorCall("all_reduce", request, gradients, gradients, [gradients]), ASYNCHRONOUS)


def _average_largest(dispatcher: GroupDispatcher, gradients: Any, codec: Codec | None) -> dist.Work:
    assert codec is not None  # top-k is always used
    size = dispatcher.comm.size
    mine = torch.as_tensor(encode(gradients, codec))
    pieces = torch.empty(size * mine.numel(), dtype=torch.uint8, device=mine.device)
    lengths = Lengths((mine.numel(),) * size, (mine.numel(),) * size)
    request = dispatcher.request(all_gather, lengths, "uint8")

    def finish() -> None:
        if gradients.is_cuda:
            import_module("unisono.gpu.coding").add_pieces(gradients.detach(), pieces, codec, size, "avg")
            return
        add_pieces(gradients.detach().numpy(), pieces.numpy(), codec, size, "avg")

    return dispatcher.call(TensorCall("all_reduce", request, mine, pieces, [gradients], finish), ASYNCHRONOUS)


hide_from_dynamo(sys.modules[__name__])
