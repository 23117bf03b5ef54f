"""Bad input to simulate, explain and plan: an error with the place, what was expected and what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

import unisono
from unisono.cli.main import main
from unisono.errors import UsageError
from unisono.planner import Configuration, evaluate, find_cluster, find_model, job_of

SMALL = "layers=2,hidden=8,heads=2,vocabulary=9"
NETWORK = """\
name = "two-hosts"
ranks_per_host = 4
hosts = 2
[near]
kind = "switch"
latency = "1 us"
bandwidth = "100 GB/s"
[nic]
count = 1
latency = "2 us"
bandwidth = "10 GB/s"
"""
CONFIG = '{"hidden_size": %s, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 9%s}'
FILES = {
    "two.toml": NETWORK, "not.toml": "x = [\n", "nan.toml": NETWORK.replace("100 GB/s", "nan GB/s"),
    "zero.toml": NETWORK.replace("= 4", "= 0"), "cut.json": '{"hidden_size": ', "list.json": "[1]", "empty.json": "",
    "word.json": CONFIG % ('"big"', ""), "minus.json": CONFIG % ("-8", ""), "nan.json": CONFIG % ("NaN", ""),
    "huge.json": CONFIG % ("1e400", ""), "odd.json": CONFIG % ("9", ""), "deep.json": "[" * 100_000,
    "latent.json": CONFIG % ("8", ', "kv_lora_rank": 4'), "t5.json": CONFIG % ("8", ', "is_encoder_decoder": true'),
    "experts.json": CONFIG % ("8", ', "num_experts": 2, "num_experts_per_tok": 4'),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("bad")
    for name, text in FILES.items():
        (made / name).write_text(text)
    for name in ("bytes.toml", "bytes.json"):
        (made / name).write_bytes(b"\xff\xfe\x00")
    for name in ("folder.toml", "folder.json", "folder"):
        (made / name).mkdir()
    return made


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


NETWORKS = {
    "dgx-h10": "did you mean 'dgx-h100'?", "missing.toml": "missing.toml", "folder.toml": "folder.toml",
    "not.toml": "not.toml, line 1", "bytes.toml": "UTF-8", "nan.toml": "near.bandwidth", "zero.toml": "line 2",
}  # fmt: skip
MODELS = {
    "llama-9b": "did you mean 'llama-8b'?", "": "presets", "missing.json": "No such file", "folder": "config.json",
    "folder.json": "config.json", "cut.json": "line 1", "list.json": "list", "empty.json": "empty.json",
    "bytes.json": "bytes.json", "word.json": "hidden_size", "minus.json": "-8", "nan.json": "nan", "huge.json": "inf",
    "odd.json": "9", "deep.json": "nested", "latent.json": "latent", "t5.json": "encoder", "experts.json": "1 to 2",
    "layers=2": "hidden", "layer=2": "did you mean 'layers'?", f"{SMALL},layers=3": "twice", "=": "layers=32",
    f"{SMALL},tied=maybe": "yes or no", f"{SMALL},kv_heads=0": "kv_heads", f"{SMALL},intermediate=-1": "intermediate",
    f"{SMALL},experts=99999999": "experts", SMALL.replace("layers=2", "layers=nan"): "1 to 10000",
    SMALL.replace("heads=2", "heads=3"): "divisible", "x" * 5000: "presets",
}  # fmt: skip
NUMBERS = ("0", "-1", "nan", "99999999999", "2.5")
CASES = [
    *((["simulate", "ring", "--network", name], words) for name, words in NETWORKS.items()),
    *((["explain", "--network", name], words) for name, words in NETWORKS.items()),
    *((["plan", "--network", name], words) for name, words in NETWORKS.items()),
    *((["plan", "--gpus", "8", "--model", name], words) for name, words in MODELS.items()),
    *((["simulate", "ring", "-n", text], "1 to 1000000") for text in NUMBERS),
    *((["explain", "-n", text], "1 to 1000000") for text in NUMBERS),
    *((["plan", "--gpus", text], "1 to 1000000") for text in NUMBERS),
    *((["plan", "--sequence", text], "1 to 1000000") for text in NUMBERS),
    *(([verb, *name, "--bytes", text], "bytes") for verb, *name in (["simulate", "ring"], ["explain"])
      for text in ("0", "-1", "nan", "1e400", "99999999999999999999", "8:4", "")),
    *((["plan", "--tokens", text], "tokens") for text in ("0", "nan", "4Q", "9999999999999G", "=-4M")),
    *((["plan", "--memory", text], "memory") for text in ("0", "nan", "80", "99999TB", "1MB")),
    (["simulate", "rng"], "all_reduce/ring"),
    (["simulate", "ring", "-n", "16", "--network", "two.toml"], "between 1 and 8 ranks"),
    (["simulate", "ring", "all_gather/ring"], "all_gather"),
    (["simulate", "ring", "--segments", "5000"], "4096"),
    (["simulate", "ring", "--codec", "bf17"], "bf16"),
    (["simulate", "broadcast/tree", "--root", "99"], "0 to 7"),
    (["explain", "all_redce"], "all_reduce"),
    (["explain", "-n", "16", "--network", "two.toml"], "between 1 and 8 ranks"),
    (["explain", "-n", "4", "--topology", "4x4"], "16 ranks"),
    (["explain", "--topology", "0x4"], "2x4"),
    (["explain", "--rate", "nan"], "10Gbit"),
    (["explain", "--built-in", "--network", "dgx-h100"], "one of them"),
    (["plan", "--gpus", "16", "--network", "two.toml"], "between 1 and 8 ranks"),
    (["plan", "--gpus", "7919"], "small factors"),
    (["plan", "--model", "llama-405b", "--gpus", "8"], "more GPUs"),
    (["plan", "--machine", "h1000"], "did you mean 'h100'?"),
    (["plan", "--program", "megatron"], "tuned"),
    (["plan", "--kind", "fp4"], "mixed"),
    (["plan", "--model", "gpt2", "--gpus", "8", "--draw", "folder"], "folder"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "expected"), CASES, ids=[" ".join(words)[:60] for words, _ in CASES])
def test_a_command_ends_with_a_clear_error(words, expected, capsys):
    try:
        code = main(words)
    except SystemExit as left:  # of argparse
        code = left.code
    said = capsys.readouterr().err
    assert code == 2
    assert expected in said
    assert "expected" in said or "did you mean" in said
    assert "Traceback" not in said
    assert len(said) < 1500


NAN, INF = float("nan"), float("inf")
RING = unisono.find("ring").schedule(4)


@pytest.mark.parametrize("value", [-1, NAN, INF, 10**30, "1MiB", None, True, 1.5])
def test_simulate_refuses_numbers_of_bytes(value):
    with pytest.raises(UsageError, match="nbytes"):
        unisono.simulate(RING, value, "ideal")


@pytest.mark.parametrize("value", [0, -1, NAN, 1.5, "3", True, 10**9])
def test_simulate_refuses_numbers_of_segments(value):
    with pytest.raises(UsageError, match="segments"):
        unisono.simulate(RING, 1024, "ideal", segments=value)


@pytest.mark.parametrize("value", ["nope", None, 5, Path("missing.toml"), Path("folder.toml"), "not.toml", b"x"])
def test_networks_that_are_none_are_refused(value):
    for call in (lambda: unisono.simulate(RING, 8, value), lambda: unisono.plan("gpt2", gpus=2, network=value)):
        with pytest.raises(UsageError, match="expected"):
            call()


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("gpus", [0, -1, NAN, "4", 2.5, 10**9, None, True]),
        ("tokens", [0, -1, NAN, INF, "x", None, [], 10**40]),
        ("sequence", [-1, NAN, INF, "512", None, 1.5, True, 10**40]),
        ("memory", [-1, NAN, INF, "x", 1.5, True, [1], 10**40]),
        ("machine", ["nope", 5]),
        ("program", ["nope", None, 5]),
        ("kind", ["nope", None, 5]),
    ],
)
def test_plan_refuses_values(key, values):
    for value in values:
        with pytest.raises(UsageError, match=f"(?s){key}.*expected.*hint"):
            unisono.plan("gpt2", **({"gpus": 2} | {key: value}))


@pytest.mark.parametrize("value", [None, 5, [], b"x", "a\0b", Path("missing")])
def test_plan_refuses_models(value):
    with pytest.raises(UsageError, match=r"(?s)expected.*found.*hint"):
        unisono.plan(value, gpus=2)


def test_plan_refuses_a_number_instead_of_a_cluster():
    with pytest.raises(UsageError, match="gpus=64"):
        unisono.plan("gpt2", 8)


@pytest.mark.parametrize(
    "values", [{"dp": 0}, {"tp": NAN}, {"zero": 7}, {"recompute": "x"}, {"micro_batch": 0}, {"dp": 8, "ep": 3}]
)
def test_a_configuration_that_is_none_is_refused(values):
    with pytest.raises(UsageError, match="configuration"):
        Configuration(**values)


@pytest.mark.parametrize("values", [{"tp": 5}, {"pp": 100}, {"dp": 2, "ep": 2}])
def test_a_configuration_that_does_not_divide_the_model_is_refused(values):
    job = job_of(find_model("gpt2"), find_cluster(8, "dgx-h100"), "4M")
    with pytest.raises(UsageError, match="configuration"):
        evaluate(job, Configuration(**values))
