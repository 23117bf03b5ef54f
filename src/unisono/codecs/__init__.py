"""Smaller numbers on the wire: fp16, bf16, fp8, int8, top-k (docs/codecs.md).

``codec`` is the record of a codec and finds it by name, ``formats`` the number formats as data, ``reference``
what they mean, in plain numpy, ``coding`` lets the engine encode and decode, ``bounds`` says how wrong a
result can be, and ``feedback`` adds what was cut off to the next array.

For the communicator: all codecs but top-k are applied by the engine at send and receive. ``codec="topk:F"``
of an all-reduce is ``topk.all_reduce_topk(array, codec, size, all_gather, op)``, which needs nothing but an
all-gather of bytes.
"""

from unisono.codecs.bounds import error_bound, rounding_error, sum_error
from unisono.codecs.codec import Codec, find
from unisono.codecs.coding import decode, encode, round_in_place
from unisono.codecs.feedback import ErrorFeedback
from unisono.codecs.topk import all_reduce_topk

__all__ = [
    "Codec", "ErrorFeedback", "all_reduce_topk", "decode", "encode", "error_bound", "find", "round_in_place",
    "rounding_error", "sum_error",
]  # fmt: skip
