"""Arithmetic that several algorithms share."""


def powers_of_two_below(size: int) -> list[int]:
    """Return the powers of two below ``size``: 1, 2, 4, ..."""
    return [1 << bit for bit in range((size - 1).bit_length())]


def largest_power_of_two(size: int) -> int:
    """Return the largest power of two that is not above ``size``."""
    return 1 << size.bit_length() - 1


def prime_factors(size: int) -> tuple[int, ...]:
    """Return the prime factors, smallest first: 12 gives (2, 2, 3)."""
    factors, divisor = [], 2
    while size > 1:
        if divisor * divisor > size:
            divisor = size
        while size % divisor == 0:
            factors.append(divisor)
            size //= divisor
        divisor += 1
    return tuple(factors)
