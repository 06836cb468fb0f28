"""The operator's configuration: `config.yaml` in `$OMNIGRAPH_HOME` or `~/.omnigraph`. Unknown keys warn, wrong values fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from omnigraph.cli.output import warn
from omnigraph.cli.settings import OUTPUTS
from omnigraph.errors import BadRequest
from omnigraph.language.source import did_you_mean, nearest_name

_Entry = TypeVar("_Entry")

LAYOUTS = ("truncate", "wrap")
_SCOPES = ("server", "cluster", "store")
_KEYS: Mapping[str, Collection[str]] = {
    "operator": ("actor",),
    "defaults": ("output", "server", "store", "default_graph", "table_max_column_width", "table_cell_layout"),
}
_SECTIONS = ("operator", "servers", "clusters", "profiles", "defaults", "aliases")
#: The allowed keys of the entries in each section with named entries.
_ENTRY_KEYS: Mapping[str, Collection[str]] = {
    "servers": ("url",),
    "clusters": ("root",),
    "profiles": (*_SCOPES, "default_graph", "output"),
    "aliases": ("server", "graph", "query", "args", "params", "format"),
}


@dataclass(frozen=True)
class Profile:
    """A named address: `scope` is server, cluster or store; `endpoint` is its name or address."""

    name: str
    scope: str
    endpoint: str
    default_graph: str | None = None
    output: str | None = None


@dataclass(frozen=True)
class Alias:
    """A short name for a stored query of a server: `args` are the parameters that are given by position."""

    name: str
    server: str
    query: str
    graph: str | None = None
    args: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    format: str | None = None


@dataclass(frozen=True)
class Defaults:
    """The defaults that apply when neither flags nor a profile give a value."""

    output: str | None = None
    server: str | None = None
    store: str | None = None
    default_graph: str | None = None
    table_max_column_width: int = 80
    table_cell_layout: str = "truncate"


@dataclass(frozen=True)
class OperatorConfig:
    """The configuration as it was read; profiles and aliases are checked when they are used."""

    path: Path
    actor: str | None = None
    servers: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, object] = field(default_factory=dict)
    aliases: Mapping[str, object] = field(default_factory=dict)
    defaults: Defaults = field(default_factory=Defaults)

    def profile(self, name: str) -> Profile:
        """A profile by its name; one that is missing or does not hold together is an error."""
        return self._named("profile", name, self.profiles, _profile)

    def alias(self, name: str) -> Alias:
        """An alias by its name; one that is missing or does not hold together is an error."""
        return self._named("alias", name, self.aliases, _alias)

    def _named(
        self, what: str, name: str, defined: Mapping[str, object], build: Callable[[str, object], _Entry]
    ) -> _Entry:
        if name not in defined:
            known = f"defined are: {', '.join(sorted(defined))}" if defined else "none is defined"
            raise BadRequest(f"{what} '{name}' is not in {self.path}; {known}")
        try:
            return build(name, defined[name])
        except ValueError as problem:
            raise BadRequest(f"{what} '{name}' in {self.path}: {problem}") from None


def config_path() -> Path:
    """The path of the configuration file, which need not exist."""
    home = os.environ.get("OMNIGRAPH_HOME")
    return (Path(home) if home else Path.home() / ".omnigraph") / "config.yaml"


def read_config() -> OperatorConfig:
    """Read the configuration; the defaults when there is no file."""
    path = config_path()
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return OperatorConfig(path)
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"cannot read {path}: it is not UTF-8 text (byte {error.start})") from error
    try:
        return _build(path, _mapping(_parse(text), "the file"))
    except ValueError as problem:
        raise BadRequest(f"{path}: {problem}") from None


def _parse(text: str) -> object:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(f"not valid YAML: {place}{error.problem}") from None
    except yaml.YAMLError as error:
        raise ValueError(f"not valid YAML: {str(error).splitlines()[0]}") from None


def _build(path: Path, document: Mapping[str, Any]) -> OperatorConfig:
    sections = {name: _mapping(document.get(name), name) for name in _SECTIONS}
    servers, clusters = _entries(sections["servers"], "servers"), _entries(sections["clusters"], "clusters")
    _warn_of_unknown(path, "", document, _SECTIONS)
    for name, known in _KEYS.items():
        _warn_of_unknown(path, f"{name}.", sections[name], known)
    for name, known in _ENTRY_KEYS.items():
        for entry, given in sections[name].items():
            if isinstance(given, dict):
                _warn_of_unknown(path, f"{name}.{entry}.", given, known)
    return OperatorConfig(
        path=path,
        actor=_text(sections["operator"], "actor", "operator"),
        servers=_named(servers, "servers", "url"),
        clusters=_named(clusters, "clusters", "root"),
        profiles=sections["profiles"],
        aliases=sections["aliases"],
        defaults=_defaults(sections["defaults"]),
    )


def _profile(name: str, entry: object) -> Profile:
    where = f"profiles.{name}"
    given = _mapping(entry, where)
    endpoints = {scope: _text(given, scope, where) for scope in _SCOPES}
    scopes = [scope for scope, endpoint in endpoints.items() if endpoint is not None]
    if len(scopes) != 1:
        raise ValueError(f"it needs exactly one of server, cluster and store, and has {' and '.join(scopes) or 'none'}")
    scope, endpoint = scopes[0], endpoints[scopes[0]]
    assert endpoint is not None
    default_graph = _text(given, "default_graph", where)
    if scope == "store" and default_graph is not None:
        raise ValueError("its store is already a single graph; remove default_graph")
    return Profile(name, scope, endpoint, default_graph, _choice(given, "output", where, OUTPUTS))


def _alias(name: str, entry: object) -> Alias:
    where = f"aliases.{name}"
    given = _mapping(entry, where)
    server, query = _text(given, "server", where), _text(given, "query", where)
    if server is None or query is None:
        raise ValueError("it needs a server and a query")
    args = given.get("args") or []
    if not isinstance(args, list) or not all(isinstance(arg, str) and arg for arg in args):
        raise ValueError(f"{where}.args is a list of parameter names, not {args!r}")
    return Alias(
        name,
        server,
        query,
        _text(given, "graph", where),
        tuple(args),
        _mapping(given.get("params"), f"{where}.params"),
        _choice(given, "format", where, OUTPUTS),
    )


def _defaults(given: Mapping[str, Any]) -> Defaults:
    where = "defaults"
    server, store = _text(given, "server", where), _text(given, "store", where)
    default_graph = _text(given, "default_graph", where)
    if store is not None and server is not None:
        raise ValueError("defaults.server and defaults.store exclude each other; remove one of them")
    if store is not None and default_graph is not None:
        raise ValueError("defaults.store is already a single graph; remove defaults.default_graph")
    width = given.get("table_max_column_width", Defaults.table_max_column_width)
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise ValueError(f"defaults.table_max_column_width is {width!r}; it is a number of characters, 1 or more")
    return Defaults(
        output=_choice(given, "output", where, OUTPUTS),
        server=server,
        store=store,
        default_graph=default_graph,
        table_max_column_width=width,
        table_cell_layout=_choice(given, "table_cell_layout", where, LAYOUTS) or Defaults.table_cell_layout,
    )


# --- reading values: each function raises ValueError with what is wrong -----------------------------------------------


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    """A section of the configuration; an empty mapping when it is absent or empty."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{where} must be a mapping of names to values, not {value!r}")
    return {str(key): item for key, item in value.items()}


def _entries(section: Mapping[str, Any], where: str) -> dict[str, Mapping[str, Any]]:
    return {name: _mapping(entry, f"{where}.{name}") for name, entry in section.items()}


def _named(entries: Mapping[str, Mapping[str, Any]], where: str, key: str) -> dict[str, str]:
    """One text of each entry that has it."""
    found = {name: _text(entry, key, f"{where}.{name}") for name, entry in entries.items()}
    return {name: value for name, value in found.items() if value is not None}


def _text(given: Mapping[str, Any], key: str, where: str) -> str | None:
    value = given.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ValueError(f"{where}.{key} must be a text, not {value!r}")
    return value


def _choice(given: Mapping[str, Any], key: str, where: str, choices: Collection[str]) -> str | None:
    value = _text(given, key, where)
    if value is not None and value not in choices:
        raise ValueError(f"{where}.{key} is {value!r}; it is one of {', '.join(choices)}")
    return value


def _warn_of_unknown(path: Path, where: str, given: Mapping[str, Any], known: Collection[str]) -> None:
    for key in given:
        if key not in known:
            warn(f"{path}: unknown key {where}{key}{did_you_mean(nearest_name(str(key), known))}")
