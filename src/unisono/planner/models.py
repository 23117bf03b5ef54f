"""Models: the numbers of a decoder-only transformer, and presets of public architectures."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from unisono.errors import UsageError
from unisono.message import listed
from unisono.planner import messages
from unisono.planner.choices import suggestion

# The largest numbers of a model; more would be a mistake, and would take the planner long.
LIMITS = {
    "layers": 10_000, "hidden": 10**6, "heads": 10**5, "kv_heads": 10**5, "vocabulary": 10**8, "intermediate": 10**7,
    "sequence": 2**24, "experts": 10**5, "experts_per_token": 10**5, "head_features": 10**5,
}  # fmt: skip
WORDS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True)
class Model:
    """A decoder-only transformer.

    ``layers``, ``hidden``, ``heads``: the number of blocks, of features and of attention heads.
    ``kv_heads``: the heads of keys and values (0: as many as ``heads``).
    ``intermediate``: the inner width of the MLP (0: 4 * ``hidden``).
    ``vocabulary``: the number of words. ``sequence``: the longest sequence.
    ``tied``: the embedding and the head share their weights.
    ``gated``: the MLP has three matrices (SwiGLU), otherwise two.
    ``experts``, ``experts_per_token``: of a mixture of experts; 1 for a dense model.
    ``head_features``: the width of a head (0: ``hidden`` / ``heads``).
    ``rotary``: positions are rotations of queries and keys, otherwise a table or a bias of the scores.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    vocabulary: int
    kv_heads: int = 0
    intermediate: int = 0
    sequence: int = 4096
    tied: bool = False
    gated: bool = True
    experts: int = 1
    experts_per_token: int = 1
    head_features: int = 0
    rotary: bool = True

    def __post_init__(self) -> None:
        for key in ("layers", "hidden", "heads", "vocabulary", "sequence", "experts", "experts_per_token"):
            _check_number(key, getattr(self, key))
        for key, value in (("kv_heads", self.heads), ("intermediate", 4 * self.hidden)):
            object.__setattr__(self, key, value if _is_default(getattr(self, key)) else getattr(self, key))
            _check_number(key, getattr(self, key))
        if _is_default(self.head_features):
            self._check_divides("features", self.hidden, self.heads)
            object.__setattr__(self, "head_features", self.hidden // self.heads)
        _check_number("head_features", self.head_features)
        self._check_divides("heads", self.heads, self.kv_heads)
        if self.experts_per_token > self.experts:
            limits = {"most": self.experts, "found": self.experts_per_token}
            where = f"model {self.name}"
            raise UsageError(messages.NOT_A_NUMBER(where=where, key="experts_per_token", **limits))

    def _check_divides(self, what: str, found: int, by: int) -> None:
        if found % by:
            raise UsageError(messages.NOT_DIVISIBLE(name=self.name, what=what, found=found, heads=by))

    @property
    def attention_width(self) -> int:
        """The width of all heads together."""
        return self.heads * self.head_features

    @property
    def qkv_width(self) -> int:
        """The width of queries, keys and values together."""
        return (self.heads + 2 * self.kv_heads) * self.head_features

    @property
    def attention_parameters(self) -> int:
        """The parameters of the attention of a layer, with its two norms."""
        return self.hidden * (self.qkv_width + self.attention_width) + 2 * self.hidden

    @property
    def expert_parameters(self) -> int:
        """The parameters of the MLP of a layer, or of one of its experts."""
        return (3 if self.gated else 2) * self.hidden * self.intermediate

    @property
    def router_parameters(self) -> int:
        """The parameters of the router of a layer."""
        return self.hidden * self.experts if self.experts > 1 else 0

    @property
    def layer_parameters(self) -> int:
        """The parameters of a layer."""
        return self.attention_parameters + self.router_parameters + self.experts * self.expert_parameters

    @property
    def embedding_parameters(self) -> int:
        """The parameters of the embedding; the head has as many."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters."""
        ends = self.embedding_parameters * (1 if self.tied else 2) + self.hidden
        return self.layers * self.layer_parameters + ends

    @property
    def layer_flops(self) -> int:
        """The operations of a layer for one token, forward and backward, without attention scores."""
        used = self.attention_parameters + self.router_parameters + self.experts_per_token * self.expert_parameters
        return 6 * used

    def score_flops(self, sequence: int) -> int:
        """Return the operations of the causal attention scores of a layer for one token, forward and backward."""
        return 6 * self.attention_width * sequence

    def token_flops(self, sequence: int) -> int:
        """Return the operations of a training step for one token; MFU counts these."""
        layer = self.layer_flops + self.score_flops(sequence)
        return self.layers * layer + 6 * self.embedding_parameters


def _is_default(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value == 0


def _check_number(key: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LIMITS[key]:
        raise UsageError(messages.NOT_A_NUMBER(where="model", key=key, most=LIMITS[key], found=repr(value)[:40]))


# Presets: the config.json files that the authors of the models publish.
PRESETS = {
    model.name: model
    for model in (
        Model("gpt2", 12, 768, 12, 50257, sequence=1024, tied=True, gated=False, rotary=False),
        Model("gpt2-xl", 48, 1600, 25, 50257, sequence=1024, tied=True, gated=False, rotary=False),
        Model("gpt3-175b", 96, 12288, 96, 50257, sequence=2048, tied=True, gated=False, rotary=False),
        Model("llama-1b", 16, 2048, 32, 128256, 8, 8192, 131072, tied=True),
        Model("llama-3b", 28, 3072, 24, 128256, 8, 8192, 131072, tied=True),
        Model("llama-8b", 32, 4096, 32, 128256, 8, 14336, 131072),
        Model("llama-70b", 80, 8192, 64, 128256, 8, 28672, 131072),
        Model("llama-405b", 126, 16384, 128, 128256, 8, 53248, 131072),
        Model("llama2-7b", 32, 4096, 32, 32000, 32, 11008, 4096),
        Model("llama2-13b", 40, 5120, 40, 32000, 40, 13824, 4096),
        Model("mistral-7b", 32, 4096, 32, 32000, 8, 14336, 32768),
        Model("mixtral-8x7b", 32, 4096, 32, 32000, 8, 14336, 32768, experts=8, experts_per_token=2),
        Model("qwen2.5-7b", 28, 3584, 28, 152064, 4, 18944, 32768),
        Model("qwen2.5-32b", 64, 5120, 40, 152064, 8, 27648, 32768),
    )
}
FLAGS = ("tied", "gated", "rotary")
NUMBERS = tuple(field.name for field in fields(Model) if field.name not in ("name", *FLAGS))


def find_model(model: Model | str | Path) -> Model:
    """Return a model: a preset by name, a Hugging Face config.json, or numbers (``layers=32,hidden=4096,...``)."""
    from unisono.planner.model_files import read_config  # it imports this module

    if isinstance(model, Model):
        return model
    text = str(model)
    if text in PRESETS:
        return PRESETS[text]
    if isinstance(model, Path) or text.endswith(".json") or (text and _is_folder(text)):
        return read_config(Path(model))
    if "=" in text:
        return _from_numbers(text)
    hint = suggestion(text, PRESETS, messages.KNOWN_MODELS(known=listed(PRESETS)))
    raise UsageError(messages.NO_MODEL(name=text[:80], hint=hint))


def _is_folder(text: str) -> bool:
    try:
        return Path(text).is_dir()
    except (OSError, ValueError):  # too long to be a path, for example
        return False


def _from_numbers(text: str) -> Model:
    values: dict[str, Any] = {}
    for part in text.split(","):
        key, _, value = (piece.strip() for piece in part.partition("="))
        known = [*NUMBERS, *FLAGS]
        if key not in known:
            hint = suggestion(key, known, messages.KEY_EXAMPLE())
            raise UsageError(messages.NO_KEY(key=key[:40], known=listed(known), hint=hint))
        if key in values:
            raise UsageError(messages.TWICE(key=key))
        if key in FLAGS:
            if value.lower() not in WORDS:
                raise UsageError(messages.NOT_A_FLAG(where="model", key=key, found=value[:40]))
            values[key] = WORDS[value.lower()]
        elif len(value) > 12 or not (value.isascii() and value.isdecimal()) or int(value) == 0:
            raise UsageError(messages.NOT_A_NUMBER(where="model", key=key, most=LIMITS[key], found=repr(value[:40])))
        else:
            values[key] = int(value)
    for key in ("layers", "hidden", "heads", "vocabulary"):
        if key not in values:
            raise UsageError(messages.MISSING_KEY(source="model", key=key, found=listed(values)))
    return Model(name="custom", **values)
