"""The verbs of export: a branch or a snapshot as files, or as a stream."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Literal

from omnigraph.errors import BadRequest
from omnigraph.graph.handle import NOW, Handle, SchemaOf
from omnigraph.graph.snapshot import Reference
from omnigraph.shown import with_bar

if TYPE_CHECKING:
    from omnigraph.export.plan import ExportTable
    from omnigraph.export.run import ExportProgress


class Exporting(Handle):
    """Everything a graph holds at one snapshot, written down so that it loads back to an equal graph."""

    @with_bar("export")
    def export(
        self,
        out: str | os.PathLike[str],
        *,
        branch: str | None = None,
        snapshot: Reference = None,
        types: Collection[str] | None = None,
        format: Literal["jsonl", "parquet", "arrow", "csv"] = "jsonl",
        files: Literal["one", "many"] = "one",
        engine: Literal["auto", "local", "spark"] = "auto",
        schema: SchemaOf = NOW,
        progress: ExportProgress | None = None,
    ) -> int:
        """Write the nodes and edges of a snapshot; returns how many there are.

        `out`: a path, an `s3://` URI, or `-` for standard output. JSON lines are one file, ordered by type and id; Parquet,
        Arrow and CSV, and `files="many"`, make a folder with a folder for each type, which `load` takes as it is. Nothing is
        there until all of it is.
        `schema="then"`: a snapshot as it was called when it was written, with types that are gone since.
        `progress`: called with how many entities are written, and how many there are.
        """
        from omnigraph.export.run import export_file, export_folder, export_stream, refuse_export
        from omnigraph.storage.outputs import Output

        refuse_export(format, files, engine)
        place = os.fspath(out)
        in_folder = format != "jsonl" or files == "many"
        if place == "-" and in_folder:
            raise BadRequest("standard output takes one stream of JSON lines; name a folder for tables or many files")
        tables = self._exported(branch, snapshot, types, schema)
        if place == "-":
            count = 0
            for piece in export_stream(tables):
                sys.stdout.buffer.write(piece)
                count += piece.count(b"\n")
            sys.stdout.buffer.flush()
            return count
        output = Output.parse(place, self._context.root.storage_options)
        if not in_folder:
            return export_file(tables, output, engine, self._spark, progress)
        return export_folder(tables, output, format, files, engine, self._spark, progress)

    def export_chunks(
        self,
        *,
        branch: str | None = None,
        snapshot: Reference = None,
        types: Collection[str] | None = None,
        schema: SchemaOf = NOW,
    ) -> Iterator[bytes]:
        """The lines of an export as chunks of at most 65,536 bytes, each valid UTF-8."""
        from omnigraph.export.run import export_stream
        from omnigraph.export.sink import chunked

        return chunked(export_stream(self._exported(branch, snapshot, types, schema)))

    def _exported(
        self, branch: str | None, snapshot: Reference, types: Collection[str] | None, schema: SchemaOf
    ) -> list[ExportTable]:
        from omnigraph.export.plan import plan_export

        contract, shown = self._view(branch, snapshot, schema)
        named = [types] if isinstance(types, str) else types
        return plan_export(shown, contract.catalog, self._context.root, named)
