"""When compiled loops are used: loading them takes a while, so that small work is done without until it has cost as much."""

from __future__ import annotations

import sys
from typing import Any

from omnigraph.query.cache import Spending
from omnigraph.query.limits import Budget

_MODULE = "omnigraph.query.traverse.compiled"
#: Steps of a loop that take as long as loading the compiler and its results does: such work pays for the loading by itself.
_LARGE = 2_000_000

_spending = Spending(2)


def is_worth_compiling(loop: str, steps: int) -> bool:
    """Whether work of so many steps is done by the compiled loop of this name."""
    return steps > _LARGE or is_ready(loop) or _spending.of((loop,)) > _LARGE


def without_compiling(loop: str, steps: int) -> None:
    """Work of so many steps is done without the loop; they count towards compiling it."""
    _spending.add((loop,), steps)


def is_ready(loop: str) -> bool:
    """Whether this process has compiled the loop, or loaded it as an earlier process compiled it."""
    made = getattr(sys.modules.get(_MODULE), loop, None)
    return bool(getattr(made, "overloads", ()))


def compiled_patiently(loop: str, budget: Budget, steps: int, *arguments: Any) -> Any:
    """What the compiled loop of this name returns for work of so many steps.

    A run that ends early does not wait for the loop, nor for the compiler: that takes seconds where no process has run before.
    """
    short = budget.limits.long_work
    if steps < short and is_ready(loop):
        return compiled(loop, *arguments)
    return budget.patiently(lambda: compiled(loop, *arguments), max(steps, short))


def compiled(loop: str, *arguments: Any) -> Any:
    """What the compiled loop of this name returns.

    A Ctrl-C that lands while compiled code unpacks its arguments or packs its results comes out of it as a SystemError.
    """
    from omnigraph.query.traverse import compiled as loops

    try:
        return getattr(loops, loop)(*arguments)
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt from error
            cause = cause.__cause__ or cause.__context__
        raise
