"""Pairs the sends of a trace with their receives."""

from __future__ import annotations

from collections.abc import Sequence

from unisono.tracing.run import Transfer


def paired_transfers(transfers: Sequence[Transfer]) -> list[tuple[Transfer, Transfer]]:
    """Return every send with its receive: both ends know the number of a message between two ranks."""
    sent = {(transfer.rank, transfer.peer, transfer.number): transfer for transfer in transfers if transfer.sending}
    pairs = []
    for received in transfers:
        send = None if received.sending else sent.get((received.peer, received.rank, received.number))
        if send is not None and send.tag == received.tag:
            pairs.append((send, received))
    return pairs
