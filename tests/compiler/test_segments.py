"""A call with a codec is cut into segments of whole codec blocks."""

from __future__ import annotations

import pytest

from unisono import find
from unisono.compiler import CallLayout, CodecBlock, Lengths, lay_out_call, lower
from unisono.compiler.call_layout import PADDING
from unisono.errors import UsageError
from unisono.verifier import proved
from unisono.verifier.rounding import proved_with_codec

FP8 = CodecBlock(memory_bytes=128, wire_bytes=33)
STAGING_BYTES = 64 * 1024


def numbers(name: str, size: int, length: int, staging_bytes: int = STAGING_BYTES) -> tuple[CallLayout, int]:
    """Return the numbers of an all-reduce with a codec, and the most chunks that a rank sends."""
    schedule = find(name).schedule(size)
    lowered = lower(proved_with_codec(proved(schedule)), 0)
    lengths = Lengths((length,), (length,))
    collective = find(name).collective
    return lay_out_call(
        lowered, schedule, collective, 0, lengths, 4, staging_bytes, codec_block=FP8
    ), lowered.most_sent


@pytest.mark.parametrize("size", [2, 3, 5, 8, 13])
@pytest.mark.parametrize("length", [1, 31, 33, 1000, 100_003, 10_000_019])
@pytest.mark.parametrize("name", ["ring", "direct", "recursive_doubling", "all_reduce/naive"])
def test_no_codec_block_is_cut_and_two_passes_fit_into_the_staging_area(name, size, length):
    made, most_sent = numbers(name, size, length)
    assert made.segment_bytes % FP8.memory_bytes == 0
    on_the_wire = made.segment_bytes // FP8.memory_bytes * FP8.wire_bytes
    assert 2 * most_sent * (on_the_wire + PADDING) <= STAGING_BYTES
    chunk = -(-length // find(name).schedule(size).chunks) * 4
    assert (made.passes - 1) * made.segment_bytes < chunk <= made.passes * made.segment_bytes


@pytest.mark.parametrize(
    ("length", "passes"),
    [(1000, 1), (4 * 16384 * 2, 4), (4 * 16384 * 2 - 1, 4), (10**6, 8), (4 * 16384, 2)],
)
def test_where_several_passes_run_at_a_time_a_vector_has_a_segment_for_each(length, passes):
    """Unless segments become shorter than 64 KiB, or longer than 256 KiB."""
    schedule = find("ring").schedule(2)
    lowered = lower(proved(schedule), 0, hosts=((0,), (1,)))
    lengths = Lengths((length,), (length,))
    made = lay_out_call(lowered, schedule, find("ring").collective, 0, lengths, 4, 2 << 20, tracks=4)
    assert made.passes == passes


def test_a_codec_needs_fewer_passes_in_a_small_staging_area():
    with_codec, _ = numbers("direct", 13, 1_000_000)
    schedule = find("direct").schedule(13)
    lowered = lower(proved(schedule), 0)
    plain = lay_out_call(
        lowered, schedule, find("direct").collective, 0, Lengths((10**6,), (10**6,)), 4, STAGING_BYTES
    )
    assert with_codec.passes < plain.passes / 3


def test_a_staging_area_too_small_for_a_codec_block_is_rejected():
    with pytest.raises(UsageError, match="connect with a larger staging_bytes, or choose another algorithm"):
        numbers("direct", 13, 1000, staging_bytes=10_000)
