"""How each collective can be done: one family of programs per file, order only."""

from unisono.algorithms.catalogue import BUILT_IN, find, of, serving
from unisono.algorithms.declaration import Algorithm, algorithm, one, one_per_rank

__all__ = ["BUILT_IN", "Algorithm", "algorithm", "find", "of", "one", "one_per_rank", "serving"]
