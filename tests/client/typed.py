"""A handle that types every verb on the command line, so that scenarios run there too, on storage and over a server.

What a command prints as JSON is what the verb returns. A verb, or an argument, that the command line does not have raises
`NotTyped`: such a scenario says nothing about the command line.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.cli.main import run

_DIAGNOSTICS = re.compile(r"^(omnigraph .* → .*|warning: .*|exported .*|the |[0-9]+ nodes).*\n", re.MULTILINE)


class NotTyped(Exception):
    """The command line has nothing for this."""


class Failed(og.OmnigraphError):
    """A command that did not succeed: its exit code, and what it printed."""

    def __init__(self, code: int, out: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.out = out

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code, "out": self.out, "message": self.message}


#: What the command line calls attributes of results.
_SPELLED = {"id": ("graph_commit_id",), "branch": ("graph_branch",)}


class Shown(dict[str, Any]):
    """What a command printed; scenarios read some of it by attribute."""

    def __getattr__(self, name: str) -> Any:
        key = next((key for key in (name, *_SPELLED.get(name, ())) if key in self), None)
        if key is None:
            raise NotTyped(name)
        found = self[key]
        if name == "branch":
            return found or "main"
        if name == "changes":
            return [Shown(change) for change in found]
        return Shown(found) if isinstance(found, dict) else found

    def to_dict(self) -> dict[str, Any]:
        return dict(self)

    def __len__(self) -> int:
        return int(self["row_count"]) if "row_count" in self else super().__len__()


class Typed:
    """The command line as a handle of the graph that `address` names."""

    def __init__(self, uri: str, *address: str) -> None:
        self.uri = uri
        self._address = address

    def __getattr__(self, name: str) -> Any:
        raise NotTyped(name)

    # --- typing -----------------------------------------------------------------------------------------------------

    def _bytes(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """What a command writes to standard output; `Failed` for another exit code than 0."""
        with _streams(stdin) as (out, err):
            code = run([*arguments, *self._address])
            sys.stdout.flush()
        if code:
            # Usage errors quote the command line, in which the addresses differ.
            told = _DIAGNOSTICS.sub("", err.getvalue()) if code != 2 else "usage"
            # How much a query held when it was stopped depends on what the process knew before.
            told = re.sub(r"at least [0-9]+ bytes", "at least … bytes", told)
            raise Failed(code, out.getvalue().decode(), told)
        return out.getvalue()

    def _json(self, *arguments: str, stdin: bytes = b"") -> Any:
        found = json.loads(self._bytes(*arguments, "--json", stdin=stdin))
        return Shown(found) if isinstance(found, dict) else found

    # --- queries ----------------------------------------------------------------------------------------------------

    def query(self, source: Any, name: Any = None, params: Any = None, **options: Any) -> Any:
        return self._json("query", *_query(source, name, params), *_flags(options, _READ))

    def explain(self, source: Any, name: Any = None, params: Any = None, **options: Any) -> Any:
        return self._json("explain", *_query(source, name, params), *_flags(options, ("branch", "snapshot")))

    def mutate(self, source: Any, name: Any = None, params: Any = None, **options: Any) -> Any:
        return self._json("mutate", *_query(source, name, params), *_flags(options, _WRITE))

    def mutate_many(self, mutations: Any, **options: Any) -> Any:
        given = [item if isinstance(item, tuple) else (item,) for item in mutations]
        params = {name: value for item in given for name, value in ((item[2] or {}) if len(item) > 2 else {}).items()}
        sources = [word for item in given for word in ("-e", _text(item[0]))]
        return self._json("mutate", *sources, *_params(params or None), *_flags(options, _WRITE))

    def load(self, data: Any, mode: str = "append", **options: Any) -> Any:
        return self._loaded("load", data, mode, options)

    def ingest(self, data: Any, branch: str, base: str = "main", mode: str = "merge", **options: Any) -> Any:
        return self._loaded("ingest", data, mode, {"branch": branch, "base": base, **options})

    def _loaded(self, command: str, data: Any, mode: str, options: dict[str, Any]) -> Any:
        if isinstance(data, bytes):
            given, files = data, ["-"]
        elif isinstance(data, str | Path):
            given, files = b"", [str(data)]
        elif isinstance(data, list) and data and all(isinstance(item, str | Path) for item in data):
            given, files = b"", [str(item) for item in data]
        else:
            raise NotTyped("rows in memory")
        named = {{"base": "from"}.get(name, name): value for name, value in options.items()}
        flags = _flags(named, ("branch", "from", "idempotency_key", "lenient"))
        paths = [word for file in files for word in ("--data", file)]
        return self._json(command, *paths, "--mode", mode, "--yes", *flags, stdin=given)

    # --- branches and history ---------------------------------------------------------------------------------------

    def branches(self) -> Any:
        return self._json("branch", "list")["branches"]

    def create_branch(self, name: str, base: str = "main", **options: Any) -> Any:
        made = self._json("branch", "create", "--from", base, *_flags(options, _KEY), "--", name)
        # What the verb returns is at the commit on which the branch starts.
        return Shown(made | {"commit": self.head(name).id}) if options else made

    def delete_branch(self, name: str, **options: Any) -> Any:
        return self._json("branch", "delete", "--yes", *_flags(options, _KEY), "--", name)

    def merge(self, source: str, into: str = "main", **options: Any) -> Any:
        return self._json("branch", "merge", source, "--into", into, *_merge_flags(options))

    def rebase(self, branch: str, onto: str = "main", **options: Any) -> Any:
        return self._json("branch", "rebase", branch, "--onto", onto, *_merge_flags(options))

    def revert(self, commit: str, branch: str = "main", **options: Any) -> Any:
        return self._json("revert", commit, "--branch", branch, *_merge_flags(options))

    def cherry_pick(self, commit: str, onto: str = "main", **options: Any) -> Any:
        return self._json("cherry-pick", commit, "--onto", onto, *_merge_flags(options))

    def commits(self, branch: str = "main", **filters: Any) -> Any:
        given = [word for name, value in filters.items() for word in ("--filter", f"{name}={_moment(value)}")]
        told = self._json("commit", "list", "--branch", branch, *given)
        return [Shown(commit) for commit in told["commits"]]

    def head(self, branch: str = "main") -> Any:
        return self.commits(branch)[0]

    def commit(self, commit_id: str) -> Any:
        return self._json("commit", "show", commit_id)

    def snapshot(self, branch: str = "main", at: Any = None) -> Any:
        if at is not None:
            raise NotTyped("a snapshot of the past")
        return self._json("snapshot", "--branch", branch)

    def diff(self, before: Any, after: Any = "main", **filters: Any) -> Any:
        return self._json("diff", _reference(before), _reference(after), *_filters(filters))

    def commit_changes(self, commit_id: str, **options: Any) -> Any:
        flags = [word for name in ("limit", "page_token") if name in options for word in _flag(name, options.pop(name))]
        return self._json("commit", "changes", commit_id, *flags, *_filters(options))

    def changes(self, branch: str = "main", **options: Any) -> Any:
        if "page_token" in options:
            raise NotTyped("a page of the feed")
        names = ("cursor", "start", "limit", "max_commits")
        flags = [word for name in names if name in options for word in _flag(name, options.pop(name))]
        return self._json("changes", "poll", "--branch", branch, *flags, *_filters(options))

    def baseline(self, branch: Any = None, out: Any = None, **filters: Any) -> Any:
        if not isinstance(out, str | Path):
            raise NotTyped("a baseline that goes nowhere")
        told = self._json("changes", "baseline", "--branch", branch or "main", "--out", str(out), *_filters(filters))
        cursor = {"cursor": told["resume_cursor"], "commit": told["snapshot_commit_id"]}
        return Shown(cursor | {"entities": Path(out).read_bytes().count(b"\n")})

    def tag(self, name: str, commit: Any = "main", **options: Any) -> Any:
        return self._json("tag", "create", name, _reference(commit), *_flags(options, _KEY))["graph_commit_id"]

    def tags(self) -> Any:
        return {entry["name"]: entry["graph_commit_id"] for entry in self._json("tag", "list")["tags"]}

    def delete_tag(self, name: str, **options: Any) -> Any:
        return self._json("tag", "delete", name, *_flags(options, _KEY))

    def config(self) -> Any:
        return self._json("config", "list")["config"]

    def set_config(self, name: str, value: str | None, **options: Any) -> Any:
        words = ("unset", name) if value is None else ("set", name, value)
        told = self._json("config", *words, *_flags(options, _KEY))
        return {told["name"]: told["value"]}

    # --- entities, schema, export -----------------------------------------------------------------------------------

    def read_blob(self, kind: str, type_name: str, entity_id: str, property: str, **options: Any) -> Any:
        selector = (kind, type_name, entity_id, property, *_flags(options, ("branch", "snapshot")))
        return TypedBlob(self, selector, self._json("blob", "stat", *selector))

    def schema(self) -> Any:
        return self._json("schema", "show")["schema_source"]

    def apply_schema(self, schema: Any, *, backfill: Any = (), **options: Any) -> Any:
        if isinstance(schema, Path):
            raise NotTyped("a schema that is a file already")
        flags = _flags(options, ("allow_data_loss", *_KEY)) + [
            word for text in backfill for word in ("--backfill", text)
        ]
        return self._json("schema", "apply", "--schema", "-", *flags, stdin=schema.encode())

    def export(self, out: Any, **options: Any) -> int:
        return self._bytes_out("export", "--out", str(out), options=options, out=Path(out))

    def export_chunks(self, **options: Any) -> Iterator[bytes]:
        yield self._bytes("export", *_export_flags(options))

    def _bytes_out(self, *arguments: str, options: dict[str, Any], out: Path) -> int:
        self._bytes(*arguments, *_export_flags(options))
        return out.read_bytes().count(b"\n")


class TypedBlob:
    """A blob value as the command line shows it."""

    def __init__(self, graph: Typed, selector: tuple[str, ...], stat: Any) -> None:
        self._graph, self._selector, self._stat = graph, selector, stat
        self.length = stat.get("size")

    def to_dict(self) -> Any:
        return dict(self._stat)

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        length = [] if end is None else ["--length", str(end - start)]
        return self._graph._bytes("blob", "get", *self._selector, "--offset", str(start), *length)

    def __iter__(self) -> Iterator[bytes]:
        yield self.read()


# --- arguments --------------------------------------------------------------------------------------------------------

_READ = ("branch", "snapshot", "timeout", "memory_limit")
_WRITE = ("branch", "if_commit", "message", "idempotency_key")
_KEY = ("idempotency_key",)
#: Flags whose value is a text, whatever it looks like.
_TEXTS = ("if_commit", "message", "idempotency_key")


def _query(source: Any, name: Any, params: Any) -> list[str]:
    named = [] if name is None else ["--name", name]
    given = ["--query", str(source)] if _is_file(source) else ["-e", source]
    return [*given, *named, *_params(params)]


def _is_file(source: Any) -> bool:
    return isinstance(source, Path) or source.endswith(".gq")


def _text(source: Any) -> str:
    if _is_file(source):
        raise NotTyped("a file among several")
    return str(source)


def _params(params: Mapping[str, Any] | None) -> list[str]:
    if params is None:
        return []
    try:
        return ["--params", json.dumps(params)]
    except TypeError:
        raise NotTyped("a parameter that JSON does not have") from None


def _flag(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    return ([flag] if value else []) if isinstance(value, bool) else [flag, _reference(value)]


def _flags(options: dict[str, Any], known: tuple[str, ...]) -> list[str]:
    for name, value in options.items():
        if name not in known:
            raise NotTyped(name)
        if value == "":
            raise NotTyped("the command line refuses an empty text")
        if name in _TEXTS and value is not None and not isinstance(value, str):
            raise NotTyped("what is typed is a text")
    return [word for name, value in options.items() if value is not None for word in _flag(name, value)]


def _merge_flags(options: dict[str, Any]) -> list[str]:
    given = dict(options)
    decisions = given.pop("resolutions", None)
    flags = _flags(given, ("delete_branch", "strategy", "dry_run", "images", "property_level", "idempotency_key"))
    if decisions is None:
        return flags
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump(decisions, file)
    return [*flags, "--resolve", file.name]


def _filters(filters: dict[str, Any]) -> list[str]:
    spelled = {"kinds": "kind", "types": "type", "ops": "op"}
    words = []
    for name, value in filters.items():
        if isinstance(value, int):
            raise NotTyped("what is typed is a text")
        for one in [value] if isinstance(value, str) else value:
            words += [f"--{spelled[name]}", one]
    return words


def _export_flags(options: dict[str, Any]) -> list[str]:
    given = dict(options)
    types = [word for name in given.pop("types", None) or [] for word in ("--type", name)]
    return [*types, *_flags(given, ("branch", "snapshot"))]


def _reference(target: Any) -> str:
    if isinstance(target, Shown) and "datasets" in target:
        raise NotTyped("a snapshot object")
    return str(target["graph_commit_id"] if isinstance(target, Shown) else target)


def _moment(value: Any) -> str:
    if isinstance(value, int):
        raise NotTyped("microseconds")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


@contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[io.BytesIO, io.StringIO]]:
    """Standard input that holds bytes, standard output and error that are kept."""
    out, err = io.BytesIO(), io.StringIO()
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    shown = io.TextIOWrapper(out, write_through=True)
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(err):
            yield out, err
    finally:
        sys.stdin = before
        shown.flush()
        shown.detach()
