"""Codecs that a call allows: they are used between hosts where the link is slow, by all ranks or by none."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from pretend_hosts import run_on_hosts
from unisono.bootstrap.job_config import MEASURE
from unisono.codecs import AutoCodec, Codec, error_bound
from unisono.collectives import COLLECTIVES, all_gather, all_reduce
from unisono.comm.codec_choice import choose_codec, rate_at_which_codec_pays
from unisono.comm.explain_call import explain_call
from unisono.comm.links import link_rate_in_config, settle_link_rate
from unisono.comm.topology import hosts_of
from unisono.errors import UsageError
from unisono.launch.spawn import spawn

GBIT = 1e9 / 8
BF16 = Codec("bf16")
ONE, TWO = hosts_of((4,)), hosts_of((2, 2))


@pytest.mark.parametrize(
    ("hosts", "nbytes", "rate", "chosen", "reason"),
    [
        (None, 1 << 20, GBIT, None, "the ranks are on one host"),
        (ONE, 1 << 20, GBIT, None, "the ranks are on one host"),
        (TWO, 1 << 20, None, None, "is not known"),
        (TWO, 1000, GBIT, None, "bf16 saves 0 of 8 µs"),  # a message occupies the link for 8 µs
        (TWO, 2000, GBIT, BF16, "it saves 8 of 16 µs"),
        (TWO, 8000, 10 * GBIT, None, "bf16 saves 0 of 8 µs"),
        (TWO, 1 << 20, GBIT, BF16, "on links of 1 Gbit/s it saves"),
        (TWO, 1 << 20, 400 * GBIT, None, "less than 2 times"),
    ],
)
def test_a_codec_is_used_between_hosts_where_it_saves_clearly_more_than_it_costs(hosts, nbytes, rate, chosen, reason):
    found = choose_codec(BF16, all_reduce, 4, nbytes, hosts, rate)
    assert found.codec == chosen
    assert reason in found.reason


def test_the_faster_the_link_the_less_a_codec_pays():
    for collective in COLLECTIVES:
        if collective.carries_data:
            rates = [GBIT * 2**power for power in range(-4, 12)]
            used = [choose_codec(BF16, collective, 4, 1 << 24, TWO, rate).codec is not None for rate in rates]
            assert used == sorted(used, reverse=True)
            assert used[0]
            assert not used[-1]


@pytest.mark.parametrize("nbytes", [100, 1000, 2000, 10_000, 1 << 20])
@pytest.mark.parametrize("codec", ["bf16", "int8"])
def test_a_codec_is_used_below_the_rate_at_which_it_pays_off_and_not_above(codec, nbytes):
    codec = Codec(codec)
    for collective in (all_reduce, all_gather):
        rate = rate_at_which_codec_pays(codec, collective, 4, nbytes, TWO)
        assert choose_codec(codec, collective, 4, nbytes, TWO, 0.99 * rate).codec == codec
        assert choose_codec(codec, collective, 4, nbytes, TWO, 1.01 * rate).codec is None


def test_explain_states_the_codec_and_the_reason():
    explained = explain_call("all_reduce", 1 << 20, size=4, table={}, hosts=TWO, codec="auto:bf16", link_rate=GBIT)
    assert explained.codec == "bf16"
    assert "codec bf16: on links of 1 Gbit/s" in str(explained)
    assert explain_call("all_reduce", 1 << 20, size=4, table={}, hosts=TWO).codec_reason is None


def _call_with_rates(comm):
    """Return for each rate the codec that was chosen, and whether each result is that of a codec, or exact."""
    found = []
    count = 5000
    own = np.random.default_rng(comm.rank).standard_normal(count, dtype=np.float32)
    for rate in (0.0, GBIT, 400 * GBIT):
        comm._link.config.link_rate = rate
        x, coded, exact = own.copy(), own.copy(), own.copy()
        with comm.split(0) as part, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            choice = part.choose_codec("auto:bf16", "all_reduce", x.nbytes)
            part.all_reduce(x, codec="auto:bf16")
            part.all_reduce(coded, codec="bf16")
            part.all_reduce(exact)
            known = part.link_rate
        kind = "exact" if (x == exact).all() else "bf16" if (x == coded).all() else "?"
        error = float(np.abs(x - exact).max())
        found.append((choice, kind, error, known, [str(each.message) for each in caught]))
    return found, float(np.abs(own).max())


@pytest.mark.parametrize("hosts", ["ab", "aab"])
def test_all_ranks_decide_alike_and_the_result_has_the_error_of_the_codec(hosts):
    results = run_on_hosts(_call_with_rates, list(hosts))
    largest = sum(own for _, own in results)
    bound = error_bound("bf16", len(hosts), largest)
    for unknown, slow, fast in (found for found, _ in results):
        assert unknown[:2] == results[0][0][0][:2]
        assert (unknown[0].codec, unknown[1], unknown[3]) == (None, "exact", None)
        assert slow[0] == results[0][0][1][0]
        assert (slow[0].codec, slow[1], slow[3]) == (BF16, "bf16", GBIT)
        assert 0 < slow[2] <= bound
        assert (fast[0].codec, fast[1]) == (None, "exact")
    assert any("is not known" in text for text in results[0][0][0][4])  # rank 0 warns once
    assert not any(found[0][4] for found, _ in results[1:])


def _calls_without_a_codec(comm):
    """Make calls that cannot use a codec although the link is slow; return whether all results are exact."""
    comm._link.config.link_rate = GBIT
    whole = np.arange(10_000)  # integers
    comm.all_reduce(whole, codec="auto:int8")
    in_sizes = [5_000 * (rank + 1) for rank in range(comm.size)]
    out_sizes = [in_sizes[comm.rank]] * comm.size
    given, got = np.full(sum(in_sizes), 1 / 3, np.float32), np.zeros(sum(out_sizes), np.float32)
    comm.all_to_all(got, given, in_sizes=in_sizes, out_sizes=out_sizes, codec="auto:bf16")
    noisy = AutoCodec(Codec("bf16", stochastic=True))
    x = np.full(10_000, 1 / 3, np.float32)
    comm.all_reduce(x, codec=noisy, algorithm="recursive_doubling", op="max")
    choice = comm.choose_codec(noisy, "all_reduce", x.nbytes, algorithm="recursive_doubling")
    exact = (whole == comm.size * np.arange(10_000)).all() and (got == given[0]).all() and (x == given[0]).all()
    return bool(exact), choice.codec, str(choice.reason)


def test_calls_that_cannot_use_a_codec_on_all_ranks_alike_send_numbers_unchanged():
    """Integers, lengths that the ranks do not share, and an algorithm that would not give all ranks the same bits."""
    for exact, codec, reason in run_on_hosts(_calls_without_a_codec, ["a", "a", "b"]):
        assert exact
        assert codec is None
        assert "would not get the same bits" in reason


def _call_on_one_host(comm):
    comm._link.config.link_rate = GBIT
    x = np.full(10_000, 1 / 3, np.float32)
    comm.all_reduce(x, codec="auto:fp8_e4m3")
    explained = comm.explain("all_reduce", x.nbytes, codec="auto:fp8_e4m3")
    return float(x[0]), explained.codec, comm.predict_sent_bytes("all_reduce", 10_000, codec="auto:fp8_e4m3")


def test_no_codec_is_used_on_one_host():
    for value, codec, sent in spawn(_call_on_one_host, 2):
        assert (value, codec, sent) == (float(np.float32(1 / 3) * 2), None, 40_000)


def _measure_rate(comm):
    comm._link.config.link_rate = MEASURE
    return settle_link_rate(comm, comm._link.config).link_rate


def test_the_rate_that_connect_measures_is_the_same_on_all_ranks():
    rates = run_on_hosts(_measure_rate, ["a", "b", "b"])
    assert rates[0] > 0
    assert len(set(rates)) == 1


@pytest.mark.parametrize("rate", [0, -1.0, float("nan"), float("inf"), "fast", True])
def test_a_rate_is_a_positive_number_or_measured(rate):
    with pytest.raises(UsageError, match="link_rate"):
        link_rate_in_config(rate)
    assert link_rate_in_config(None) == 0
    assert link_rate_in_config("measure") == MEASURE
    assert link_rate_in_config(10**9) == 1e9


def test_the_name_of_a_codec_that_does_not_exist_is_an_error_of_the_call():
    def call(comm):
        with pytest.raises(UsageError, match="bf17"):
            comm.all_reduce(np.zeros(4, np.float32), codec="auto:bf17")
        with pytest.raises(UsageError, match="used by every call"):
            comm.choose_codec("bf16", all_gather, 4)

    spawn(call, 1)
