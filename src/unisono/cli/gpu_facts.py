"""The part of ``unisono info`` about GPUs: what there is, MPS, and the mode in which ranks would use them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

from unisono.cli import messages
from unisono.gpu.inventory import Gpu, NoGpus, find_gpus, mode_of_shared_gpu, pairs_without_access
from unisono.launch.mps import CONTROL
from unisono.message import Message, join, listed


def gather() -> tuple[dict[str, Any], dict[str, str]]:
    """Return the facts about GPUs, as data and as lines of text."""
    try:
        gpus = find_gpus()
    except NoGpus as error:
        return {"gpus": [], "no_gpu_because": str(error)}, {"gpus": messages.NO_GPUS(reason=error)}
    if not gpus:
        none = messages.NO_GPU_VISIBLE()
        return {"gpus": [], "no_gpu_because": none}, {"gpus": messages.NO_GPUS(reason=none)}
    shared = mode_of_shared_gpu(gpus)
    lacking = pairs_without_access(gpus)
    data = {
        "gpus": [{**vars(gpu), "peers": list(gpu.peers)} for gpu in gpus],
        "mps": {"active": all(gpu.mps for gpu in gpus), "control_program": shutil.which(CONTROL)},
        "gpu_mode": {
            "ranks_share_a_gpu": shared, "one_gpu_per_rank": "kernel", "pairs_without_peer_access": lacking,
        },
    }  # fmt: skip
    texts: dict[str, str] = {f"gpu {gpu.ordinal}": _described(gpu) for gpu in gpus}
    if len(gpus) > 1:
        texts["peer access"] = _peer_access(lacking)
    texts["mps"] = _mps(gpus)
    texts["gpu mode"] = messages.GPU_MODE_KERNEL() if shared == "kernel" else messages.GPU_MODE_STREAM()
    return data, texts


def _described(gpu: Gpu) -> Message:
    return messages.GPU(
        name=gpu.name, memory=f"{gpu.memory_bytes / (1 << 30):.1f}", capability=f"{gpu.major}.{gpu.minor}",
        multiprocessors=gpu.multiprocessors,
    )  # fmt: skip


def _peer_access(lacking: Sequence[tuple[int, int]]) -> Message:
    if not lacking:
        return messages.PEER_ACCESS()
    return messages.NO_PEER_ACCESS(pairs=listed([f"{first} -> {second}" for first, second in lacking], longest=12))


def _mps(gpus: Sequence[Gpu]) -> Message:
    if all(gpu.mps for gpu in gpus):
        return messages.MPS_ACTIVE()
    if shutil.which(CONTROL) is None:
        return join([messages.MPS_INACTIVE(), messages.MPS_NOT_INSTALLED(program=CONTROL)])
    return join([messages.MPS_INACTIVE(), messages.MPS_HOW_TO(program=CONTROL)])
