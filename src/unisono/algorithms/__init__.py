"""The algorithms of each collective: one family of programs per file, communication order only."""

from unisono.algorithms.catalogue import BUILT_IN, algorithms_of, algorithms_serving, find
from unisono.algorithms.declaration import Algorithm, algorithm, one, one_per_rank

__all__ = ["BUILT_IN", "Algorithm", "algorithm", "algorithms_of", "algorithms_serving", "find", "one", "one_per_rank"]
