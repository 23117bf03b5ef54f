"""The butterfly: the rank is written in a mixed radix, and each stage exchanges along one digit."""

from collections.abc import Sequence
from math import prod

from unisono.algorithms import messages
from unisono.algorithms.arithmetic import prime_factors
from unisono.algorithms.declaration import Steps, algorithm, one
from unisono.algorithms.naive import naive
from unisono.collectives import all_reduce
from unisono.errors import UsageError
from unisono.schedule import mapped


def stages(size: int, factors: tuple[int, ...] | int | None) -> tuple[int, ...]:
    """Return the radices of the stages; raise UsageError unless their product is the size."""
    chosen = prime_factors(size) if factors is None else (factors,) if isinstance(factors, int) else factors
    whole = isinstance(chosen, Sequence) and all(isinstance(factor, int) and factor > 0 for factor in chosen)
    if not whole or prod(chosen) != size:
        raise UsageError(
            messages.BAD_FACTORS(
                algorithm="all_reduce/butterfly", factors=factors, size=size, example=prime_factors(size)
            )
        )
    return tuple(chosen)


@algorithm(
    all_reduce, chunks=one,
    scratch=lambda size, factors: max((naive.scratch_count(radix) for radix in stages(size, factors)), default=0),
)  # fmt: skip
def butterfly(rank: int, size: int, factors: tuple[int, ...] | int | None = None) -> Steps:
    """With size = f1·f2·…, the f_i ranks that differ only in digit i exchange sums in stage i.

    (Mixed-radix butterfly: Ruefenacht et al., 2017.)
    """
    stride = 1
    for radix in stages(size, factors):
        digit = rank // stride % radix
        group = [rank + (other - digit) * stride for other in range(radix)]
        yield from mapped(naive(digit, radix), ranks=group)
        stride *= radix
