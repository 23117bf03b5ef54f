"""Reads the config.json of a Hugging Face model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unisono.errors import UsageError
from unisono.message import listed
from unisono.planner import messages
from unisono.planner.models import LIMITS, Model

# Fields of a model, and the keys of config.json that may hold them.
KEYS = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "vocabulary": ("vocab_size",),
}
OPTIONAL = {
    "kv_heads": ("num_key_value_heads", "num_kv_heads"),
    "intermediate": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
    "sequence": ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "experts_per_token": ("num_experts_per_tok", "moe_topk"),
    "head_features": ("head_dim",),
}
EXPERT_WIDTH = "moe_intermediate_size"  # of each expert, where intermediate_size is the width of dense layers
# By model_type: an MLP of two matrices, embeddings that are tied unless the file says otherwise, no rotary positions.
TWO_MATRICES = (
    "gpt2", "gpt_neo", "gpt_neox", "gptj", "opt", "bloom", "falcon", "phi", "starcoder2", "gpt_bigcode", "mpt",
)  # fmt: skip
TIED = ("gpt2", "gpt_neo", "opt", "bloom", "falcon", "gpt_bigcode", "mpt", "gemma", "gemma2", "gemma3_text")
NOT_ROTARY = ("gpt2", "gpt_neo", "gpt_bigcode", "opt", "bloom", "mpt")
# Keys of architectures that a ``Model`` cannot describe, and what they are.
NOT_MODELLED = {
    "is_encoder_decoder": messages.ENCODER_DECODER,
    "kv_lora_rank": messages.LATENT_ATTENTION,
    "n_shared_experts": messages.SHARED_EXPERTS,
    "shared_expert_intermediate_size": messages.SHARED_EXPERTS,
    "ssm_cfg": messages.STATE_SPACE,
    "mamba_d_state": messages.STATE_SPACE,
}


def read_config(path: Path) -> Model:
    """Return the model of a config.json, or of a folder that contains one."""
    if path.is_dir():
        path = path / "config.json"
    config = _read_object(path)
    if isinstance(config.get("text_config"), dict):  # of a model that also sees pictures
        config = config["text_config"]
    for key, what in NOT_MODELLED.items():
        if config.get(key):
            raise UsageError(messages.NOT_MODELLED(path=path, key=key, what=what()))
    values: dict[str, Any] = {}
    for field, keys in (KEYS | OPTIONAL).items():
        given = next((key for key in keys if config.get(key) is not None), None)
        if given is not None:
            values[field] = _number(path, field, given, config[given])
        elif field in KEYS:
            raise UsageError(messages.MISSING_KEY(source=path, key=" or ".join(keys), found=listed(config, 12)))
    if values.get("experts", 1) > 1 and config.get(EXPERT_WIDTH) is not None:
        values["intermediate"] = _number(path, "intermediate", EXPERT_WIDTH, config[EXPERT_WIDTH])
    kind = str(config.get("model_type", ""))
    if config.get("multi_query") and not config.get("new_decoder_architecture"):
        values["kv_heads"] = 1
    tied = config.get("tie_word_embeddings")
    name = config.get("_name_or_path") or path.resolve().parent.name or "config.json"
    return Model(
        name=Path(str(name)).name, tied=bool(kind in TIED if tied is None else tied), gated=kind not in TWO_MATRICES,
        rotary=kind not in NOT_ROTARY, **values,
    )  # fmt: skip


def _read_object(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(messages.NOT_JSON(path=path, found=error.strerror)) from None
    except RecursionError:
        raise UsageError(messages.NOT_JSON(path=path, found=messages.NESTED())) from None
    except ValueError as error:  # text that is not JSON, or bytes that are not text
        raise UsageError(messages.NOT_JSON(path=path, found=error)) from None
    if not isinstance(config, dict):
        raise UsageError(messages.NOT_JSON(path=path, found=type(config).__name__))
    return config


def _number(path: Path, field: str, key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LIMITS[field]:
        raise UsageError(messages.NOT_A_NUMBER(where=path, key=key, most=LIMITS[field], found=repr(value)[:40]))
    return value
