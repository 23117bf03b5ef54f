"""Measures collectives, our own and those of other libraries, side by side in one run.

A *case* is what is measured: a collective, bytes, a type, a reduction. A *contender* is a group of ranks that is kept
alive and measures on command: Unisono, or a *peer*, another library, in one *setting*. Contenders take turns, so that
a busy moment of the machine hits all of them alike.
"""
