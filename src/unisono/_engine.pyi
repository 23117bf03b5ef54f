from typing import Any

from numpy import uint8
from numpy.typing import NDArray

def build_info() -> dict[str, Any]: ...
def variants() -> list[str]: ...
def combine(
    reduction: str, dtype: str, out: NDArray[uint8], left: NDArray[uint8], right: NDArray[uint8], variant: str = ""
) -> None: ...
