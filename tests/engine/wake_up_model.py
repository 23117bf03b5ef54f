"""A model of ranks that sleep and wake each other, small enough to try every interleaving.

A waker writes a message and then reads whether a sleeper has announced itself; only then does it change the wake word
(a futex) and wake the sleepers. The processor of the waker may keep the message in a store buffer for any length of
time, so the read may take effect before the write. The steps of a sleeper are letters; their order is the protocol:

    b  reads the wake word     a  announces that it sleeps          f  runs a fence on every core (membarrier)
    l  looks for its message   w  waits, unless the wake word has changed since b

It then withdraws the announcement and starts again, unless it found its message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

PROTOCOL = "baflw"  # engine/src/shm/endpoint_waiting.cpp


class Waker(NamedTuple):
    """The state of a thread that sends messages."""

    left: int
    buffered: int = 0  # messages that only its own core sees
    step: str = "write"  # write, read or wake


class Sleeper(NamedTuple):
    """The state of a thread that waits until ``wants`` messages are in memory."""

    wants: int
    at: int = 0  # the next letter of the protocol; past the last one, it withdraws its announcement
    wake_word: int = 0  # as it was read
    found: bool = False
    asleep: bool = False


class State(NamedTuple):
    """The state of all threads and of the memory that they share."""

    wakers: tuple[Waker, ...]
    sleepers: tuple[Sleeper, ...]
    messages: int = 0
    announced: int = 0
    wake_word: int = 0


class SearchResult(NamedTuple):
    """The result of a search through all interleavings."""

    states: int
    lost: int  # final states in which a thread sleeps although its messages have arrived


def search(protocol: str, *, wakers: int, messages: int, sleepers: int) -> SearchResult:
    """Try every interleaving of ``wakers`` threads that send ``messages`` each with ``sleepers`` threads.

    The last sleeper waits for all messages, the others for fewer.
    """
    total = wakers * messages
    wants = [max(1, total * (number + 1) // sleepers) for number in range(sleepers)]
    start = State((Waker(messages),) * wakers, tuple(Sleeper(count) for count in wants))
    seen, pending, lost = {start}, [start], 0
    while pending:
        state = pending.pop()
        successors = set(_successors(state, protocol))
        if not successors:
            assert state.messages == total  # every message has reached the memory
            lost += any(sleeper.asleep for sleeper in state.sleepers)
        pending += successors - seen
        seen |= successors
    return SearchResult(len(seen), lost)


def _successors(state: State, protocol: str) -> Iterator[State]:
    for index, waker in enumerate(state.wakers):
        for moved, after in _steps_of_waker(waker, state):
            yield after._replace(wakers=(*state.wakers[:index], moved, *state.wakers[index + 1 :]))
    for index, sleeper in enumerate(state.sleepers):
        if not sleeper.asleep and not (sleeper.found and sleeper.at == 0):
            moved, after = _step_of_sleeper(sleeper, state, protocol)
            yield after._replace(sleepers=(*state.sleepers[:index], moved, *state.sleepers[index + 1 :]))


def _steps_of_waker(waker: Waker, state: State) -> Iterator[tuple[Waker, State]]:
    if waker.buffered:  # the core may write a buffered message to memory at any time
        yield waker._replace(buffered=waker.buffered - 1), state._replace(messages=state.messages + 1)
    if waker.step == "write" and waker.left:
        yield waker._replace(left=waker.left - 1, buffered=waker.buffered + 1, step="read"), state
    elif waker.step == "read":
        yield waker._replace(step="wake" if state.announced else "write"), state
    elif waker.step == "wake":  # an atomic addition: it empties the store buffer
        messages, wake_word = state.messages + waker.buffered, state.wake_word + 1
        woken = tuple(sleeper._replace(asleep=False) for sleeper in state.sleepers)
        yield (
            waker._replace(buffered=0, step="write"),
            state._replace(messages=messages, wake_word=wake_word, sleepers=woken),
        )


def _step_of_sleeper(sleeper: Sleeper, state: State, protocol: str) -> tuple[Sleeper, State]:
    if sleeper.at == len(protocol):
        return sleeper._replace(at=0), state._replace(announced=state.announced - 1)
    moved = sleeper._replace(at=sleeper.at + 1)
    match protocol[sleeper.at]:
        case "b":
            moved = moved._replace(wake_word=state.wake_word)
        case "a":
            state = state._replace(announced=state.announced + 1)
        case "f":
            buffered = sum(waker.buffered for waker in state.wakers)
            emptied = tuple(waker._replace(buffered=0) for waker in state.wakers)
            state = state._replace(messages=state.messages + buffered, wakers=emptied)
        case "l":
            moved = moved._replace(found=state.messages >= sleeper.wants)
        case "w":
            moved = moved._replace(asleep=state.wake_word == sleeper.wake_word and not sleeper.found)
    return moved, state
