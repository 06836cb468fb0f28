"""`omnigraph.init` and `omnigraph.open`: the two ways to a graph on a store."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from omnigraph.commit.context import PROCESS
from omnigraph.embedding.config import EmbeddingArgument
from omnigraph.embedding.embedder import Embedder
from omnigraph.errors import BadRequest
from omnigraph.graph.graph import Graph
from omnigraph.graph.handle import Connection, Door
from omnigraph.graph.lifecycle import connect, create, open_for_reading, open_for_writing
from omnigraph.graph.schema_watch import SchemaWatch
from omnigraph.graph.sources import read_source
from omnigraph.policy.actions import Guard
from omnigraph.spark.options import SparkArgument, spark_options
from omnigraph.storage.external import allowed_bases


def init(
    uri: str | os.PathLike[str],
    schema: str | Path,
    *,
    force: bool = False,
    actor: str | None = None,
    durability: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    external_blobs: Sequence[str] = (),
    embedding: EmbeddingArgument | None = None,
    spark: SparkArgument | None = None,
) -> Graph:
    """Create a graph and open it; refuses a place that holds one.

    `schema`: `.pg` text, or the path of a `.pg` file. `external_blobs`: URI prefixes blobs may refer to. `embedding`: the kind
    of provider that turns texts into vectors, or a mapping with its `kind`, `model`, `base_url`, `api_key` and more; the
    environment says what this leaves open. `spark`: what large work runs on: a Spark session, a master URL, or a mapping
    of `master` and `spark.*` settings.
    """
    embedder, bases = Embedder(embedding), allowed_bases(external_blobs)
    source, file = read_source(schema, ".pg")
    context = connect(_text(uri), storage_options=storage_options, durability=durability_mode(durability))
    contract = create(context, source, file=file, force=force, actor=actor)
    watch = SchemaWatch(context, contract)
    connection = Connection(context, watch, embedder, spark_options(spark), bases)
    return Graph(Door(connection), mode="rw", actor=actor)


def open(
    uri: str | os.PathLike[str],
    mode: Literal["rw", "ro"] = "rw",
    *,
    actor: str | None = None,
    durability: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    external_blobs: Sequence[str] = (),
    embedding: EmbeddingArgument | None = None,
    spark: SparkArgument | None = None,
    guard: Guard | None = None,
) -> Graph:
    """Open a graph. "rw" heals what a dead writer left, "ro" writes nothing at all. The options are those of `init`.

    Works in a `with` statement, which closes it at the end. `guard`: a policy that every write is checked against; what it does
    not allow raises `Denied` before anything happens.
    """
    if mode not in ("rw", "ro"):
        raise BadRequest(f'mode is "rw" or "ro", not {mode!r}')
    embedder, bases = Embedder(embedding), allowed_bases(external_blobs)
    context = connect(_text(uri), storage_options=storage_options, durability=durability_mode(durability))
    record = context.place.look()
    if record is not None and record.backup is not None:
        if not record.backup.get("complete"):
            raise BadRequest(
                f"the backup at {context.root.uri} is being put in place, or that was interrupted; `omnigraph backup` and "
                "`omnigraph restore` finish it"
            )
        mode = "ro"
    contract = open_for_writing(context) if mode == "rw" else open_for_reading(context)
    watch = SchemaWatch(context, contract)
    connection = Connection(context, watch, embedder, spark_options(spark), bases, guard)
    return Graph(Door(connection), mode=mode, actor=actor)


def _text(uri: str | os.PathLike[str]) -> str:
    if not isinstance(uri, str | os.PathLike):
        raise BadRequest(f"a graph lies at a path or a URI, which is a text, not at {uri!r}")
    return str(uri) if isinstance(uri, Path) else os.fspath(uri)


def durability_mode(asked: str | None) -> str:
    """The durability that a caller asked for, else the environment's, else `process`."""
    return asked or os.environ.get("OMNIGRAPH_DURABILITY") or PROCESS
