from typing import Any

from numpy import uint8
from numpy.typing import NDArray

def build_info() -> dict[str, Any]: ...
def variants() -> list[str]: ...
def combine(
    reduction: str, dtype: str, out: NDArray[uint8], left: NDArray[uint8], right: NDArray[uint8], variant: str = ""
) -> None: ...
def combine_many(
    reduction: str,
    dtype: str,
    out: NDArray[uint8],
    also: NDArray[uint8] | None,
    first: NDArray[uint8],
    addends: list[NDArray[uint8]],
    variant: str = "",
) -> None: ...
def divide(dtype: str, out: NDArray[uint8], array: NDArray[uint8], size: int, variant: str = "") -> None: ...
def copy_streaming(out: NDArray[uint8], array: NDArray[uint8]) -> None: ...
