"""The choice of an algorithm on several hosts."""

from __future__ import annotations

from fractions import Fraction

import pytest

from unisono import collectives, find, prove
from unisono.algorithms.nodes import crossing_part
from unisono.collectives import COLLECTIVES, all_gather, all_reduce, barrier, broadcast, reduce, reduce_scatter
from unisono.comm.candidates import BETWEEN_HOSTS, Variant
from unisono.comm.codec_agreement import RoundingMode, agrees
from unisono.comm.explanation import explain
from unisono.comm.selection import choose
from unisono.comm.tables import checked_table
from unisono.comm.topology import hosts_of, topology_of
from unisono.comm.tuning import candidates_for
from unisono.costs.rates import Rates
from unisono.message import translated

KIB = 1024
PLACEMENTS = {
    "2x1": hosts_of((1, 1)), "4x1": hosts_of((1,) * 4), "2x2": hosts_of((2, 2)), "2x4": hosts_of((4, 4)),
    "3+1": hosts_of((3, 1)), "1+3": hosts_of((1, 3)), "2+2+1": hosts_of((2, 2, 1)),
    "round robin": ((0, 3, 6), (1, 4, 7), (2, 5)), "reversed": ((2, 3), (0, 1)),
}  # fmt: skip
LENGTHS = (0, 8, KIB, 32 * KIB - 1, 32 * KIB, 1 << 20, 64 << 20)


def chosen_variant(collective, size, nbytes, hosts):
    chosen = choose(collective, size, nbytes, {}, hosts=hosts)
    return Variant(chosen.algorithm, chosen.options)


def size_of(hosts):
    return sum(map(len, hosts))


@pytest.mark.parametrize("hosts", PLACEMENTS.values(), ids=PLACEMENTS)
@pytest.mark.parametrize("collective", COLLECTIVES, ids=str)
def test_the_chosen_program_is_proved_on_any_placement_and_for_unequal_blocks(collective, hosts):
    size = size_of(hosts)
    for nbytes in LENGTHS:
        variant = chosen_variant(collective, size, nbytes, hosts)
        for root in range(size) if collective.rooted else [None]:
            proof = prove(variant.schedule(size, root), depth=1)
            if collective.name != "all_to_all":  # whose unequal blocks are exchanged by another algorithm
                assert not proof.equal_blocks_only


@pytest.mark.parametrize("hosts", PLACEMENTS.values(), ids=PLACEMENTS)
def test_long_vectors_cross_between_hosts_no_more_than_they_must(hosts):
    size, count = size_of(hosts), len(hosts)

    def part(collective):
        return crossing_part(chosen_variant(collective, size, 64 << 20, hosts).schedule(size), hosts)

    assert part(all_reduce) == Fraction(2 * (count - 1), count)
    assert part(broadcast) == part(reduce) == 1
    fewest = min(map(len, hosts))
    assert part(all_gather) == part(reduce_scatter) == Fraction(size - fewest, size)


@pytest.mark.parametrize("hosts", PLACEMENTS.values(), ids=PLACEMENTS)
def test_direct_is_never_chosen_between_hosts(hosts):
    for nbytes in LENGTHS:
        for ranks_per_core in (1, 2):
            rates = Rates(ranks_per_core=ranks_per_core)
            assert choose(all_reduce, size_of(hosts), nbytes, {}, rates, hosts=hosts).algorithm.name != "direct"
    assert "direct" not in {each.name for each in candidates_for(all_reduce, size_of(hosts), hosts)}
    assert "direct" in {each.name for each in candidates_for(all_reduce, 4, hosts_of((4,)))}


def names(topology, *lengths):
    hosts = hosts_of(topology)
    return [choose(all_reduce, size_of(hosts), nbytes, {}, hosts=hosts).algorithm.name for nbytes in lengths]


def test_one_rank_of_each_host_is_enough_for_a_short_all_reduce_and_all_share_a_long_one():
    assert names((1, 1, 1, 1), 1024, 1 << 20) == ["recursive_doubling", "ring"]
    for topology in ((4, 4), (4, 4, 4, 4), (3, 1)):
        assert names(topology, 8, 4 * KIB, 16 << 20) == ["leaders", "leaders", "hierarchical"]


# The fastest algorithms between test hosts at 10 Gbit/s, on 16 cores.
MEASURED = [
    ("all_reduce", (1,) * 4, 8, "recursive_doubling"), ("all_reduce", (1,) * 4, 16 * KIB, "recursive_doubling"),
    ("all_reduce", (1,) * 4, 64 * KIB, "rabenseifner"), ("all_reduce", (1,) * 4, 1 << 20, "ring"),
    ("all_reduce", (1,) * 4, 64 << 20, "ring"), ("all_reduce", (1, 1), 1 << 20, "ring"),
    ("all_reduce", (4,) * 4, 8, "leaders"), ("all_reduce", (4,) * 4, 16 * KIB, "leaders"),
    ("all_reduce", (8, 8), 16 * KIB, "leaders"), ("all_reduce", (8, 8), 64 << 20, "hierarchical, ring"),
    ("all_reduce", (4,) * 4, 256 * KIB, "hierarchical, ring"),
    ("all_reduce", (4,) * 4, 1 << 20, "hierarchical, ring"),
    ("all_reduce", (4,) * 4, 64 << 20, "hierarchical, ring"),
    ("all_to_all", (4,) * 4, 64 * KIB, "hierarchical"), ("all_to_all", (4,) * 4, 64 << 20, "hierarchical"),
    ("all_gather", (4,) * 4, 8 * KIB, "hierarchical, bruck"), ("all_gather", (4,) * 4, 1 << 20, "hierarchical, ring"),
    ("reduce_scatter", (4,) * 4, 8 * KIB, "hierarchical, pat"),
]  # fmt: skip


@pytest.mark.parametrize(("collective", "counts", "nbytes", "fastest"), MEASURED)
def test_the_choice_is_what_was_measured_to_be_the_fastest(collective, counts, nbytes, fastest):
    chosen = choose(collectives.find(collective), sum(counts), nbytes, {}, hosts=hosts_of(counts))
    assert (
        ", ".join([chosen.algorithm.name, *[chosen.options[o] for o in ("outer",) if o in chosen.options]]) == fastest
    )


@pytest.mark.parametrize("speed", [0.5, 1, 2, 4])
def test_one_rank_of_each_host_cannot_keep_a_link_busy_whatever_the_speed_of_memory(speed):
    rates = Rates(*(each / speed if name in ("sent_byte_s", "received_byte_s", "copied_byte_s") else each
                    for name, each in Rates()._asdict().items()))  # fmt: skip
    for counts in ((4,) * 4, (8, 8)):
        for nbytes in (1 << 20, 64 << 20):
            chosen = choose(all_reduce, sum(counts), nbytes, {}, rates, hosts=hosts_of(counts))
            assert chosen.algorithm.name == "hierarchical"


@pytest.mark.parametrize("counts", [(3, 1), (5, 3, 2), (8, 7, 5, 3)])
def test_on_unequal_hosts_leaders_need_fewer_rounds(counts):
    hosts = hosts_of(counts)
    options = {"node": counts, "inner": "recursive_halving", "outer": "recursive_doubling"}
    chosen = chosen_variant(all_reduce, sum(counts), 8, hosts)
    other = find("hierarchical").schedule(sum(counts), **options)
    assert prove(chosen.schedule(sum(counts))).rounds < prove(other).rounds


def test_a_cut_into_very_many_chunks_is_not_chosen():
    hosts = hosts_of((9, 8, 7, 5))
    chosen = choose(all_reduce, size_of(hosts), 1 << 20, {}, hosts=hosts)
    assert chosen.algorithm.name == "leaders"
    prove(Variant(chosen.algorithm, chosen.options).schedule(29))


@pytest.mark.parametrize("rounding", [RoundingMode.TO_NEAREST, RoundingMode.STOCHASTIC])
@pytest.mark.parametrize("hosts", [PLACEMENTS["2x4"], PLACEMENTS["3+1"], PLACEMENTS["round robin"]])
@pytest.mark.parametrize("collective", [each for each in COLLECTIVES if each is not barrier], ids=str)
def test_with_a_codec_a_program_is_chosen_with_which_the_ranks_agree(collective, hosts, rounding):
    size = size_of(hosts)
    root = 1 if collective.rooted else None
    for nbytes in (8, 1 << 20):
        chosen = choose(
            collective, size, nbytes, {}, may_be_used=lambda each: agrees(each.schedule(size, root), rounding),
            hosts=hosts,
        )  # fmt: skip
        assert agrees(Variant(chosen.algorithm, chosen.options).schedule(size, root), rounding)


def test_a_table_is_found_by_the_topology():
    table = {"all_reduce": {"8": [[0, "tree"]], "2x4": [[0, "ring"]]}}
    assert choose(all_reduce, 8, 8, table).algorithm.name == "tree"
    assert choose(all_reduce, 8, 8, table, hosts=hosts_of((8,))).algorithm.name == "tree"
    assert choose(all_reduce, 8, 8, table, hosts=hosts_of((4, 4))).algorithm.name == "ring"
    assert choose(all_reduce, 8, 8, table, hosts=((0, 2, 4, 6), (1, 3, 5, 7))).algorithm.name == "ring"
    assert choose(all_reduce, 8, 8, table, hosts=hosts_of((5, 3))).algorithm.name == "leaders"


def test_a_measured_rule_keeps_its_options_and_uses_the_hosts_as_nodes():
    table = {"all_reduce": {"2x2": [[0, "hierarchical", {"inner": "pat", "outer": "tree"}]]}}
    chosen = choose(all_reduce, 4, 8, table, hosts=((0, 2), (1, 3)))
    assert chosen.options == {"node": ((0, 2), (1, 3)), "inner": "pat", "outer": "tree"}
    assert "measured by `unisono tune`" in chosen.reason
    prove(Variant(chosen.algorithm, chosen.options).schedule(4))


@pytest.mark.parametrize(
    ("nbytes", "english", "chinese"),
    [
        (64, "sizes below 8192 bytes", "小于 8192 字节"),
        (8192, "sizes from 8192 to 65535 bytes", "8192～65535 字节"),
        (1 << 20, "sizes from 65536 bytes", "不少于 65536 字节"),
    ],
)
def test_the_reason_states_the_sizes_to_which_the_rule_applies(nbytes, english, chinese):
    table = {"all_reduce": {"4": [[0, "tree"], [8192, "ring"], [65536, "direct"]]}}
    reason = choose(all_reduce, 4, nbytes, table).reason
    assert reason == f"selected for {english} on 4 ranks (measured by `unisono tune` on this machine)"
    assert f"4 个 rank、{chinese}时选用" in translated(reason, "zh")


def test_the_reason_of_a_single_rule_states_all_sizes():
    assert "selected for all sizes" in choose(all_reduce, 4, 8, {"all_reduce": {"4": [[0, "tree"]]}}).reason


def test_explain_states_the_topology_and_the_reason():
    hosts = hosts_of((4, 4))
    explanation = explain(all_reduce, 8, 1 << 20, {}, hosts=hosts)
    assert (explanation.topology, explanation.algorithm) == ("2x4", "hierarchical")
    assert explanation.options["node"] == 4
    assert "1048576 bytes on 8 ranks: hierarchical(node=4, " in str(explanation)
    assert "predicted to take" in str(explanation)
    assert explain(all_reduce, 8, 1 << 20, {}).topology == "8"


@pytest.mark.parametrize("collective", COLLECTIVES, ids=str)
@pytest.mark.parametrize("hosts", [PLACEMENTS["2x4"], PLACEMENTS["3+1"]])
def test_every_candidate_of_tune_is_a_valid_rule_of_a_table(collective, hosts):
    size = size_of(hosts)
    candidates = candidates_for(collective, size, hosts)
    for candidate in candidates:
        rule = candidate.rule(0)
        table = {collective.name: {topology_of(size, hosts): [rule]}}
        assert checked_table({"table": table}) == table
        chosen = choose(collective, size, 8, table, hosts=hosts)
        assert chosen.algorithm.name == candidate.name
    options = [(each.name, {**find(each.name, collective).options, **each.options}) for each in candidates]
    measured = [(name, stated.get("outer")) for name, stated in options]
    for name, outer in BETWEEN_HOSTS.get(collective.name, ()):
        assert all((name, each) in measured for each in outer)
