"""Smaller numbers on the wire: fp16, bf16, fp8, int8, top-k (docs/codecs.md).

``codec`` has the record of a codec and finds it by name, ``auto`` the permission to use one where it pays,
``formats`` lists the number formats as data, ``reference`` defines them in plain numpy, ``coding`` encodes and
decodes with the engine, ``bounds`` bounds the error of a result, and ``feedback`` adds what was dropped to the next
array.

In a communicator the engine applies all codecs but top-k, at send and receive. An all-reduce with ``codec="topk:F"``
is ``topk.all_reduce_topk(array, codec, size, all_gather, op)``, which needs only an all-gather of bytes.
"""

from unisono.codecs.auto import AutoCodec, find_auto
from unisono.codecs.bounds import error_bound, rounding_error, sum_error
from unisono.codecs.codec import Codec, find
from unisono.codecs.coding import decode, encode, round_in_place
from unisono.codecs.feedback import ErrorFeedback
from unisono.codecs.topk import all_reduce_topk

__all__ = [
    "AutoCodec", "Codec", "ErrorFeedback", "all_reduce_topk", "decode", "encode", "error_bound", "find", "find_auto",
    "round_in_place", "rounding_error", "sum_error",
]  # fmt: skip
