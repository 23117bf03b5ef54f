"""An invalid tuning table is ignored with a warning that states the reason; no job fails because of it."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import unisono
from unisono.collectives import COLLECTIVES
from unisono.comm import tables


def rules(*rows, collective="all_reduce", size="2"):
    return json.dumps({"table": {collective: {size: list(rows)}}})


BAD = {
    "garbage": ("\x00garbage", "expected JSON"),
    "null": ("null", "found null"),
    "infinity": ('{"table":{"all_reduce":{"2":[[Infinity,"ring"]]}}}', "expected 0, as the first rule, found inf"),
    "nan": ('{"table":{"all_reduce":{"2":[[NaN,"ring"]]}}}', "found nan"),
    "1e400": ('{"table":{"all_reduce":{"2":[[0,"ring"],[1e400,"tree"]]}}}', "expected a number of bytes above 0"),
    "starts late": (rules([1_000_000, "ring"]), "rule 1: expected 0, as the first rule, found 1000000"),
    "negative": (rules([-5, "ring"]), "found -5"),
    "a boolean": (rules([False, "ring"]), "found False"),
    "not ascending": (rules([0, "ring"], [9, "tree"], [9, "naive"]), "rule 3: expected a number of bytes above 9"),
    "too large": (rules([0, "ring"], [2**63, "tree"]), "rule 2"),
    "unknown algorithm": (rules([0, "no_such"]), "expected an algorithm of all_reduce for 2 ranks, found 'no_such'"),
    "of another collective": (rules([0, "broadcast/naive"]), "found 'broadcast/naive'"),
    "a file name": (rules([0, "evil.py:boom"]), "found 'evil.py:boom'"),
    "deep": ('{"table":' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    "nested rules": (rules([[[0]], "ring"]), "found [[0]]"),
    "long int": ('{"table":{"all_reduce":{"2":[[' + "9" * 5000 + ',"ring"]]}}}', "expected JSON"),
    "huge": (rules(*[[number, "ring"] for number in range(50_000)]), "expected at most"),
    "no rules": (rules(), "expected a list of rules, found []"),
    "three in a rule": (rules([0, "naive", 5]), "or [bytes, algorithm, options], found [0, 'naive', 5]"),
    "unknown collective": (rules([0, "ring"], collective="all_sum"), "the name of a collective, found 'all_sum'"),
    "no ranks": (rules([0, "ring"], size="0"), "expected a number of ranks, or hosts such as 2x4 or 3+1, found '0'"),
    "ranks in Arabic": (rules([0, "ring"], size="٢"), "expected a number of ranks"),
    "many ranks": (rules([0, "ring"], size="9" * 5000), "expected a number of ranks"),
    "hosts out of order": (rules([0, "ring"], size="1+3"), "or hosts such as 2x4 or 3+1, found '1+3'"),
    "equal hosts in a sum": (rules([0, "ring"], size="2+2"), "or hosts such as 2x4 or 3+1, found '2+2'"),
    "one host": (rules([0, "ring"], size="1x4"), "or hosts such as 2x4 or 3+1, found '1x4'"),
    "no hosts": (rules([0, "ring"], size="0x4"), "or hosts such as 2x4 or 3+1, found '0x4'"),
    "hosts of hosts": (rules([0, "ring"], size="2x2x2"), "or hosts such as 2x4 or 3+1"),
    "too many hosts": (rules([0, "ring"], size="9999999x9999999"), "or hosts such as 2x4 or 3+1"),
    "unknown option": (rules([0, "hierarchical", {"speed": 3}], size="2x4"), "expected options of all_reduce/hier"),
    "an option of a list": (rules([0, "hierarchical", {"inner": ["ring"]}], size="2x4"), "expected options of"),
    "an unknown inner algorithm": (rules([0, "hierarchical", {"inner": "no"}], size="2x4"), "expected options of"),
    "a file as an inner algorithm": (rules([0, "leaders", {"outer": "x.py:f"}], size="2x4"), "expected options of"),
    "sizes are a list": ('{"table":{"all_reduce":[]}}', "expected rules for each number of ranks, found []"),
}  # fmt: skip


def put(text: str) -> None:
    tables.table_path().parent.mkdir(parents=True, mode=0o700)
    tables.table_path().write_text(text)
    tables.table_path().chmod(0o600)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_table_is_ignored_with_a_warning_that_names_the_rule(name):
    text, reason = BAD[name]
    put(text)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert tables.load_table() == {}
        assert tables.load_table() == {}
    assert len(said) == 1
    message = str(said[0].message)
    assert str(tables.table_path()) in message
    assert reason in message
    assert "run `unisono tune` again, or delete the file" in message


def use(comm):
    x, y = np.ones(10), np.ones(100_000, np.float32)
    comm.all_reduce(x)
    comm.all_reduce(y)
    return float(x[0]), float(y[-1])


@pytest.mark.parametrize(
    "name", ["infinity", "starts late", "unknown algorithm", "of another collective", "deep", "huge"]
)
def test_a_job_with_a_bad_table_works(name):
    put(BAD[name][0])
    assert unisono.spawn(use, 2, timeout=60) == [(2.0, 2.0)] * 2


def test_the_largest_accepted_table_can_be_sent_to_all_ranks():
    rules = [[0, "naive"], [1024, "ring"], [4096, "direct"]]
    for_one_size = len(json.dumps({"table": {"all_reduce": {"10000": rules}}}, indent=1))
    table: dict = {"all_reduce": {str(size): rules for size in range(2, tables.MOST_TABLE_BYTES // for_one_size)}}
    assert len(json.dumps({"table": table}, indent=1)) > tables.MOST_TABLE_BYTES / 2
    put(json.dumps({"table": table}, indent=1))
    assert tables.load_table() == table
    assert unisono.spawn(use, 2, timeout=60) == [(2.0, 2.0)] * 2


def test_a_bad_table_is_replaced_by_the_next_measurement():
    put("[]")
    with pytest.warns(UserWarning, match="ignored"):
        tables.store_table({"reduce": {"3": [[0, "tree"]]}})
    assert tables.load_table() == {"reduce": {"3": [[0, "tree"]]}}


def test_every_collective_may_have_rules():
    for collective in COLLECTIVES:
        first = unisono.algorithms.algorithms_of(collective)[0].name
        assert tables.checked_table({"table": {collective.name: {"4": [[0, first]]}}})
