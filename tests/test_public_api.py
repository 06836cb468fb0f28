"""The Python API as it is promised: every verb with its arguments and defaults, every result with its fields, every error."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.graph.merging import Asked
from omnigraph.merge.result import Conflict

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "python-api.md").read_text()
NEEDED = inspect.Parameter.empty

OPENING = {"actor": None, "durability": None, "storage_options": None, "spark": None, "embedding": None}
#: A handle is bound to main unless `at` says another: no branch means that one.
BOUND = None

#: Arguments and defaults, in the order in which they may be given by place; those after `*` by name only.
VERBS: dict[str, dict[str, Any]] = {
    "query": {"source": NEEDED, "name": None, "params": None, "branch": BOUND, "snapshot": None, "engine": "local"},
    "explain": {"source": NEEDED, "name": None, "params": None, "analyze": False},
    "mutate": {
        "source": NEEDED,
        "name": None,
        "params": None,
        "branch": BOUND,
        "actor": None,
        "if_commit": None,
        "idempotency_key": None,
    },
    "load": {
        "data": NEEDED,
        "mode": "append",
        "branch": BOUND,
        "base": None,
        "actor": None,
        "engine": "auto",
        "lenient": False,
        "type": None,
        "edge": None,
    },
    "ingest": {"data": NEEDED, "branch": NEEDED, "base": BOUND, "mode": "merge"},
    "export": {"out": NEEDED, "branch": BOUND, "types": None},
    "branches": {},
    "create_branch": {"name": NEEDED, "base": BOUND, "actor": None},
    "delete_branch": {"name": NEEDED, "actor": None},
    "merge": {"source": NEEDED, "into": BOUND, "delete_branch": False},
    "rebase": {"branch": NEEDED, "onto": "main"},
    "revert": {"commit": NEEDED, "branch": BOUND},
    "cherry_pick": {"commit": NEEDED, "onto": BOUND},
    "at": {"branch": NEEDED},
    "commits": {"branch": BOUND, "actor": None, "kind": None, "since": None, "until": None},
    "commit": {"commit_id": NEEDED},
    "head": {"branch": BOUND},
    "snapshot": {"branch": BOUND},
    "diff": {"before": NEEDED, "after": BOUND, "kinds": None, "types": None, "ops": None},
    "commit_changes": {"commit_id": NEEDED, "limit": None, "page_token": None},
    "changes": {
        "branch": BOUND,
        "cursor": None,
        "start": None,
        "page_token": None,
        "limit": None,
        "max_commits": None,
    },
    "baseline": {"branch": BOUND},
    "tag": {"name": NEEDED, "commit": None, "actor": None},
    "tags": {},
    "config": {},
    "set_config": {"name": NEEDED, "value": NEEDED, "actor": None},
    "schema": {},
    "plan_schema": {"schema": NEEDED, "allow_data_loss": False},
    "apply_schema": {"schema": NEEDED, "allow_data_loss": False, "actor": None},
    "entity": {"kind": NEEDED, "type_name": NEEDED, "entity_id": NEEDED, "snapshot": None},
    "read_blob": {"kind": NEEDED, "type_name": NEEDED, "entity_id": NEEDED, "property": NEEDED},
    "ensure_indices": {"actor": None},
    "optimize": {"actor": None},
    "repair": {"actor": None},
    "cleanup": {"keep": None, "older_than": None, "dry_run": False, "actor": None},
    "recoveries": {},
    "refresh": {},
    "stats": {},
}
FUNCTIONS: dict[str, dict[str, Any]] = {
    "init": {"uri": NEEDED, "schema": NEEDED} | OPENING | {"external_blobs": ()},
    "open": {"uri": NEEDED, "mode": "rw"} | OPENING | {"external_blobs": ()},
}
RESULTS: dict[type[Any], tuple[str, ...]] = {
    og.MutationResult: ("affected_nodes", "affected_edges", "commit"),
    og.LoadResult: (
        "branch",
        "base_branch",
        "branch_created",
        "mode",
        "tables",
        "nodes_loaded",
        "edges_loaded",
        "commit",
    ),
    og.MergeResult: ("outcome", "commit", "conflicts", "stats"),
    og.Commit: ("id", "branch", "parent", "merged_parent", "actor", "created_at", "manifest_version", "kind"),
    og.ChangeSet: ("changes",),
    og.Change: ("op", "kind", "type", "id", "before", "after", "endpoints"),
    Conflict: ("kind", "type_key", "entity_id", "message"),
}
#: Class, parent, attributes beside the message.
ERRORS = [
    ("BadRequest", "OmnigraphError", ()),
    ("ParseError", "BadRequest", ("line", "column")),
    ("CatalogError", "BadRequest", ()),
    ("TypecheckError", "BadRequest", ("code",)),
    ("EvaluationError", "BadRequest", ("line", "column")),
    ("SchemaContractError", "BadRequest", ()),
    ("ValidationError", "BadRequest", ("kind", "type_key")),
    ("LoadRejected", "BadRequest", ("errors", "total")),
    ("ResourceLimit", "BadRequest", ("resource", "limit", "actual")),
    ("ChangeCursorRejected", "BadRequest", ("reason",)),
    ("BlobRangeNotSatisfiable", "BadRequest", ("start", "end", "length")),
    ("ExternalBlobDenied", "BadRequest", ("uri",)),
    ("NotFound", "OmnigraphError", ()),
    ("BranchNotFound", "NotFound", ()),
    ("CommitNotFound", "NotFound", ()),
    ("EntityNotFound", "NotFound", ()),
    ("AlreadyExists", "OmnigraphError", ()),
    ("AlreadyInitialized", "AlreadyExists", ()),
    ("Denied", "OmnigraphError", ("action", "actor")),
    ("Conflict", "OmnigraphError", ()),
    ("KeyConflict", "Conflict", ("type_key", "entity_id")),
    ("ExpectedVersionMismatch", "Conflict", ("table_key", "expected", "actual")),
    ("ReadSetChanged", "Conflict", ("table_key",)),
    ("ManifestContention", "Conflict", ()),
    ("PreconditionFailed", "Conflict", ("expected", "actual")),
    ("MergeConflicts", "Conflict", ("conflicts",)),
    ("CommitHasNoParent", "Conflict", ("commit",)),
    ("ChangeSchemaBoundary", "Conflict", ("commit", "type_name")),
    ("RecoveryRequired", "OmnigraphError", ("operation_id",)),
    ("CommitStateUnknown", "OmnigraphError", ("commit_id",)),
    ("DriftNeedsRepair", "OmnigraphError", ("table_key",)),
    ("FormatTooNew", "OmnigraphError", ()),
    ("FormatTooOld", "OmnigraphError", ()),
    ("StorageError", "OmnigraphError", ("kind",)),
    ("ExternalBlobSource", "OmnigraphError", ("uri", "reason")),
    ("EmbeddingError", "OmnigraphError", ("provider",)),
    ("HistoricalVersionReclaimed", "OmnigraphError", ()),
    ("ChangeFeedGap", "OmnigraphError", ("cursor", "first_unreadable_commit")),
]


def taken(function: Callable[..., Any]) -> dict[str, Any]:
    """What a function takes beside its handle, with defaults."""
    parameters = inspect.signature(function).parameters
    return {name: parameter.default for name, parameter in parameters.items() if name != "self"}


@pytest.mark.parametrize("name", [*VERBS, *FUNCTIONS])
def test_a_verb_takes_what_is_promised(name: str) -> None:
    promised = VERBS.get(name) or FUNCTIONS.get(name, {})
    function = getattr(og if name in FUNCTIONS else og.Graph, name)
    found = taken(function)
    assert {argument: found.get(argument, "missing") for argument in promised} == promised
    positional = [argument for argument in promised if promised[argument] is NEEDED]
    assert list(found)[: len(positional)] == positional
    assert inspect.getdoc(function)


@pytest.mark.parametrize("name", ["merge", "rebase", "revert", "cherry_pick"])
@pytest.mark.parametrize("kind", [og.Graph, og.RemoteGraph, og.AsyncGraph])
def test_what_merges_takes_the_same_decisions(kind: type, name: str) -> None:
    """`help` tells every parameter, with its default and its meaning."""
    verb = getattr(kind, name)
    parameters = inspect.signature(verb).parameters
    shown = [parameter.name for parameter in parameters.values() if parameter.kind is parameter.KEYWORD_ONLY]
    assert shown[-len(Asked.__annotations__) :] == list(Asked.__annotations__)
    assert not [parameter for parameter in parameters.values() if parameter.kind is parameter.VAR_KEYWORD]
    assert [word for word in Asked.__annotations__ if f"`{word}`: " not in (inspect.getdoc(verb) or "")] == []
    assert (parameters["images"].default, parameters["engine"].default) == (True, "auto")


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.__name__)
def test_a_result_is_a_small_frozen_dataclass(result: type[Any]) -> None:
    fields = tuple(field.name for field in dataclasses.fields(result))
    assert fields[: len(RESULTS[result])] == RESULTS[result]
    assert result.__dataclass_params__.frozen
    assert callable(result.to_dict)


@pytest.mark.parametrize(("name", "parent", "attributes"), ERRORS, ids=[row[0] for row in ERRORS])
def test_an_error_has_its_place_and_its_data(name: str, parent: str, attributes: tuple[str, ...]) -> None:
    error = getattr(og.errors, name)
    assert issubclass(error, getattr(og.errors, parent))
    assert set(attributes) <= {name for base in error.__mro__ for name in _arguments(base)}
    assert error.__doc__


def _arguments(error: type[Any]) -> set[str]:
    return set(inspect.signature(error.__init__).parameters) if "__init__" in vars(error) else set()


def public(owner: object) -> list[str]:
    return sorted(name for name in dir(owner) if not name.startswith("_") and name not in dir(Exception))


@pytest.mark.parametrize("name", public(og.Graph))
def test_every_verb_is_on_the_page(name: str) -> None:
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize(
    "name",
    [name for name in public(og.errors) if getattr(vars(og.errors)[name], "__module__", "") == og.errors.__name__],
)
def test_every_error_is_on_the_page(name: str) -> None:
    assert f"`{name}`" in PAGE


EXPORTED = [name for name in og.__all__ if name != "__version__"]
#: Objects of the storage that verbs for looking inside hand out. They are no part of the promise.
INTERNAL = {"Contract", "Sidecar", "Table", "TableEntry"}


@pytest.mark.parametrize("name", EXPORTED)
def test_every_exported_name_is_on_the_page(name: str) -> None:
    assert re.search(rf"`(og\.|await og\.)?{name}\b", PAGE)


@pytest.mark.parametrize("name", [name for name in EXPORTED if name != "AnyGraph"])  # a union of two of the others
def test_help_tells_what_every_exported_name_is(name: str) -> None:
    """A sentence for the name itself, and one for each public method and property of a class."""
    found = getattr(og, name)
    told = {name: inspect.getdoc(found)}
    if inspect.isclass(found):
        members = inspect.getmembers(found, lambda member: inspect.isroutine(member) or isinstance(member, property))
        told |= {member: inspect.getdoc(value) for member, value in members if member in public(found)}
    # A sentence, which may go on in the next line or end in an example.
    wrong = {member: text for member, text in told.items() if not text or not re.search(r"[.:`)…]$", text.strip())}
    assert wrong == {}


@pytest.mark.parametrize("kind", [og.Graph, og.Transaction, og.Snapshot])
def test_what_a_verb_returns_is_exported(kind: type) -> None:
    returned = set()
    for name in public(kind):
        member: Any = getattr(kind, name)
        function: Any = inspect.unwrap(getattr(member, "fget", None) or member)
        annotation = str(getattr(function, "__annotations__", {}).get("return", ""))
        returned |= {word for word in re.findall(r"\b[A-Z]\w+", annotation) if _is_ours(function, word)}
    assert sorted(returned - set(og.__all__) - INTERNAL) == []


def _is_ours(function: Any, word: str) -> bool:
    """Whether a name of an annotation is a class of this package, told by the imports of the module it is written in."""
    text = Path(inspect.getsourcefile(function) or "").read_text()
    return bool(re.search(rf"from omnigraph\.[\w.]+ import [^\n]*\b{word}\b|^class {word}\b", text, re.M))


def test_the_package_is_typed() -> None:
    assert (Path(og.__file__).parent / "py.typed").exists()
