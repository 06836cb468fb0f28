"""Deciding when compiled loops are used: loading them takes long, so small work runs without them until it adds up."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from omnigraph.query.cache import Spending
from omnigraph.query.limits import Budget

_MODULE = "omnigraph.query.traverse.compiled"
#: So many steps without the loop take as long as loading the compiler and the compiled code.
_LARGE = 2_000_000

_spending = Spending(2)


def is_worth_compiling(loop: str, steps: int) -> bool:
    """Whether work of `steps` steps should use the compiled loop of this name."""
    return steps > _LARGE or is_ready(loop) or _spending.of((loop,)) > _LARGE


def without_compiling(loop: str, steps: int) -> None:
    """Count `steps` steps that were done without the compiled loop; they count towards compiling it."""
    _spending.add((loop,), steps)


def is_ready(loop: str) -> bool:
    """Whether this process has compiled the loop, or loaded its code from the cache of an earlier process."""
    made = getattr(sys.modules.get(_MODULE), loop, None)
    return bool(getattr(made, "overloads", ()))


def compiled_patiently(loop: str, budget: Budget, steps: int, *arguments: Any) -> Any:
    """The result of the compiled loop of this name for work of `steps` steps.
    A run that ends early waits neither for the loop nor for the compiler, which takes seconds when nothing is cached on disk.
    """
    short = budget.limits.long_work
    if steps < short and is_ready(loop):
        return compiled(loop, *arguments)
    return budget.patiently(lambda: compiled(loop, *arguments), max(steps, short))


def compiled(loop: str, *arguments: Any) -> Any:
    """The result of the compiled loop of this name.
    A Ctrl-C while the compiled code converts its arguments or results surfaces as a SystemError; it is raised again as a
    KeyboardInterrupt.
    """
    # The loaded module is found faster in `sys.modules` than by the machinery of imports.
    loops = sys.modules.get(_MODULE) or import_module(_MODULE)
    try:
        return getattr(loops, loop)(*arguments)
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt from error
            cause = cause.__cause__ or cause.__context__
        raise
