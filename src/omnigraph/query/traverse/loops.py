"""When compiled loops are used: loading them takes a while, so that small work is done without until it has cost as much."""

from __future__ import annotations

import sys
from typing import Any

from omnigraph.query.cache import Spending

_MODULE = "omnigraph.query.traverse.compiled"
#: Steps of a loop that take as long as loading the compiler and its results does: such work pays for the loading by itself.
_LARGE = 2_000_000

_spending = Spending(1)


def is_worth_compiling(steps: int) -> bool:
    """Whether work of so many steps is done by a compiled loop."""
    return steps > _LARGE or _MODULE in sys.modules or _spending.of(()) > _LARGE


def without_compiling(steps: int) -> None:
    """Work of so many steps is done without; they count towards loading the compiler."""
    _spending.add((), steps)


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
