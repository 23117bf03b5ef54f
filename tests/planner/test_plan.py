"""Plans: the combinations that are enumerated, those that fit, their order, and the reasons."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unisono import networks, plan
from unisono.errors import UsageError
from unisono.planner import (
    MACHINES,
    PRESETS,
    PROGRAMS,
    Cluster,
    Configuration,
    admissible,
    evaluate,
    find_cluster,
    job_of,
    what_would_change,
    why_slower,
)
from unisono.planner.stages import layers_of_stages

SMALL = "layers=4,hidden=256,heads=8,vocabulary=1000,sequence=512"


@pytest.fixture(scope="module")
def small():
    return plan(SMALL, gpus=16, tokens="64K")


@pytest.mark.parametrize("gpus", [1, 2, 3, 5, 6, 7, 8, 13])
def test_every_combination_uses_all_gpus_and_all_sequences(gpus):
    model = PRESETS["llama-8b"]
    found = list(admissible(model, gpus, 12 * gpus))
    assert len(set(found)) == len(found) > 0
    for each in found:
        assert each.gpus == gpus
        assert each.sequences == 12 * gpus
        assert model.heads % each.tp == 0
        assert each.pp <= model.layers
        assert each.dp % each.ep == 0


def test_every_strategy_is_enumerated():
    found = list(admissible(PRESETS["mixtral-8x7b"], 64, 64))
    for axis in ("dp", "tp", "pp", "ep"):
        assert max(getattr(each, axis) for each in found) > 1, axis
    assert {each.zero for each in found} == {0, 1, 2, 3}
    assert {each.recompute for each in found} == {"none", "gathers", "full"}
    assert {each.sequence_parallel for each in found} == {False, True}
    assert {each.micro_batch for each in found} >= {1, 2, 4, 8}


def test_a_plan_is_sorted_and_fits(small):
    rates = [each.tokens_s_gpu for each in small]
    assert rates == sorted(rates, reverse=True)
    assert small.best is small.candidates[0]
    assert len(small) <= small.admissible
    assert all(each.memory.total <= small.job.cluster.usable for each in small)


def test_the_parts_of_a_step_add_up_to_its_rate(small):
    for each in small:
        assert min(each.times.parts().values()) >= 0
        assert each.tokens_s_gpu == pytest.approx(2**16 / each.times.total / 16)
        assert each.times.hidden >= 0


def test_the_mfu_follows_from_the_rate(small):
    flops = small.job.model.token_flops(512)
    assert small.best.mfu == pytest.approx(small.best.tokens_s_gpu * flops / 989e12)


def test_stages_balance_layers_and_head():
    assert layers_of_stages(16, 1, 4.0) == (16,)
    assert layers_of_stages(16, 2, 4.0) == (10, 6)
    assert layers_of_stages(16, 4, 4.0) == (5, 5, 5, 1)
    assert layers_of_stages(32, 4, 2.2) == (9, 9, 9, 5)
    for layers, stages, head in [(7, 3, 0.5), (13, 5, 1.0), (8, 8, 9.0)]:
        found = layers_of_stages(layers, stages, head)
        assert sum(found) == layers
        assert len(found) == stages


def job(gpus, model="llama-8b", tokens="4M", **options):
    return job_of(PRESETS[model], find_cluster(gpus, "dgx-h100", **options), tokens, 4096)


def test_the_bubble_shrinks_with_the_number_of_micro_batches():
    def share(micro_batches):
        times = evaluate(job(8), Configuration(pp=8, micro_batches=micro_batches)).times
        return times.bubble / times.total

    assert share(1) > 0.7
    assert share(1) > share(8) > share(64) > 0
    assert evaluate(job(8), Configuration(dp=8)).times.bubble == 0


def test_recomputing_costs_a_third_more_and_saves_memory():
    kept = evaluate(job(8), Configuration(dp=8, zero=3, micro_batches=8))
    again = evaluate(job(8), Configuration(dp=8, zero=3, micro_batches=8, recompute="full"))
    assert again.memory.activations < kept.memory.activations / 2
    assert 0.2 < again.times.recompute / kept.times.compute < 1 / 3


def test_each_stage_of_zero_needs_less_memory():
    totals = [evaluate(job(64), Configuration(dp=64, zero=zero)).memory for zero in range(4)]
    assert [each.total for each in totals] == sorted((each.total for each in totals), reverse=True)
    psi = PRESETS["llama-8b"].parameters
    assert totals[0].parameters == totals[0].gradients == 2 * psi
    assert totals[0].optimizer == 12 * psi
    assert totals[1].optimizer == pytest.approx(12 * psi / 64, rel=1e-6)
    assert totals[3].parameters == pytest.approx(2 * psi / 64, rel=1e-6)


def test_experts_are_divided_among_the_ranks_of_their_axis():
    whole = evaluate(job(8, "mixtral-8x7b"), Configuration(dp=8))
    divided = evaluate(job(8, "mixtral-8x7b"), Configuration(dp=8, ep=8))
    experts = PRESETS["mixtral-8x7b"].expert_parameters * 32 * 2
    assert whole.memory.parameters - divided.memory.parameters == pytest.approx(7 * experts)
    assert divided.times.expert > 0
    assert [each.axis for each in divided.traffic] == ["ep", "dp"]  # every expert is on one rank


def test_only_the_replicas_of_an_expert_reduce_its_gradients():
    def sent(ep):
        traffic = evaluate(job(16, "mixtral-8x7b"), Configuration(dp=16, ep=ep)).traffic
        return {each.size: each.sent_bytes for each in traffic if each.axis == "dp"}

    model = PRESETS["mixtral-8x7b"]
    experts = model.layers * model.experts * model.expert_parameters
    whole, divided = sent(1), sent(8)
    assert whole.keys() == {16}
    assert divided.keys() == {16, 2}
    assert divided[2] == pytest.approx(2 * 2 * experts / 8 / 2)
    assert whole[16] - divided[16] == pytest.approx(2 * 2 * experts * 15 / 16)


def test_a_tensor_parallel_group_on_two_hosts_is_slower_than_on_one():
    near = evaluate(job(8), Configuration(tp=8, sequence_parallel=True, micro_batch=8))
    far = evaluate(job(16), Configuration(tp=16, sequence_parallel=True, micro_batch=8))
    assert far.times.tensor > near.times.tensor
    assert {each.link for each in far.traffic} == {"far"}
    assert {each.link for each in near.traffic} == {"near"}


def test_bytes_are_counted_for_each_kind_of_link():
    near, far = (evaluate(job(gpus), Configuration(dp=gpus)).traffic[0] for gpus in (8, 64))
    assert near.far_bytes == 0
    assert near.near_bytes == near.sent_bytes == pytest.approx(2 * near.nbytes * near.count * 7 / 8)
    assert far.far_bytes == pytest.approx(
        far.sent_bytes / 8
    )  # one of the eight ranks of a host sends to another host
    split = evaluate(job(64), Configuration(dp=8, tp=8)).traffic
    assert {each.axis: each.far_bytes / each.sent_bytes for each in split} == {"tp": 0, "dp": 1}


def test_rows_for_experts_leave_the_host_as_often_as_experts_are_elsewhere():
    found = evaluate(job(16, "mixtral-8x7b"), Configuration(dp=16, ep=8, tp=1)).traffic
    assert next(each for each in found if each.axis == "ep").far_bytes == 0
    other = evaluate(job(64, "mixtral-8x7b"), Configuration(dp=32, tp=2, ep=8)).traffic
    assert next(each for each in other if each.axis == "ep").far_bytes == pytest.approx(
        next(each for each in other if each.axis == "ep").sent_bytes * 4 / 7
    )


def test_a_program_changes_the_prediction_and_a_tensor_parallel_layer_of_nanotron_waits_for_its_launch():
    split = Configuration(dp=8, tp=8, sequence_parallel=True, micro_batches=2)
    tuned, nanotron = (evaluate(job(64, "llama-1b", program=name), split) for name in ("tuned", "nanotron"))
    assert tuned.times.launch == 0
    assert nanotron.times.launch > nanotron.times.total / 2
    assert tuned.tokens_s_gpu > nanotron.tokens_s_gpu


def test_hidden_communication_costs_a_part_of_its_time():
    free, costly = (
        evaluate(
            job(64, program=replace(PROGRAMS["tuned"], hidden_cost=cost)),
            Configuration(dp=64, zero=3, micro_batch=2, micro_batches=8),
        ).times
        for cost in (0.0, 0.5)
    )
    assert costly.hidden == free.hidden > 0
    assert costly.total - free.total == pytest.approx(free.hidden / 2)


def test_attention_takes_the_larger_part_of_long_sequences():
    def rate(sequence):
        long = job_of(PRESETS["llama-8b"], find_cluster(8, "dgx-h100"), 8 * sequence, sequence)
        return evaluate(long, Configuration(dp=8, zero=3, recompute="full")).mfu

    assert rate(131072) < 0.75 * rate(8192)


def test_the_first_factor_that_changes_the_order_is_reported():
    found = plan("gpt2", gpus=8, tokens="64K")
    for change in what_would_change(found):
        times = change.change.parameters["times"]
        assert times in (2, 4, 8)
        assert change.first is not None or times == 8 or "tokens" in str(change.text) or "memory" in str(change.text)


def test_the_runner_up_has_a_reason_in_both_languages(small):
    text = why_slower(small.candidates[0], small.candidates[5])
    assert text.id == "planner.slower"
    assert "slower than" in text
    assert "more for" in text


def test_the_reason_names_the_part_that_differs_most():
    one = evaluate(job(8), Configuration(pp=8, micro_batches=64))
    other = evaluate(job(8), Configuration(pp=8, micro_batch=8, micro_batches=8))
    assert "more for the pipeline bubble" in why_slower(one, other)


def test_changes_of_the_job_may_change_the_order(small):
    changes = what_would_change(small)
    assert len(changes) >= 3
    texts = [each.text.id for each in changes]
    assert set(texts) <= {"planner.changes", "planner.changes_nothing"}


@pytest.mark.parametrize(
    ("options", "id_", "words"),
    [
        ({"gpus": 0}, "planner.out_of_range", "gpus"),
        ({"gpus": 2.5}, "planner.out_of_range", "2.5"),
        ({"memory": "80 apples"}, "planner.not_a_quantity", "80GB"),
        ({"memory": "1MB"}, "planner.out_of_range", "1GB"),
        ({"memory": "1GB"}, "planner.nothing_fits", "more GPUs"),
        ({"tokens": "many"}, "planner.not_a_quantity", "4M"),
        ({"tokens": 100}, "planner.tokens_too_few", "4096"),
        ({"tokens": 2**50}, "planner.out_of_range", "tokens"),
        ({"sequence": -1}, "planner.out_of_range", "sequence"),
        ({"machine": "h1000"}, "planner.no_machine", "h100"),
        ({"network": "dgx-h10"}, "networks.no_network", "dgx-h100"),
        ({"gpus": 7919, "tokens": "4M"}, "planner.nothing_admissible", "7919"),
    ],
)
def test_bad_input_is_an_error_that_says_what_was_expected(options, id_, words):
    with pytest.raises(UsageError) as raised:
        plan("llama-8b", **({"gpus": 8} | options))
    assert raised.value.id == id_
    assert words in str(raised.value)


def test_more_gpus_than_the_network_has_is_an_error():
    network = replace(networks.load("dgx-h100"), hosts=2)
    with pytest.raises(UsageError, match="16"):
        plan("gpt2", gpus=32, network=network)


def test_a_cluster_can_be_given_as_a_record():
    cluster = Cluster(8, networks.load("dgx-h100"), MACHINES["h200"])
    assert plan("gpt2", cluster).job.cluster.memory == 141e9
