"""Errors that are of torch's classes as well as of ours.

Programs written for torch catch ``dist.DistBackendError`` or ``RuntimeError``; programs written for Unisono catch
``unisono.PeerLost``. An error that leaves the backend becomes both: it stays the same object, with its text, its
attributes and its traceback, and its class is replaced by one that derives from both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch.distributed as dist

from unisono.errors import CollectiveTimeout, CommError, InternalError, PeerLost, UnisonoError, UsageError

Method = TypeVar("Method", bound=Callable[..., Any])
Error = TypeVar("Error", bound=BaseException)

# The first that fits. Gloo raises ValueError for some arguments that it refuses and RuntimeError for others.
IN_A_CALL = ((CommError, (dist.DistBackendError,)), (UsageError, (RuntimeError,)), (InternalError, (RuntimeError,)))
# During the rendezvous, where torch's stores and sockets raise their own classes.
AT_THE_START = (
    (CollectiveTimeout, (dist.DistStoreError, dist.DistBackendError)),
    (PeerLost, (dist.DistNetworkError, dist.DistBackendError)),
    *IN_A_CALL,
)


class OfTorch:
    """Marks the classes that are made here, and pickles their errors."""

    def __reduce__(self) -> Any:
        kind, *torch_classes = type(self).__bases__[1:]
        made: Any = super().__reduce__()
        return (_restore, (kind, tuple(torch_classes), *made[1:]))


@functools.cache
def _joined(kind: Any, torch_classes: Any) -> Any:
    """Return the class that derives from an error of ours and errors of torch's; it bears our name."""
    return type(
        kind.__name__, (OfTorch, kind, *torch_classes), {"__module__": kind.__module__, "__doc__": kind.__doc__}
    )


def _restore(kind: Any, torch_classes: tuple[Any, ...], args: tuple[Any, ...], state: Any = None) -> BaseException:
    error: BaseException = kind(*args)
    error.__dict__.update(state or {})
    error.__class__ = _joined(kind, torch_classes)
    return error


def as_torch_error(error: Error, kinds: Any = IN_A_CALL) -> Error:
    """Make an error of ours an error of torch's, too; leave any other as it is. Return it."""
    if isinstance(error, UnisonoError) and not isinstance(error, OfTorch):
        for kind, torch_classes in kinds:
            if isinstance(error, kind):
                own: Any = type(error)
                error.__class__ = _joined(own, torch_classes)
                break
    return error


def raises_torch_errors(method: Method) -> Method:
    """Have the errors that leave a method be of torch's classes, too."""

    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except UnisonoError as error:
            as_torch_error(error)
            raise

    return wrapper  # type: ignore[return-value]
