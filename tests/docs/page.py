"""A page of the documentation as something that can be run: its code blocks, from top to bottom, in one empty folder.

| block | what happens |
|---|---|
| pg, gq, jsonl, json, yaml, csv with a file name after the language | the file is written |
| gq without a name | compiled against the last schema that was written |
| bash | each command is run by itself and must succeed |
| console | each `$ command` is run and prints what follows it; `…` stands for any text |
| python | run, in one namespace for the page; a `print` promises its line in a comment |

The lines of a table whose last column is called OmniGraph are run too, on the graph that the page calls `g`: a read finds
something, a mutation changes something.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.main import run
from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.schema.build import compile_schema

_FENCE = re.compile(r"^```(?P<language>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_SHELL = re.compile(r"[|<>&;$`*\n]")
_PROMISE = re.compile(r"\bprint\(.*\)\s+# (?P<shown>.*)$")
RUN = ("bash", "console", "python", "gq")
FILES = ("pg", "gq", "jsonl", "json", "yaml", "csv")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the file it is, where it stands."""

    language: str
    name: str | None
    text: str
    line: int


@dataclass(frozen=True)
class TableLine:
    """The query or mutation in the last column of a line of a table."""

    text: str
    line: int


def table_lines(page: str) -> list[TableLine]:
    """The lines to run, of all tables whose last column is called OmniGraph."""
    found: list[TableLine] = []
    header: str | None = None
    for number, line in enumerate(page.splitlines(), start=1):
        if not line.startswith("|"):
            header = None
            continue
        last = re.split(r"(?<!\\)\|", line)[-2].strip()
        if header is None:
            header = last
        elif header == "OmniGraph" and set(last) != {"-"}:
            assert re.fullmatch("`[^`]+`", last), f"line {number}: {last}"
            found.append(TableLine(last.strip("`").replace("\\|", "|"), number))
    return found


def pieces(page: str) -> list[Block | TableLine]:
    """Everything on a page that is run, in order."""
    return sorted([*blocks(page), *table_lines(page)], key=lambda piece: piece.line)


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page that have a language, in order."""
    return [
        Block(found["language"], found["name"], found["text"], page.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(page)
    ]


@dataclass
class Reader:
    """Somebody who types in what a page shows; the current folder is theirs."""

    names: dict[str, object] = field(default_factory=dict)
    schema: str | None = None

    def follow(self, block: Block | TableLine) -> None:
        """Do what a block or a line of a table says."""
        if isinstance(block, TableLine):
            self._run(block.text)
        elif block.name is not None:
            Path(block.name).parent.mkdir(parents=True, exist_ok=True)
            Path(block.name).write_text(block.text)
            self.schema = block.text if block.language == "pg" else self.schema
        elif block.language == "gq":
            self._compile(block.text)
        elif block.language == "bash":
            for command in _lines(block.text):
                code, shown = _typed(command)
                assert code == 0, f"$ {command}\n{shown}"
        elif block.language == "console":
            for command, promised in _commands(block.text):
                shown = _typed(command)[1]
                assert _fits(promised, shown), f"$ {command}\n{shown}\nbut the page promises\n{promised}"
        elif block.language == "python":
            self._execute(block)

    def _run(self, text: str) -> None:
        graph = self.names["g"]
        assert isinstance(graph, og.Graph)
        if parse_query_file(text).queries[0].is_mutation:
            done = graph.mutate(text)
            assert done.affected_nodes + done.affected_edges, text
        else:
            assert len(graph.query(text)), text

    def _compile(self, text: str) -> None:
        assert self.schema is not None, "a query without a schema before it"
        catalog = compile_schema(self.schema)
        parsed = parse_query_file(text)
        assert parsed.queries
        for query in parsed.queries:
            compile_query(text, query.name, catalog)

    def _execute(self, block: Block) -> None:
        shown = io.StringIO()
        # The empty lines put the error of a block at its line on the page.
        code = compile("\n" * block.line + block.text, "page", "exec")
        with contextlib.redirect_stdout(shown):
            exec(code, self.names)
        promises = [found["shown"] for line in block.text.splitlines() if (found := _PROMISE.search(line))]
        assert block.text.count("print(") == len(promises), "a print promises what it shows: print(x)  # the line"
        for promised, line in zip(promises, shown.getvalue().splitlines(), strict=True):
            assert _fits(promised, line), f"{line}\nbut the page promises\n{promised}"


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block and what they print."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        first, *rest = _lines(part)
        yield first, "\n".join(rest)


def _lines(text: str) -> list[str]:
    """The lines of a shell text; one goes on while a quote is open or it ends with `\\`."""
    found: list[str] = []
    for line in text.splitlines():
        if found and (found[-1].endswith("\\") or found[-1].count("'") % 2):
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return found


def _typed(command: str) -> tuple[int, str]:
    """The exit code of a command, and what a terminal would show: standard output and errors, in order."""
    plain = _plain(command)
    if plain is None:
        done = _in_a_shell(command)
        return done.returncode, done.stdout
    # The same command without a new process: pages stay cheap to run.
    variables, arguments = plain
    buffer = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        with contextlib.redirect_stdout(buffer), contextlib.redirect_stderr(buffer):
            code = run(arguments)
    return code, buffer.buffer.getvalue().decode()


def _plain(command: str) -> tuple[dict[str, str], list[str]] | None:
    """The variables and arguments of a call of `omnigraph` that needs nothing of a shell."""
    if _SHELL.search(re.sub(r"'[^']*'|\\\n", "", command)):
        return None
    words = shlex.split(command.replace("\\\n", " "))
    at = next(at for at, word in enumerate(words) if not re.match(r"[A-Z_]+=", word))
    if words[at] != "omnigraph":
        return None
    return dict(word.split("=", 1) for word in words[:at]), words[at + 1 :]


def _in_a_shell(text: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def _fits(promised: str, shown: str) -> bool:
    pattern = ".*?".join(map(re.escape, promised.strip().split("…")))
    return re.fullmatch(pattern, shown.strip(), re.DOTALL) is not None
