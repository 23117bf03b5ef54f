"""torch.compile looks at every Python function that is called, also at ours when C++ calls them: it must not."""

from __future__ import annotations

import types
from collections.abc import Iterator
from types import CodeType, ModuleType

from unisono.torch_backend.private import SKIP_CODE, eval_frame


def _codes_of(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes_of(part)


def _functions_of(module: ModuleType) -> Iterator[types.FunctionType]:
    for thing in vars(module).values():
        members = vars(thing).values() if isinstance(thing, type) else [thing]
        for member in members:
            member = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if isinstance(member, types.FunctionType) and member.__module__ == module.__name__:
                yield member


def hide_from_dynamo(*modules: ModuleType) -> None:
    """Have torch.compile leave the functions of these modules alone."""
    for module in modules:
        for function in _functions_of(module):
            for code in _codes_of(function.__code__):
                # What torch._dynamo.eval_frame.skip_code does; to import that takes a second.
                eval_frame.set_code_exec_strategy(code, SKIP_CODE)
