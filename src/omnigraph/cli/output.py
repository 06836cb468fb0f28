"""The one output layer: results on stdout, everything else on stderr."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from functools import partial
from typing import TextIO

import click

from omnigraph.errors import LanguageError, OmnigraphError


def line(text: str) -> None:
    """One line of a result for people."""
    click.echo(text)


def json(data: object) -> None:
    """A result for programs: pretty JSON."""
    import orjson

    click.echo(orjson.dumps(data, option=orjson.OPT_INDENT_2))


def json_line(data: object) -> None:
    """A part of a result for programs: JSON on one line."""
    import orjson

    click.echo(orjson.dumps(data))


def json_text(text: str) -> None:
    """JSON that exists as text already, made pretty."""
    import orjson

    json(orjson.loads(text))


def fields(values: Mapping[str, object]) -> None:
    """A result as `key: value` lines; what is not known is left out."""
    for key, value in values.items():
        if value is not None:
            line(f"{key}: {value}")


def raw(text: str) -> None:
    """A text exactly as it is, which may have no newline at its end."""
    click.echo(text, nl=False)


def data(content: bytes) -> None:
    """Bytes of a result."""
    click.echo(content, nl=False)


def note(text: str) -> None:
    """Something people should know while the command works; never part of the result."""
    click.echo(text, err=True)


def redraw(text: str) -> None:
    """One line on the terminal in the place of the last one; never part of the result."""
    click.echo(f"\r\x1b[2K{text}", nl=False, err=True)


def warn(text: str) -> None:
    """A warning for people; never part of the result."""
    click.echo(f"warning: {text}", err=True)


def report(error: Exception, debug: bool) -> None:
    """The one report of a failure; the traceback comes first, so that the message is what a person sees last."""
    if debug:
        traceback.print_exception(error)
    click.echo(f"Error: {_describe(error)}", err=True)


def _describe(error: Exception) -> str:
    if isinstance(error, LanguageError):
        return render(error, sys.stderr)
    if isinstance(error, OmnigraphError):
        return error.message
    if isinstance(error, OSError):
        return str(error)
    name = type(error).__name__
    return f"unexpected {name}: {error}; run again with --debug and report it"


def render(error: LanguageError, stream: TextIO) -> str:
    """A language error with its place and source line, in colours if the stream is a terminal that wants them."""
    from omnigraph.language.source import render_error

    if not wants_colours(stream):
        return render_error(error)
    from omnigraph.language.highlight import highlight_line

    language = "pg" if (error.file or "").endswith(".pg") else "gq"
    return render_error(error, partial(highlight_line, language=language))


def wants_colours(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose owner has not asked for plain text."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
