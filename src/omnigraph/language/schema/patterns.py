"""The regular expressions of `@check`: Python's, but `$` is the end of the text, not also the place before a last newline."""

from __future__ import annotations

import re

#: An escaped character, a set of characters, or a `$` that stands outside of both.
_PIECE = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*+\]|\$", re.DOTALL)
_MULTILINE = re.compile(r"\(\?[a-zA-Z]*m")


def compile_check(pattern: str) -> re.Pattern[str]:
    """What a `@check` searches for; raises what `re.compile` does. `(?m)` keeps its meaning: `$` ends a line."""
    compiled = re.compile(pattern)
    if "$" not in pattern or _MULTILINE.search(pattern):
        return compiled
    return re.compile(_PIECE.sub(lambda piece: r"\Z" if piece[0] == "$" else piece[0], pattern))
