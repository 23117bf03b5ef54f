from __future__ import annotations

import pytest

from unisono import collectives
from unisono.bench.cases import Case, format_bytes, make_cases, parse_sizes
from unisono.collectives import all_gather, all_reduce, barrier
from unisono.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8", [8]),
        ("1KiB", [1024]),
        ("1 MiB", [1 << 20]),
        ("2GiB", [2 << 30]),
        ("100B", [100]),
        ("1KiB,1MiB,64MiB", [1 << 10, 1 << 20, 64 << 20]),
        ("1MiB,8,8", [8, 1 << 20]),
        ("8:64", [8, 16, 32, 64]),
        ("8:100", [8, 16, 32, 64]),
        ("8:8", [8]),
        ("8:16,1KiB:4KiB", [8, 16, 1024, 2048, 4096]),
    ],
)
def test_sizes_are_parsed(text, expected):
    assert parse_sizes(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "0", "-8", "8:", ":8", "16:8", "8:16:32", "1KB", "1.5MiB", "many", "8,,16", "9" * 40, "5000GiB", "１"],
)
def test_the_error_for_an_invalid_size_states_the_expected_form(text):
    with pytest.raises(UsageError, match=r"--bytes .*expected"):
        parse_sizes(text)


def test_a_range_to_256_mib_has_every_power_of_two():
    assert parse_sizes("8:256MiB") == [1 << power for power in range(3, 29)]


@pytest.mark.parametrize(("amount", "written"), [(8, "8 B"), (1024, "1 KiB"), (1536, "1536 B"), (3 << 20, "3 MiB")])
def test_bytes_are_formatted_in_the_largest_exact_unit(amount, written):
    assert format_bytes(amount) == written


def test_the_vector_is_the_array():
    assert [case.count for case in make_cases(all_reduce, [8, 1024], "float32", "sum", 3)] == [2, 256]


@pytest.mark.parametrize("collective", [each for each in collectives.COLLECTIVES if each.blocked], ids=str)
def test_the_vector_consists_of_one_block_per_rank(collective):
    cases = make_cases(collective, [8, 16, 1024], "float32", "sum", 3)
    # 8 and 16 bytes are both one element for each rank, and are measured once
    assert [(case.count, case.bytes) for case in cases] == [(3, 12), (255, 1020)]


def test_a_case_has_at_least_one_element():
    assert make_cases(all_reduce, [1, 2, 3], "float64", "sum", 2) == [Case(all_reduce, 1, "float64")]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((barrier, [8], "float32", "sum", 2), "moves no data"),
        ((all_gather, [8], "float128", "sum", 2), "no type 'float128'; expected one of float32"),
        ((all_reduce, [8], "float32", "xor", 2), "no reduction 'xor'; expected one of sum"),
        ((all_reduce, [8], "int32", "avg", 2), "avg of int32"),
    ],
)
def test_a_case_that_cannot_be_measured_is_rejected(arguments, complaint):
    with pytest.raises(UsageError, match=complaint):
        make_cases(*arguments)
