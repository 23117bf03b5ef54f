"""The reductions as data: their names, the types they exist for, and their spellings in torch and MPI.

One table serves every part of Unisono: a communicator, a process group of torch, the player and the benchmark accept
the same names and refuse the same types.
"""

from __future__ import annotations

from dataclasses import dataclass

from unisono.errors import UsageError
from unisono.message import Template, listed

ELEMENT_BYTES = {
    "float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1,
    "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8, "bool": 1, "complex64": 8,
    "complex128": 16,
}  # fmt: skip
INTEGER, FLOATING, COMPLEX = "integer", "floating-point", "complex"  # kinds of types; booleans are integers here
_PREFIXES = (("int", INTEGER), ("uint", INTEGER), ("bool", INTEGER), ("complex", COMPLEX))

NO_SUCH_REDUCTION = Template(
    "reductions.no_such_reduction",
    "there is no reduction {op}; expected one of {names}",
    "没有名为 {op} 的归约运算；应为 {names} 之一",
)
WOULD_ROUND = Template(
    "reductions.would_round",
    "op='{op}' on {dtype} would round; convert the inputs to a floating-point dtype first",
    "对 {dtype} 使用 op='{op}' 会产生舍入；请先把输入转换为浮点类型",
)
INTEGERS_ONLY = Template(
    "reductions.integers_only",
    "op='{op}' on {dtype} has no meaning; expected integers or booleans",
    "op='{op}' 对 {dtype} 没有意义；应为整数或布尔类型",
)
NO_ORDER = Template(
    "reductions.no_order",
    "op='{op}' on {dtype} has no meaning; complex numbers have no order",
    "op='{op}' 对 {dtype} 没有意义；复数没有大小顺序",
)


@dataclass(frozen=True)
class Reduction:
    """One way to combine the values of all ranks."""

    name: str
    torch: str  # its name in torch.distributed.ReduceOp
    mpi: str | None  # its name in MPI, if MPI has it
    kinds: frozenset[str]  # of types that it exists for
    refusal: Template | None = None  # the error for any other type
    aliases: tuple[str, ...] = ()  # other names that calls accept


_ALL = frozenset((INTEGER, FLOATING, COMPLEX))
_ORDERED = frozenset((INTEGER, FLOATING))
_BITS = frozenset((INTEGER,))
_TABLE = (
    Reduction("sum", "SUM", "SUM", _ALL),
    Reduction("prod", "PRODUCT", "PROD", _ALL, aliases=("product",)),
    Reduction("max", "MAX", "MAX", _ORDERED, NO_ORDER),
    Reduction("min", "MIN", "MIN", _ORDERED, NO_ORDER),
    # A sum that is divided by the number of ranks at the end.
    Reduction("avg", "AVG", None, frozenset((FLOATING, COMPLEX)), WOULD_ROUND),
    Reduction("band", "BAND", "BAND", _BITS, INTEGERS_ONLY),
    Reduction("bor", "BOR", "BOR", _BITS, INTEGERS_ONLY),
    Reduction("bxor", "BXOR", "BXOR", _BITS, INTEGERS_ONLY),
)
REDUCTIONS = {reduction.name: reduction for reduction in _TABLE}
_BY_SPELLING = {spelling: each for each in _TABLE for spelling in (each.name, *each.aliases)}


def kind_of(dtype: str) -> str:
    """Return the kind of a type, which is given by its name."""
    return next((kind for prefix, kind in _PREFIXES if dtype.startswith(prefix)), FLOATING)


def find_reduction(op: object) -> Reduction:
    """Return the reduction of a name or alias; raise UsageError if there is none."""
    found = _BY_SPELLING.get(op) if isinstance(op, str) else None
    if found is None:
        raise UsageError(NO_SUCH_REDUCTION(op=repr(op), names=listed(REDUCTIONS)))
    return found


def check_op(op: object, dtype: str) -> str:
    """Return the name of a reduction; raise UsageError if the type, given by its name, does not have it."""
    found = find_reduction(op)
    if kind_of(dtype) not in found.kinds:
        assert found.refusal is not None
        raise UsageError(found.refusal(op=found.name, dtype=dtype))
    return found.name
