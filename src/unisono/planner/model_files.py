"""Reads the config.json of a Hugging Face model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unisono.errors import UsageError
from unisono.message import listed
from unisono.planner import messages
from unisono.planner.models import Model

# Fields of a model, and the keys of config.json that may hold them, by age.
KEYS = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "num_heads"),
    "vocabulary": ("vocab_size",),
}
OPTIONAL = {
    "kv_heads": ("num_key_value_heads",),
    "intermediate": ("intermediate_size", "n_inner", "ffn_dim"),
    "sequence": ("max_position_embeddings", "n_positions"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "experts_per_token": ("num_experts_per_tok",),
    "head_features": ("head_dim",),
}
NOT_ROTARY = ("gpt2", "gpt_neo", "gpt_bigcode", "opt", "bloom", "mpt")
TWO_MATRICES = ("gpt2", "gpt_neo", "gpt_neox", "gptj", "opt", "bloom", "falcon", "phi", "starcoder2", "gpt_bigcode", "mpt")


def read_config(path: Path) -> Model:
    """Return the model of a config.json, or of a folder that contains one."""
    if path.is_dir():
        path = path / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(messages.NOT_JSON(path=path, found=error.strerror)) from None
    except ValueError as error:
        raise UsageError(messages.NOT_JSON(path=path, found=error)) from None
    if not isinstance(config, dict):
        raise UsageError(messages.NOT_JSON(path=path, found=type(config).__name__))
    config = config.get("text_config", config)  # of a model that also sees pictures
    values: dict[str, Any] = {}
    for field, keys in (KEYS | OPTIONAL).items():
        value = next((config[key] for key in keys if config.get(key) is not None), None)
        if value is not None:
            values[field] = value
        elif field in KEYS:
            raise UsageError(messages.MISSING_KEY(source=path, key=" or ".join(keys), found=listed(config)))
    kind = str(config.get("model_type", ""))
    gated = kind not in TWO_MATRICES
    tied = bool(config.get("tie_word_embeddings", not gated))
    name = config.get("_name_or_path") or path.parent.name or "config.json"
    return Model(name=Path(str(name)).name, tied=tied, gated=gated, rotary=kind not in NOT_ROTARY, **values)
