"""Programs train on ranks that share a GPU as one process does that has all the data."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.gpu.torch_on_gpu import training  # noqa: E402

CLOSE = 1e-3  # of losses: the order of additions differs
STRATEGIES = [
    "--strategy ddp", "--strategy zero1", "--strategy zero2", "--strategy zero3", "--strategy tp",
    "--strategy tp --tp 2", "--strategy hybrid", "--strategy moe",
]  # fmt: skip
CODECS = ["fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "topk:0.1 --error-feedback"]


def assert_same(answers, close=CLOSE):
    for found, expected in answers:
        assert found == pytest.approx(expected, abs=close, rel=close)


@pytest.mark.parametrize(
    "options", [{}, {"gradient_as_bucket_view": True}, {"static_graph": True}, {"bucket_cap_mb": 0.01}], ids=str
)
def test_ddp_trains_like_one_process(ranks, options):
    assert_same(ranks.run(_ddp, options))


def _ddp(options):
    return training.ddp(**options)


@pytest.mark.parametrize(
    ("hook", "close"),
    [("allreduce_hook", CLOSE), ("fp16_compress_hook", 0.02), ("bf16_compress_hook", 0.05), ("bf16", 0.05),
     ("fp8_e4m3", 0.2), ("int8", 0.1)],
)  # fmt: skip
def test_ddp_hooks_train_like_one_process(ranks, hook, close):
    assert_same(ranks.run(_ddp, {"hook": hook}), close)


def test_a_topk_hook_trains(ranks):
    for found, _ in ranks.run(_ddp, {"hook": "topk:0.1"}):
        assert found[-1] < found[0] + 0.5


def test_no_sync_postpones_the_reduction(ranks):
    assert ranks.run(training.ddp_without_sync) == [True] * ranks.size


@pytest.mark.parametrize("mixed", [False, True], ids=["float32", "mixed"])
def test_fsdp_trains_like_one_process(ranks, mixed):
    assert_same(ranks.run(training.fsdp, mixed), 0.05 if mixed else CLOSE)


def test_hybrid_fsdp_trains_like_one_process(ranks):
    assert_same(ranks.run(training.fsdp, False, True))


def test_tensor_parallel_trains_like_one_process(ranks):
    assert_same(ranks.run(training.tensor_parallel))


def test_tensors_can_be_redistributed(ranks):
    assert ranks.run(training.placements) == [[]] * ranks.size


def test_functional_collectives_are_compiled(start):
    assert_same(start(2).run(training.compiled), 1e-6)


def test_a_compiled_model_trains_like_one_process(start):
    assert_same(start(2).run(training.compiled_ddp))


def test_checkpoints_are_saved_and_loaded(ranks):
    assert ranks.run(training.saved_and_loaded) == [True] * ranks.size


def test_batch_norm_of_torch_is_synchronised(ranks):
    assert_same(ranks.run(training.sync_batch_norm), 1e-4)


def test_layers_of_unisono_work(ranks):
    assert ranks.run(training.own_layers) == [[]] * ranks.size


def test_every_strategy_of_the_example_trains_like_one_process(ranks):
    for found in ranks.run(training.strategies, STRATEGIES):
        for words, (losses, expected) in found.items():
            assert losses == pytest.approx(expected, abs=5e-3), words


def test_every_codec_of_the_example_trains(ranks):
    cases = [f"--strategy {strategy} --codec {codec}" for strategy in ("ddp", "zero2") for codec in CODECS]
    cases = [words for words in cases if not ("zero2" in words and "topk" in words)]
    for found in ranks.run(training.strategies, cases):
        for words, (losses, expected) in found.items():
            assert losses == pytest.approx(expected, abs=0.5 if "topk" in words else 0.1), words
