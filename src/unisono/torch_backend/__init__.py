"""PyTorch on Unisono: ``torch.distributed.init_process_group("unisono")``.

Importing this registers the backend. An installed Unisono does it by itself when torch is imported (entry point
``torch.backends``), so that programs need no import of ours. As that happens in every program that uses torch,
everything else is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unisono.torch_backend.registration import register

if TYPE_CHECKING:
    from unisono.torch_backend.compressed_gradients import codec_hook
    from unisono.torch_backend.options import Options
    from unisono.torch_backend.process_group import UnisonoProcessGroup, flight_record, write_flight_record

__all__ = ["Options", "UnisonoProcessGroup", "codec_hook", "flight_record", "register", "write_flight_record"]


def __getattr__(name: str) -> Any:
    if name == "Options":
        from unisono.torch_backend.options import Options

        return Options
    if name == "codec_hook":
        from unisono.torch_backend.compressed_gradients import codec_hook

        return codec_hook
    if name in ("UnisonoProcessGroup", "flight_record", "write_flight_record"):
        from unisono.torch_backend import process_group

        return getattr(process_group, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


register()
