"""Models: presets, config.json, numbers, and errors that say what was expected."""

from __future__ import annotations

import json

import pytest

from unisono.errors import UsageError
from unisono.planner import PRESETS, Model, find_model

# Parameters as published with the models, in billions.
PUBLISHED = {
    "gpt2": 0.124, "gpt2-xl": 1.56, "gpt3-175b": 175, "llama-1b": 1.24, "llama-3b": 3.21, "llama-8b": 8.03,
    "llama-70b": 70.6, "llama-405b": 406, "llama2-7b": 6.74, "llama2-13b": 13.0, "mistral-7b": 7.24,
    "mixtral-8x7b": 46.7, "qwen2.5-7b": 7.62, "qwen2.5-32b": 32.8,
}  # fmt: skip


def test_every_preset_has_a_published_size():
    assert set(PUBLISHED) == set(PRESETS)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_parameters_of_a_preset_match_the_published_number(name):
    assert PRESETS[name].parameters / 1e9 == pytest.approx(PUBLISHED[name], rel=0.01)


def test_a_config_json_gives_the_same_model_as_the_preset(tmp_path):
    config = {
        "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": False,
        "max_position_embeddings": 131072,
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert find_model(path).parameters == PRESETS["llama-8b"].parameters
    assert find_model(str(tmp_path)).kv_heads == 8


def test_an_old_config_json_has_other_keys(tmp_path):
    config = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config | {"n_positions": 1024}))
    assert find_model(path).parameters == PRESETS["gpt2"].parameters


# Keys of published config.json files, and the parameters of the models in billions.
CONFIGS = {
    "llama": (8.03, {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256}),
    "mixtral": (46.7, {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8,
        "num_experts_per_tok": 2}),
    "qwen3_moe": (30.5, {"hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768,
        "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
        "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936, "tie_word_embeddings": False}),
    "gemma2": (9.24, {"hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "vocab_size": 256000}),
    "gpt_neox": (20.6, {"hidden_size": 6144, "intermediate_size": 24576, "num_hidden_layers": 44,
        "num_attention_heads": 64, "vocab_size": 50432, "tie_word_embeddings": False}),
    "bloom": (176, {"hidden_size": 14336, "n_layer": 70, "num_attention_heads": 112, "vocab_size": 250880}),
    "gpt_bigcode": (15.5, {"n_embd": 6144, "n_head": 48, "n_inner": 24576, "n_layer": 40, "vocab_size": 49152,
        "multi_query": True}),
    "mpt": (6.65, {"d_model": 4096, "n_heads": 32, "n_layers": 32, "expansion_ratio": 4, "vocab_size": 50432}),
    "opt": (12.85, {"hidden_size": 5120, "ffn_dim": 20480, "num_hidden_layers": 40, "num_attention_heads": 40,
        "vocab_size": 50272}),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_config_json_of_each_family_gives_the_published_parameters(kind, tmp_path):
    billions, config = CONFIGS[kind]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config | {"model_type": kind}))
    found = find_model(path)
    assert found.parameters / 1e9 == pytest.approx(billions, rel=0.01)
    assert found.rotary == (kind not in ("bloom", "gpt_bigcode", "mpt", "opt"))


def test_numbers_describe_a_model():
    model = find_model("layers=2,hidden=64,heads=4,vocabulary=100,gated=no,tied=yes")
    assert model == Model("custom", 2, 64, 4, 100, gated=False, tied=True)


def test_an_expert_counts_once_for_each_token_and_once_in_memory():
    dense, sparse = PRESETS["mistral-7b"], PRESETS["mixtral-8x7b"]
    assert sparse.layer_parameters - dense.layer_parameters == 7 * dense.expert_parameters + 8 * 4096
    assert sparse.layer_flops - dense.layer_flops == 6 * (dense.expert_parameters + 8 * 4096)


@pytest.mark.parametrize(
    ("text", "id_", "words"),
    [
        ("llama-8x", "planner.no_model", "llama-8b"),
        ("no", "planner.no_model", "config.json"),
        ("layers=2,hidden=64,heads=4", "planner.missing_key", "vocabulary"),
        ("layers=2,hidden=64,heads=4,vocabulary=9,width=1", "planner.no_key", "width"),
        ("layers=two,hidden=64,heads=4,vocabulary=9", "planner.not_a_number", "layers"),
        ("layers=0,hidden=64,heads=4,vocabulary=9", "planner.not_a_number", "layers"),
        ("layers=2,hidden=65,heads=4,vocabulary=9", "planner.not_divisible", "65"),
        ("layers=2,hidden=64,heads=4,vocabulary=9,experts=2,experts_per_token=3", "planner.not_a_number", "1 to 2"),
        ("missing/config.json", "planner.not_json", "missing"),
    ],
)
def test_a_model_that_is_not_one_is_an_error_that_says_why(text, id_, words):
    with pytest.raises(UsageError) as raised:
        find_model(text)
    assert raised.value.id == id_
    assert words in str(raised.value)


@pytest.mark.parametrize("content", ["[]", "{", '{"hidden_size": 8}'])
def test_a_file_that_is_no_config_is_an_error(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=r"config\.json"):
        find_model(path)
