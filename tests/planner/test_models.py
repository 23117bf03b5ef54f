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
