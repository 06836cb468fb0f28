"""The verbs of all three kinds of handle: the same names and arguments, also where the type checker does not look."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.client import writing
from omnigraph.errors import BadRequest

#: What only the storage of a graph can do, and what belongs to a handle on storage.
ON_STORAGE = {
    "backup",
    "contract",
    "discard_operation",
    "graph_frames",
    "load_frames",
    "pending_operations",
    "picture",
    "register_views",
    "to_networkx",
    "repair",
    "spark_changes",
    "spark_table",
    "query_frame",
    "stream_load",
    "verify",
}
#: What only a server has.
SERVED = {"invoke", "stored_queries"}


def verbs_of(kind: type) -> dict[str, Any]:
    return {
        name: getattr(kind, name)
        for name in dir(kind)
        if not name.startswith("_") and callable(getattr(kind, name)) and name != "mro"
    }


def parameters_of(verb: Any) -> dict[str, tuple[Any, Any]]:
    """The arguments of a verb, without the handle: their kinds and defaults, in order."""
    listed = list(inspect.signature(verb).parameters.values())[1:]
    return {parameter.name: (parameter.kind, parameter.default) for parameter in listed}


@pytest.mark.parametrize("kind", [og.RemoteGraph, og.AsyncGraph])
def test_every_verb_is_there(kind: type) -> None:
    assert set(verbs_of(kind)) - SERVED == set(verbs_of(og.Graph)) - ON_STORAGE


@pytest.mark.parametrize("kind", [og.RemoteGraph, og.AsyncGraph])
@pytest.mark.parametrize("name", sorted(set(verbs_of(og.Graph)) - ON_STORAGE))
def test_a_verb_has_the_arguments_of_the_library(kind: type, name: str) -> None:
    assert parameters_of(getattr(kind, name)) == parameters_of(getattr(og.Graph, name))


def test_verbs_say_what_they_do() -> None:
    for kind in (og.RemoteGraph, og.AsyncGraph):
        for name, verb in verbs_of(kind).items():
            assert inspect.getdoc(verb), name


def test_a_served_overwrite_by_an_empty_table_is_refused() -> None:
    handle: Any = None
    empty = pa.table({"name": pa.array([], pa.string())})
    with pytest.raises(BadRequest, match="an empty table has none that says what it replaces; delete all of Person"):
        next(writing.load(handle, empty, "overwrite", type="Person"))
