"""One session of the shell: what it remembers between two inputs, and how it carries each of them out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omnigraph.cli import output
from omnigraph.cli.addressing import Target, open_graph
from omnigraph.cli.read_formats import ReadOutput, print_change, print_read
from omnigraph.cli.settings import OUTPUTS
from omnigraph.cli.sources import params_object
from omnigraph.errors import BadRequest, NotFound
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.query.result import TableStyle

if TYPE_CHECKING:
    from omnigraph.client.graph import AnyGraph, AnyTransaction
    from omnigraph.language.query.ast import Query


EXPLAIN = ":explain"
#: Words that are commands of the shell without a leading colon.
TRANSACTION_WORDS = ("begin", "commit", "rollback")

_PIECES = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|(?P<open>"|/\*)|(?P<mark>[{};])', re.DOTALL)
_QUERY = re.compile(r"query\b")
#: How transactions are opened and ended elsewhere; no query begins so.
_TRANSACTION = re.compile(r"(begin|start|commit|rollback)(?:\s+(?:transaction|work))?", re.IGNORECASE)


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
    if _TRANSACTION.fullmatch(stripped.rstrip("; \t\r\n")):
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


#: How answers call a query that was typed without a name.
NAME = "shell"

HELP = """\
A query or a mutation is typed as it stands in a .gq file and runs when its last brace is closed.
Its head may be left out; then it ends with `;` or an empty line:

    match { $p: Person } return { $p.name };

:schema [TYPE]     show the schema, or one type of it
:branch [NAME]     show the branches, or work on another one
:params [JSON]     show the parameters, or set them
:format [FORMAT]   show the output format, or set it
:explain QUERY     show how a query is answered
begin              start a transaction: what follows is one commit, or nothing
commit, rollback   write the transaction, or forget it
:help              show this
:quit              leave; so does the end of the input"""


@dataclass
class Session:
    """The state of one shell."""

    target: Target
    actor: str | None
    branch: str
    format: str
    style: TableStyle
    params: dict[str, Any] = field(default_factory=dict)
    over: bool = False
    _graph: AnyGraph | None = None
    _transaction: AnyTransaction | None = None

    @property
    def graph(self) -> AnyGraph:
        """The graph; opened for reading until something is written."""
        if self._graph is None:
            self._graph = open_graph(self.target, "ro")
        return self._graph

    def run(self, text: str) -> None:
        """Carry out one input."""
        statement = statement_of(text)
        if statement is None:
            line = text.strip().rstrip("; \t\r\n")
            word, _, rest = line.partition(" ")
            meant = _TRANSACTION.fullmatch(line)
            if meant is not None and line not in TRANSACTION_WORDS:
                known = meant[1].lower().replace("start", "begin")
                raise BadRequest(f"the shell has no command '{line}'; write `{known}`")
            self._command(word)(rest.strip())
        elif text.lstrip().startswith(EXPLAIN):
            self._each(statement, self._explain)
        else:
            self._each(statement, self._query)

    # --- query text -------------------------------------------------------------------------------------------------

    def _each(self, text: str, act: Callable[[str, Query], None]) -> None:
        from omnigraph.language.query.parser import parse_query_file

        source = without_end(text)
        queries = parse_query_file(source).queries
        if not queries:
            raise BadRequest("there is no query in this; `:help` says what can be typed")
        for query in queries:
            act(source, query)

    def _query(self, source: str, query: Query) -> None:
        params = self._params_of(query)
        if not query.is_mutation:
            asked = self._transaction
            result = (
                self.graph.query(source, query.name, params, branch=self.branch)
                if asked is None
                else asked.query(source, query.name, params)
            )
            print_read(ReadOutput(query.name or NAME, self.branch, None, result), self.format, self.style)
            return
        if self._transaction is not None:
            self._mutate_inside(self._transaction, source, query, params)
            return
        graph = self._writable()
        done = graph.mutate(source, query.name, params, branch=self.branch)
        print_change(self.branch, query.name or NAME, graph.actor, done, as_json=self._as_json)

    def _writable(self) -> AnyGraph:
        """The graph, opened for writing."""
        if self.graph.mode != "rw":
            self._graph = open_graph(self.target, "rw", self.actor)
        return self.graph

    # --- transactions -----------------------------------------------------------------------------------------------

    def _mutate_inside(self, transaction: AnyTransaction, source: str, query: Query, params: dict[str, Any]) -> None:
        try:
            done = transaction.mutate(source, query.name, params)
        except BaseException:
            # One failure undoes all; what is typed next stands alone again.
            self._transaction = None
            output.warn("the transaction is undone; nothing of it was written")
            raise
        if done is None:
            output.line("noted; a server carries it out at the commit")
        else:
            output.line(f"{done.affected_nodes} nodes, {done.affected_edges} edges; not committed yet")

    def _begin(self, _: str) -> None:
        if self._transaction is not None:
            raise BadRequest("a transaction is open already; end it with commit or rollback")
        self._transaction = self._writable().transaction(branch=self.branch)
        output.line(f"transaction on {self.branch}: commit writes what follows, rollback forgets it")

    def _commit(self, _: str) -> None:
        done = self._ended().commit()
        print_change(self.branch, "transaction", self.graph.actor, done, as_json=self._as_json)

    def _rollback(self, _: str) -> None:
        self._ended().rollback()
        output.line("rolled back; nothing was written")

    def _ended(self) -> AnyTransaction:
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            raise BadRequest("no transaction is open; start one with begin")
        return transaction

    def end_script(self) -> None:
        """The end of what a pipe gives: an open transaction is rolled back, and that is an error."""
        if self._transaction is not None:
            self._ended().rollback()
            raise BadRequest(
                "the input ends inside a transaction; it was rolled back and nothing of it was written; end it with commit"
            )

    def close(self) -> None:
        """Leave the shell; an open transaction is rolled back."""
        if self._transaction is not None:
            self._ended().rollback()
            output.warn("the open transaction was rolled back; commit writes one before the end")

    @property
    def _as_json(self) -> bool:
        return self.format in ("json", "jsonl")

    def _explain(self, source: str, query: Query) -> None:
        output.line(str(self.graph.explain(source, query.name, self._params_of(query), branch=self.branch)))

    def _params_of(self, query: Query) -> dict[str, Any]:
        """The remembered parameters that this query takes."""
        from omnigraph.language.query.nameless import parameter_names

        names = parameter_names(query)
        return {name: value for name, value in self.params.items() if name in names}

    # --- commands ---------------------------------------------------------------------------------------------------

    def _command(self, word: str) -> Callable[[str], None]:
        known = self.commands()
        if word not in known:
            raise BadRequest(f"the shell has no command '{word}'{did_you_mean(nearest_name(word, known))}; see :help")
        return known[word]

    def commands(self) -> Mapping[str, Callable[[str], None]]:
        """The commands of the shell by name; `:explain` takes query text and is found before."""
        return {
            ":schema": self._show_schema,
            ":branch": self._use_branch,
            ":params": self._set_params,
            ":format": self._set_format,
            ":help": lambda _: output.line(HELP),
            ":quit": self._quit,
            "begin": self._begin,
            "commit": self._commit,
            "rollback": self._rollback,
        }

    def _show_schema(self, name: str) -> None:
        if not name:
            output.raw(self.graph.schema().rstrip("\n") + "\n")
            return
        from omnigraph.language.schema.build import compile_schema
        from omnigraph.language.schema.catalog import Catalog
        from omnigraph.language.schema.printer import print_schema

        catalog = compile_schema(self.graph.schema())
        nodes = {key: node for key, node in catalog.nodes.items() if key == name}
        edges = {key: edge for key, edge in catalog.edges.items() if key == name}
        if not nodes and not edges:
            nearest = nearest_name(name, [*catalog.nodes, *catalog.edges])
            raise NotFound(f"the schema has no type '{name}'{did_you_mean(nearest)}")
        output.raw(print_schema(Catalog(nodes, edges, {})))

    def _use_branch(self, name: str) -> None:
        names = sorted(self.graph.branches())
        if not name:
            for found in names:
                output.line(f"{'*' if found == self.branch else ' '} {found}")
            return
        if self._transaction is not None:
            raise BadRequest("a transaction is open on this branch; end it with commit or rollback first")
        # Asks for the branch, so that one that is not there is an error now and not later.
        self.graph.head(name)
        self.branch = name

    def _set_params(self, text: str) -> None:
        if text:
            self.params = params_object(text, ":params")
        else:
            output.json(self.params)

    def _set_format(self, name: str) -> None:
        if not name:
            output.line(self.format)
            return
        if name not in OUTPUTS or name == "arrow":
            raise BadRequest(f"'{name}' is no format of the shell; they are table, kv, csv, jsonl and json")
        self.format = name

    def _quit(self, _: str) -> None:
        self.over = True
