"""The one output layer: results on stdout, everything else on stderr.

Results go out as they are: nothing is taken out of a value because of where it is printed.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TextIO

from omnigraph.errors import LanguageError, OmnigraphError, redacted

#: Control characters that could affect a terminal, except line ends and tabs.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_RECORDS_AT_ONCE = 1000


def line(text: str) -> None:
    """One line of a result for people."""
    raw(f"{text}\n")


def json(data: object) -> None:
    """A result for programs: pretty JSON."""
    import orjson

    _send(orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def json_lines(records: Iterable[object]) -> None:
    """A result for programs, record by record: JSON, each on a line of its own."""
    import orjson

    left = iter(records)
    while some := list(islice(left, _RECORDS_AT_ONCE)):
        _send(b"".join(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE) for record in some))


def json_text(text: str) -> None:
    """Pretty-print a JSON text."""
    import orjson

    json(orjson.loads(text))


def fields(values: Mapping[str, object]) -> None:
    """A result as `key: value` lines; None values are left out."""
    for key, value in values.items():
        if value is not None:
            line(f"{key}: {value}")


def raw(text: str) -> None:
    """Print a text unchanged, without adding a newline."""
    # A process that was started without a standard output has nowhere to put a result.
    if sys.stdout is not None:
        sys.stdout.write(text)


def data(content: bytes) -> None:
    """Bytes of a result."""
    _send(content)


def flush() -> None:
    """Flush the result printed so far."""
    if sys.stdout is not None:
        sys.stdout.flush()


def note(text: str) -> None:
    """Print a note for people while the command works; it is not part of the result."""
    _say(f"{_visible(text)}\n")


def redraw(text: str) -> None:
    """Replace the last line on the terminal; it is not part of the result."""
    _say(f"\r\x1b[2K{text}")


def warn(text: str) -> None:
    """A warning for people; never part of the result."""
    note(f"warning: {text}")


def report(error: Exception, debug: bool) -> None:
    """Report a failure; a traceback comes before the message, so that the message is the last line."""
    if sys.stderr is None:
        return
    if debug:
        _say(redacted("".join(traceback.format_exception(error))))
    _say(f"Error: {_describe(error)}\n")


def _send(content: bytes) -> None:
    """Bytes to standard output, after the text that was printed before them."""
    if sys.stdout is None:
        return
    sys.stdout.flush()
    left = memoryview(content)
    while left:
        # Without a buffer (PYTHONUNBUFFERED) a write may take a part only; the next one then says why.
        left = left[sys.stdout.buffer.write(left) :]


def _say(text: str) -> None:
    """Text to standard error. Standard output is flushed first, which keeps the order where both go to one terminal."""
    # A result that can not be handed over is found out by who hands it over last.
    with suppress(OSError):
        flush()
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _visible(text: str) -> str:
    """A message as a terminal may show it: control characters by their escapes, no passwords and tokens inside URLs."""
    return _CONTROL.sub(lambda found: repr(found.group())[1:-1], redacted(text))


def _describe(error: Exception) -> str:
    if isinstance(error, LanguageError):
        return render(error, sys.stderr)
    if isinstance(error, OmnigraphError):
        return _visible(error.message)
    if isinstance(error, OSError):
        return _visible(str(error))
    name = type(error).__name__
    return _visible(f"unexpected {name}: {error}; run again with --debug and report it")


def render(error: LanguageError, stream: TextIO) -> str:
    """A language error with its place and source line, in colours if the stream is a terminal that wants them."""
    if not wants_colours(stream):
        return error.rendered()
    from omnigraph.language.highlight import highlight_line

    language = "pg" if (error.file or "").endswith(".pg") else "gq"
    return error.rendered(partial(highlight_line, language=language))


def wants_colours(stream: TextIO) -> bool:
    """Whether a stream is a terminal and colours are not disabled."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person sits at a stream; nobody does when the process was started without it."""
    return stream is not None and stream.isatty()
