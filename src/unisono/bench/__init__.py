"""Measures collectives, our own and those of other libraries, side by side.

A *case* is a collective on a number of elements of one type, with one reduction. A *contender* is a set of ranks that
stays alive and measures a case on command: Unisono, or a *peer* (another library) in one *setting*. One command is a
*trial*. Contenders take turns, so that other load on the machine affects all of them alike.
"""
