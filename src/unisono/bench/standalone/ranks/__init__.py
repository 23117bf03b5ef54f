"""The program of every rank of every contender: it measures collectives on command.

::

    python -m ranks LIBRARY SOCKET        LIBRARY: mpi, gloo, unisono or memory

The rank connects to the driver's Unix socket, introduces itself, and then reads commands and writes answers, one line
of JSON each. Every rank has its own connection, and the driver sends the command to each: a rank that waited for a
broadcast of its library would spin, and disturb the contender whose turn it is. When the driver closes the
connection or dies, the rank exits.

All contenders run the same loop: the clock is read after every call, and the time of a call is the difference to the
reading before. Arrays are allocated and touched once per command. During the timed calls they hold zeros, so that
repeated sums in place do not grow; results are checked before and after, with small integers, whose sums are exact in
every type and order.
"""
