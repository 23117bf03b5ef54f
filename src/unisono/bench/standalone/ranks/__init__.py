"""What every rank of every contender runs: it measures collectives on command.

::

    python -m ranks LIBRARY SOCKET        LIBRARY: mpi, gloo, unisono or memory

The rank connects to the driver's Unix socket, says hello, and then reads commands and writes answers, one line of
JSON each. Every rank has a connection of its own, and the driver sends the command to each: a rank that waited for a
broadcast of its own library would spin, and disturb the contender whose turn it is. When the driver closes the
connection, or dies, the rank ends.

What is measured is the same loop for all: the clock is read after every call, and the time of a call is what has
passed since the reading before. Arrays are made and touched once per command. While the clock runs they hold zeros,
so that repeated sums in place stay what they are; results are checked before and after, with small integers, whose
sums are exact in every type and order.
"""
