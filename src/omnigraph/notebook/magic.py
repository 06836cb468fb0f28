"""`%load_ext omnigraph`: cells of the query language (`%%gq`) with completion, and progress bars for long calls."""

from __future__ import annotations

import argparse
import json
import shlex
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NoReturn

from omnigraph.client.graph import RemoteGraph
from omnigraph.errors import OmnigraphError
from omnigraph.graph.graph import Graph
from omnigraph.language.query.completion import candidates, word_before
from omnigraph.language.query.nameless import is_nameless
from omnigraph.language.query.parser import find_query, parse_query_file
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog
from omnigraph.notebook.markup import card, text
from omnigraph.shown import SESSION_PROGRESS

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


NAME = "gq"
_HELP = "%%gq [GRAPH] [NAME] [--branch B | --as-of S] [--param k=v] [--explain | --analyze] [--to VARIABLE]"


def load(shell: Any) -> None:
    """Give an IPython session the magic, its completion and the progress bars."""
    magic = Magic(shell)
    shell.register_magic_function(magic.line, "line", NAME)
    shell.register_magic_function(magic.cell, "cell", NAME)
    shell.Completer.custom_matchers.append(magic)
    setattr(shell, SESSION_PROGRESS, Bar)


def unload(shell: Any) -> None:
    """Take them away again."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(NAME, None)
    matchers = shell.Completer.custom_matchers
    matchers[:] = [one for one in matchers if not isinstance(one, Magic)]
    if hasattr(shell, SESSION_PROGRESS):
        delattr(shell, SESSION_PROGRESS)


class _Refusing(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        _refuse(f"{message}; write {_HELP}")


def _refuse(message: str) -> NoReturn:
    from IPython.core.error import UsageError

    raise UsageError(message)


def _options() -> argparse.ArgumentParser:
    parser = _Refusing(prog=f"%%{NAME}", add_help=False)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--branch")
    parser.add_argument("--as-of")
    parser.add_argument("--param", action="append", default=[])
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--analyze", action="store_true")
    parser.add_argument("--to")
    return parser


class Magic:
    """The cell magic of one session, and its matcher for completion."""

    #: What IPython looks at in a matcher: it is called with the context of the cursor.
    matcher_api_version = 2
    matcher_identifier = "omnigraph"
    matcher_priority = 1000

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.__qualname__ = self.matcher_identifier

    def __call__(self, context: Any) -> dict[str, Any]:
        return self.complete(context)

    def line(self, line: str) -> Any:
        """`%gq match { … } return { … }`: a query on one line, of the graph of this session."""
        return self.cell("", line)

    def cell(self, line: str, cell: str) -> Any:
        """Run the query or mutation of a cell; its result is what the cell shows.

        The graph is the variable that the line names, else `g`, else the one graph there is. Parameters are taken from
        `--param`, else from variables of their names.
        """
        asked = _options().parse_args(shlex.split(line))
        graph, name = self._graph(asked.names)
        try:
            params = self._params(cell, name, asked.param)
            result = _run(graph, cell, name, params, asked)
        except OmnigraphError as error:
            _refuse(str(error))
        if asked.to is not None:
            self._shell.user_ns[asked.to] = result
            return None
        return result

    def _graph(self, names: list[str]) -> tuple[Graph | RemoteGraph, str | None]:
        """The graph that a line means, and the name of the query behind it, if any."""
        variables: Mapping[str, object] = self._shell.user_ns
        if names and isinstance(variables.get(names[0]), Graph | RemoteGraph):
            return variables[names[0]], names[1] if len(names) > 1 else None  # type: ignore[return-value]
        found = self._default()
        if found is None:
            _refuse(f"there is no graph: open one first, as in g = omnigraph.open(…), or name its variable: {_HELP}")
        return found, names[0] if names else None

    def _default(self) -> Graph | RemoteGraph | None:
        variables = self._shell.user_ns
        if isinstance(variables.get("g"), Graph | RemoteGraph):
            return variables["g"]  # type: ignore[no-any-return]
        named = (value for name, value in variables.items() if not name.startswith("_"))
        distinct = {id(value): value for value in named if isinstance(value, Graph | RemoteGraph)}
        return next(iter(distinct.values())) if len(distinct) == 1 else None

    def _params(self, cell: str, name: str | None, given: list[str]) -> dict[str, Any]:
        """The parameters of a call: those given on the line, then notebook variables that the query declares or uses."""
        params: dict[str, Any] = {}
        for pair in given:
            key, separator, value = pair.partition("=")
            if not separator:
                _refuse(f"--param is a name and a value, as in --param name=Ada, not '{pair}'")
            try:
                params[key] = json.loads(value)
            except json.JSONDecodeError:
                params[key] = value
        if is_nameless(cell):
            return params
        variables = self._shell.user_ns
        declared = find_query(parse_query_file(cell), name).params
        return {one.name: variables[one.name] for one in declared if one.name in variables} | params

    # --- completion ---------------------------------------------------------------------------------------------------

    def complete(self, context: Any) -> dict[str, Any]:
        """What can be typed at the cursor of a cell of ours; nothing in other cells."""
        from IPython.core.completer import SimpleCompletion

        lines = context.full_text.split("\n")
        before = "\n".join([*lines[: context.cursor_line], lines[context.cursor_line][: context.cursor_position]])
        ours = context.full_text.lstrip().startswith(f"%%{NAME}") and context.cursor_line > 0
        catalog = self._catalog() if ours else None
        if catalog is None:
            return {"completions": [], "suppress": False}
        text = before.partition("\n")[2]
        found = candidates(catalog, (), (), text)
        return {
            "completions": [SimpleCompletion(text=one, type="keyword") for one in found],
            "matched_fragment": word_before(text),
            "suppress": True,
        }

    def _catalog(self) -> Catalog | None:
        graph = self._default()
        try:
            return None if graph is None else compile_schema(graph.schema())
        except OmnigraphError:
            return None


def _run(
    graph: Graph | RemoteGraph, text: str, name: str | None, params: dict[str, Any], asked: argparse.Namespace
) -> Any:
    place = {"branch": asked.branch, "snapshot": asked.as_of}
    if asked.explain or asked.analyze:
        return graph.explain(text, name, params, analyze=asked.analyze, **place)
    if find_query(parse_query_file(text), name).is_mutation:
        if asked.as_of is not None:
            _refuse("a mutation writes to a branch; --as-of is for queries")
        return graph.mutate(text, name, params, branch=asked.branch)
    return graph.query(text, name, params, **place)
