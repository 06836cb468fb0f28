"""Progress bars of long calls in a notebook; when the call is done, one line is left."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from omnigraph.notebook.markup import card, text

#: Seconds: what is over sooner needs no bar, and a bar is not drawn more often.
_PATIENCE, _BETWEEN = 0.5, 0.1


class Bar:
    """How far one call is. It is given to a verb as its `progress`, whose kinds of calls it all takes."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = self._last = time.monotonic()
        self._stage = ""
        self._display: Any = None

    def __call__(self, *told: Any) -> None:
        """`told`: a `Progress` of a load, or stage, done and total, or done and total."""
        if len(told) == 1:
            stage, done, total = told[0].stage, told[0].done, told[0].total
        elif len(told) == 3:
            stage, done, total = told
        else:
            stage, (done, total) = self._what, told
        now = time.monotonic()
        over = done >= total
        if now - self._started < _PATIENCE or (now - self._last < _BETWEEN and not over and stage == self._stage):
            return
        self._last, self._stage = now, stage
        self._show(_bar(f"{self._what}: {stage}", done / total if total else 1.0))

    def end(self) -> None:
        """The call has returned or failed: a bar that was shown becomes a line."""
        if self._display is not None:
            seconds = time.monotonic() - self._started
            self._show(card("", f'<span class="dim">{text(f"{self._what}: {seconds:.1f} s")}</span>'))

    def _show(self, html: str) -> None:
        shown = import_module("IPython.display")
        if self._display is None:
            self._display = shown.display(shown.HTML(html), display_id=True)
        else:
            self._display.update(shown.HTML(html))


def _bar(label: str, part: float) -> str:
    filled = f'<div style="width:{part:.1%};height:100%;background:#4477aa"></div>'
    frame = f'<div style="width:20em;height:.8em;background:rgba(128,128,128,.25);display:inline-block">{filled}</div>'
    return card("", f"{frame} {text(f'{part:4.0%} {label}')}")
