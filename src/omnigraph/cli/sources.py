"""Schemas, queries and parameters as they are named on the command line."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from omnigraph.cli.options import refuse_both, together
from omnigraph.errors import BadRequest, LanguageError, TypecheckError

#: What stands for standard input in the place of a file.
STDIN = "-"


def source_name(path: str) -> str:
    """A source as messages name it."""
    return "<stdin>" if path == STDIN else path


def read_source(path: str) -> str:
    """The text of a file, or of standard input for `-`; what can not be read is one clear error."""
    try:
        data = _standard_input() if path == STDIN else Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise BadRequest(f"cannot read {path!r}: {reason}") from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"cannot read {path!r}: it is not UTF-8 text (byte {error.start})") from error


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise BadRequest("there is no standard input to read from; pass a file instead of `-`")
    return sys.stdin.buffer.read()


@contextmanager
def naming(file: str | None) -> Iterator[None]:
    """Errors of a text that was read from a file name the file."""
    try:
        yield
    except LanguageError as error:
        error.file = error.file or (file and source_name(file))
        raise


@dataclass(frozen=True)
class QueryCall:
    """One query of a text and its parameters; `file` is None when the text stood on the command line.

    `name` is empty for a query without a name. Without a text it is a query that a server stores under the name.
    """

    text: str | None
    file: str | None
    name: str
    params: dict[str, Any] | None

    @property
    def source(self) -> str:
        """The text; an error for a stored query, where only a text will do."""
        if self.text is None:
            raise by_name_needs_a_server(self.name)
        return self.text


def by_name_needs_a_server(name: str) -> BadRequest:
    """Only servers store queries; on storage a query comes from a file or from the command line."""
    return BadRequest(
        f"by-name invocation needs a server, which keeps stored queries; to run '{name}' from a file, add --query FILE"
    )


_PARAM = click.option(
    "--param",
    "single",
    metavar="NAME=TEXT",
    multiple=True,
    help="One parameter: NAME=TEXT, or NAME:=JSON for a value that is no text; may be repeated.",
)
_OPTIONS = together(
    click.argument("name", required=False),
    click.option("--query", "query_path", metavar="FILE", help="A file of queries, or - for standard input."),
    click.option("-e", "--query-string", metavar="GQ", help="The query itself."),
    click.option("--name", "name_option", metavar="NAME", help="The same as NAME: which query of the source."),
    _PARAM,
    click.option("--params", metavar="JSON", help="The parameters, as a JSON object."),
    click.option(
        "--params-file",
        metavar="FILE",
        help="A file of parameters, as a JSON object; - for standard input.",
    ),
)


def takes_query(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments that say which query it runs and with what; it gets them as its `call`."""

    @wraps(command)
    def with_call(
        *arguments: Any,
        name: str | None,
        query_path: str | None,
        query_string: str | None,
        name_option: str | None,
        single: tuple[str, ...],
        params: str | None,
        params_file: str | None,
        **others: Any,
    ) -> None:
        text, found = _find_query(query_path, query_string, name, name_option)
        call = QueryCall(text, query_path, found, _read_params(single, params, params_file))
        with _showing_types(single):
            command(*arguments, call=call, **others)

    return _OPTIONS(with_call)


def takes_queries(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments that name one query or several; it gets them, in order, as its `calls`."""

    @wraps(command)
    def with_calls(
        *arguments: Any,
        names: tuple[str, ...],
        query_paths: tuple[str, ...],
        query_strings: tuple[str, ...],
        name_option: str | None,
        single: tuple[str, ...],
        params: str | None,
        params_file: str | None,
        **others: Any,
    ) -> None:
        if query_paths and query_strings:
            refuse_both(query=query_paths[0], query_string=query_strings[0])
        if names and name_option is not None:
            raise click.UsageError("NAME and --name exclude each other; give one of them")
        asked = names or (() if name_option is None else (name_option,))
        given = _read_params(single, params, params_file)
        calls = _find_queries(query_paths, query_strings, asked, given)
        with _showing_types(single):
            command(*arguments, calls=calls, **others)

    return _SEVERAL(with_calls)


_SEVERAL = together(
    click.argument("names", metavar="[NAME]...", nargs=-1),
    click.option(
        "--query",
        "query_paths",
        metavar="FILE",
        multiple=True,
        help="A file of queries, or - for standard input; several are one commit, in order.",
    ),
    click.option(
        "-e", "--query-string", "query_strings", metavar="GQ", multiple=True, help="The query itself; may be repeated."
    ),
    click.option("--name", "name_option", metavar="NAME", help="The same as NAME: which query of the source."),
    _PARAM,
    click.option(
        "--params", metavar="JSON", help="The parameters, as a JSON object; each query takes those it declares."
    ),
    click.option(
        "--params-file",
        metavar="FILE",
        help="A file of parameters, as a JSON object; - for standard input.",
    ),
)


def _find_queries(
    paths: tuple[str, ...], strings: tuple[str, ...], names: tuple[str, ...], params: dict[str, Any] | None
) -> list[QueryCall]:
    """The queries that are named; of sources that hold one query each, without names, all of them in order."""
    sources: list[tuple[str | None, str | None]] = [(path, None) for path in paths] or [
        (None, text) for text in strings
    ]
    if len(sources) <= 1 and len(names) <= 1:
        path, text = sources[0] if sources else (None, None)
        found, name = _find_query(path, text, names[0] if names else None, None)
        return [QueryCall(found, path, name, params)]
    from omnigraph.language.query.nameless import parameter_names
    from omnigraph.language.query.parser import parse_query_file

    if not sources:
        raise click.UsageError("give the queries: --query FILE or -e/--query-string GQ")
    texts = [(path, read_source(path) if path is not None else text or "") for path, text in sources]
    parsed = [(path, text, parse_query_file(text, path and source_name(path)).queries) for path, text in texts]
    if not names:
        chosen = [(path, text, query) for path, text, queries in parsed for query in queries]
    else:
        every = {query.name: (path, text, query) for path, text, queries in parsed for query in queries}
        unknown = [name for name in names if name not in every]
        if unknown:
            raise BadRequest(f"no query is called '{unknown[0]}'; there are {', '.join(every)}")
        chosen = [every[name] for name in names]
    given = params or {}
    takes = [parameter_names(query) for _, _, query in chosen]
    for name in given:
        if not any(name in names for names in takes):
            raise BadRequest(f"none of these queries declares a parameter '{name}'")
    return [
        QueryCall(text, path, query.name, {key: value for key, value in given.items() if key in names})
        for (path, text, query), names in zip(chosen, takes, strict=True)
    ]


def _find_query(
    query_path: str | None, query_string: str | None, name: str | None, name_option: str | None
) -> tuple[str | None, str]:
    """The source and the name of a query; no source for one that a server stores.

    The source must parse; whether it fits the schema is found out later.
    """
    from omnigraph.language.query.parser import find_query, parse_query_file

    refuse_both(query=query_path, query_string=query_string)
    if name is not None and name_option is not None:
        raise click.UsageError("NAME and --name exclude each other; give one of them")
    asked = name if name is not None else name_option
    if query_path is None and query_string is None:
        if asked is None:
            raise click.UsageError("give the query: --query FILE or -e/--query-string GQ")
        return None, asked
    if query_string is not None and not query_string.strip():
        raise BadRequest("-e/--query-string must not be empty")
    text = read_source(query_path) if query_path is not None else query_string or ""
    parsed = parse_query_file(text, query_path and source_name(query_path))
    if asked is None and len(parsed.queries) > 1:
        names = ", ".join(query.name for query in parsed.queries)
        raise BadRequest(f"query file contains multiple queries; pass --name with one of: {names}")
    return text, find_query(parsed, asked).name


def _read_params(single: tuple[str, ...], params: str | None, params_file: str | None) -> dict[str, Any] | None:
    """The parameters of a query, one by one, as an object on the command line or from a file; None when none are given."""
    refuse_both(params=params, params_file=params_file)
    found: dict[str, Any] | None = None
    if params_file is not None:
        found = params_object(read_source(params_file), source_name(params_file))
    elif params is not None:
        found = params_object(params, "--params")
    for text in single:
        found = {} if found is None else found
        name, value = one_param(text)
        if name in found:
            raise click.UsageError(f"parameter '{name}' is given twice")
        found[name] = value
    return found


def one_param(text: str) -> tuple[str, object]:
    """One parameter as `--param` takes it: `who=Ada` is a text, `n:=3` a JSON value."""
    name, equals, value = text.partition("=")
    is_json = name.endswith(":")
    name = name.removesuffix(":").removeprefix("$")
    if not equals or not name.isidentifier():
        raise click.UsageError(f"--param {text!r}: write NAME=TEXT, such as who=Ada, or NAME:=JSON, such as n:=3")
    if not is_json:
        return name, value
    import orjson

    try:
        return name, orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise BadRequest(
            f"--param {name}:= takes a JSON value, and {value!r} is none: {error}; a text is written {name}={value}"
        ) from None


@contextmanager
def _showing_types(single: tuple[str, ...]) -> Iterator[None]:
    """The error about a text in the place of a number tells who gave it: `--param n=3` is always a text."""
    try:
        yield
    except BadRequest as error:
        for text in single:
            name, value = text.removeprefix("$").split("=", 1)
            if not name.endswith(":") and _OTHER_VALUE.fullmatch(value) and _is_about(error, name):
                error.message += f"; `{name}={value}` is a text, write `{name}:={value}`"
                break
        raise


def _is_about(error: BadRequest, name: str) -> bool:
    """Whether an error says that a parameter is a text: one of a declared type, or one of a query without a name."""
    if not isinstance(error, TypecheckError):
        return error.message.startswith(f"parameter {name!r} (") and "got the text" in error.message
    used = re.search(rf"\${re.escape(name)}(?!\w)", error.source_line or "")
    return used is not None and "String" in error.message


#: A text that was probably meant as a number, a truth value or a list.
_OTHER_VALUE = re.compile(r"-?[0-9]+(?:\.[0-9]+)?|true|false|\[.*\]", re.DOTALL)


def params_object(text: str, where: str) -> dict[str, Any]:
    """Parameters as they are written: a JSON object."""
    import orjson

    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"{where} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadRequest(f"{where} must be a JSON object, such as '{{\"name\": 1}}'")
    return value
