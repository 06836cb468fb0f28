"""`import_neo4j`: propose a schema, create the graph, write what the files hold as lines, load them in one commit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from omnigraph.errors import AlreadyInitialized, BadRequest, LoadRejected
from omnigraph.graph.entry import init
from omnigraph.graph.entry import open as open_graph
from omnigraph.graph.graph import Graph
from omnigraph.graph.lifecycle import discard
from omnigraph.graph.sources import read_source
from omnigraph.integrations.neo4j.admin_csv import Reading, find_admin_files
from omnigraph.integrations.neo4j.apoc import ApocDump, ApocFile
from omnigraph.integrations.neo4j.model import ForeignNode, Problems, Source
from omnigraph.integrations.neo4j.plan import Options, Plan, make_plan
from omnigraph.integrations.neo4j.survey import survey
from omnigraph.integrations.proposal import Note
from omnigraph.load.parsed import rejection
from omnigraph.shown import Shown
from omnigraph.storage.files import find_files
from omnigraph.storage.scratch import in_scratch, make_scratch

if TYPE_CHECKING:
    from omnigraph.graph.loading import Engine
    from omnigraph.load.model import LoadResult, Progress
    from omnigraph.spark.options import SparkArgument

Format = Literal["neo4j-dump", "csv-admin"]
FORMATS: tuple[Format, ...] = ("neo4j-dump", "csv-admin")
_ENDINGS = tuple(f".{name}{end}" for name in ("jsonl", "ndjson", "json") for end in ("", ".gz", ".zst"))


@dataclass(frozen=True)
class Proposed(Shown):
    """A schema for an export, and everything that will not be in the graph as it is in the export."""

    schema: str
    notes: tuple[Note, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"schema": self.schema, "notes": [note.to_dict() for note in self.notes]}


@dataclass(frozen=True)
class Imported(Shown):
    """A graph that was made of an export: its schema, the notes, and the report of the one load."""

    graph: Graph
    schema: str
    notes: tuple[Note, ...]
    load: LoadResult

    def to_dict(self) -> dict[str, Any]:
        loaded = {"nodes_loaded": self.load.nodes_loaded, "edges_loaded": self.load.edges_loaded}
        return {"uri": self.graph.uri, "schema": self.schema, "notes": [n.to_dict() for n in self.notes], **loaded}


def propose_neo4j(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, format: Format | None = None, **reading: Any
) -> Proposed:
    """The schema that `import_neo4j` would make of an export; nothing is written. Takes its options of reading."""
    with _planned(source, format, **reading) as (_, plan):
        return Proposed(plan.schema, tuple(plan.notes))


def import_neo4j(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    uri: str | os.PathLike[str],
    *,
    format: Format | None = None,
    schema: str | Path | None = None,
    actor: str | None = None,
    engine: Engine = "auto",
    storage_options: Mapping[str, str] | None = None,
    spark: SparkArgument | None = None,
    progress: Callable[[Progress], None] | None = None,
    **reading: Any,
) -> Imported:
    """Make a graph at `uri` of an export of Neo4j: a proposed schema, and everything in one commit, or nothing at all.

    `source`: files of `apoc.export.json.all` (`format="neo4j-dump"`), or a folder of CSV files for `neo4j-admin`
    (`format="csv-admin"`, which a folder with CSV files means by itself). `schema`: `.pg` text or a file to use instead of the
    proposed schema; it has the names of `propose_neo4j`. Reading: `dates` (True: texts that all are ISO dates become dates),
    `ignore_labels` (labels that name no type), `delimiter` and `array_delimiter` of CSV files.
    """
    given = None if schema is None else read_source(schema, ".pg")[0]
    with _planned(source, format, schema=given, **reading) as (export, plan), _scratch() as folder:
        # What is wrong with the files is found before there is a graph.
        files = _written(export, plan, folder)
        graph, made = _fresh(uri, plan.schema, actor, storage_options, spark)
        try:
            result = _load(graph, files, engine, progress)
        except BaseException:
            if made:
                discard(graph._context)
                graph.close()
            raise
    return Imported(graph, plan.schema, tuple(plan.notes), result)


@contextmanager
def _scratch() -> Iterator[Path]:
    made = make_scratch("import")
    try:
        yield made.path
    finally:
        made.remove()


@contextmanager
def _planned(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    format: Format | None,
    *,
    schema: str | None = None,
    dates: bool = True,
    ignore_labels: Sequence[str] = (),
    delimiter: str | None = None,
    array_delimiter: str = ";",
) -> Iterator[tuple[Source, Plan]]:
    """An export that was read once, and the plan for it."""
    paths = [os.fspath(source)] if isinstance(source, str | os.PathLike) else [os.fspath(path) for path in source]
    if not paths:
        raise BadRequest(
            "no file to import; give the files that apoc.export.json.all wrote, or a folder for neo4j-admin"
        )
    format = format or ("csv-admin" if _holds_csv(paths[0]) else "neo4j-dump")
    if format not in FORMATS:
        raise BadRequest(f"unknown format {format!r}; the formats are {', '.join(FORMATS)}")
    if len(array_delimiter) != 1:
        raise BadRequest(f"an array delimiter is one character, not {array_delimiter!r}")
    with _scratch() as folder:
        export: Source
        if format == "csv-admin":
            if len(paths) != 1:
                raise BadRequest(f"one folder of CSV files is imported at a time, not {len(paths)}")
            export = find_admin_files(paths[0], Reading(delimiter, array_delimiter))
        else:
            found = [file for path in paths for file in find_files(path, _ENDINGS)]
            export = ApocDump([ApocFile(file) for file in found])
        plan = make_plan(export, survey(export), Options(dates, tuple(ignore_labels)), schema, folder)
        try:
            yield export, plan
        finally:
            if plan.lookup is not None:
                plan.lookup.close()


def _holds_csv(path: str) -> bool:
    return Path(path).is_dir() and any(Path(path).glob("*.csv*"))


def _fresh(
    uri: str | os.PathLike[str],
    schema: str,
    actor: str | None,
    storage_options: Mapping[str, str] | None,
    spark: SparkArgument | None,
) -> tuple[Graph, bool]:
    """A new graph, and whether it was made now: one that a dead import left empty, with the same schema, is taken too."""
    try:
        return init(uri, schema, actor=actor, storage_options=storage_options, spark=spark), True
    except AlreadyInitialized as error:
        try:
            graph = open_graph(uri, actor=actor, storage_options=storage_options, spark=spark)
        except Exception:
            raise error from None
        if len(graph.commits()) == 1 and graph.schema() == schema:
            return graph, False
        graph.close()
        raise AlreadyInitialized(
            f"{error.name} holds a graph already; an import makes a new one, so choose another place", name=error.name
        ) from None


def _load(
    graph: Graph, files: Mapping[str, str], engine: Engine, progress: Callable[[Progress], None] | None
) -> LoadResult:
    """Load the written files; problems are told with the names of the files they were made of."""
    try:
        return graph.load(list(files), "append", engine=engine, progress=progress)
    except LoadRejected as error:
        named = [(files.get(file, file), line, message) for file, line, message in error.errors]
        raise rejection(named, error.total) from None


def _written(export: Source, plan: Plan, folder: Path) -> dict[str, str]:
    """The export as files of lines that a load takes, with the names of the files they were made of.

    An entity is on the same line in both, so that problems are told with the line of the export.
    """
    files: dict[str, str] = {}
    problems = Problems()
    for number, file in enumerate(export.files):
        path = folder / f"{number}.jsonl"
        files[str(path)] = file.name
        with in_scratch(folder), path.open("wb", buffering=1 << 20) as lines:
            at = 1
            for entity in file.entities(problems):
                try:
                    row = plan.node_line(entity) if isinstance(entity, ForeignNode) else plan.edge_line(entity)
                    text = orjson.dumps(row)
                except (ValueError, TypeError, KeyError) as error:
                    problems.add(file.name, entity.line, str(error))
                    continue
                lines.write(b"\n" * (entity.line - at) + text + b"\n")
                at = entity.line + 1
    problems.refuse()
    return files
