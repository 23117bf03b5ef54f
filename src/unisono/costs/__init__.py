"""The cost terms of programs, by which the algorithm of a call is chosen: valid for every network and size.

::

    schedule ──> critical_path ──> Terms ──> predict(terms, rates, nbytes) ──> seconds
                                    │                        ▲
                                    └── stored_terms         └── Rates of a network

The simulator follows every message of one call on one network; cost terms answer in microseconds, for the choice of
an algorithm (docs/adr/0054-choice-by-prediction.md).
"""
