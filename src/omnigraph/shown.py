"""The base of returned objects, which a notebook shows as HTML."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import ParamSpec, TypeVar

Item = TypeVar("Item")
Given = ParamSpec("Given")
Found = TypeVar("Found")


class Shown:
    """An object that a notebook shows as HTML, made by `omnigraph.notebook`, which is loaded when it is shown."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        html: str = import_module("omnigraph.notebook.objects").html(self)
        return html


class Listing(list[Item], Shown):
    """A list that a notebook shows as one table."""

    __slots__ = ()


#: The attribute of an IPython session with the maker of progress bars, set by `%load_ext omnigraph`.
SESSION_PROGRESS = "omnigraph_progress"


def with_bar(what: str) -> Callable[[Callable[Given, Found]], Callable[Given, Found]]:
    """A verb with an argument `progress`: in a notebook with the extension it gets a bar unless the caller gives one."""

    def decorated(verb: Callable[Given, Found]) -> Callable[Given, Found]:
        @wraps(verb)
        def method(*given: Given.args, **named: Given.kwargs) -> Found:
            ipython = sys.modules.get("IPython") if named.get("progress") is None else None
            make = None if ipython is None else getattr(ipython.get_ipython(), SESSION_PROGRESS, None)
            if make is None:
                return verb(*given, **named)
            named["progress"] = bar = make(what)
            try:
                return verb(*given, **named)
            finally:
                bar.end()

        return method

    return decorated
