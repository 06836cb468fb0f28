"""What people type into the shell: where an input ends, and which part of it is query text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

EXPLAIN = ":explain"
#: Words that are commands of the shell although no colon stands before them.
TRANSACTION_WORDS = ("begin", "commit", "rollback")

_PIECES = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|(?P<open>"|/\*)|(?P<mark>[{};])', re.DOTALL)
_QUERY = re.compile(r"query\b")


def is_complete(text: str) -> bool:
    """Whether an input ends here: a query with its last brace, any other text with `;` or an empty line."""
    body = statement_of(text)
    if body is None:
        return True
    depth, opened, semicolon = _marks(body)
    if semicolon:
        return True
    if depth is None or depth > 0:
        return False
    if _QUERY.match(_without_blanks(body)):
        return opened
    return body.endswith("\n\n") and bool(body.strip())


def statement_of(text: str) -> str | None:
    """The part of an input that is query text; None when it is a command of the shell."""
    stripped = text.lstrip()
    if stripped.rstrip("; \t\r\n") in TRANSACTION_WORDS:
        return None
    if not stripped.startswith(":"):
        return text
    word = stripped.split(maxsplit=1)[0]
    return stripped[len(word) :] if word == EXPLAIN else None


def inputs(lines: Iterable[str]) -> Iterator[str]:
    """The inputs of a stream of lines; what is left at its end is one too."""
    pending = ""
    for line in lines:
        if not pending and not line.strip():
            continue
        pending += line if line.endswith("\n") else f"{line}\n"
        if is_complete(pending):
            yield pending
            pending = ""
    if pending.strip():
        yield pending


def without_end(text: str) -> str:
    """Query text without the `;` that may end an input."""
    body = text.rstrip()
    return body[:-1] if _marks(body)[2] else body


def _marks(text: str) -> tuple[int | None, bool, bool]:
    """How many braces are open (None inside a string or comment), whether any was, and whether a `;` ends it."""
    depth, opened, ended = 0, False, False
    at = 0
    for piece in _PIECES.finditer(text):
        if text[at : piece.start()].strip():
            ended = False
        at = piece.end()
        if piece["open"]:
            return None, opened, False
        if piece.group().startswith("/"):
            continue
        mark = piece["mark"]
        if mark == "{":
            depth, opened = depth + 1, True
        elif mark == "}":
            depth -= 1
        ended = mark == ";" and depth <= 0
    return depth, opened, ended and not text[at:].strip()


def _without_blanks(text: str) -> str:
    return re.sub(r"\A(?:\s+|//[^\n]*|/\*.*?\*/)+", "", text, flags=re.DOTALL)
