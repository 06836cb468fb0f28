"""The verbs of bulk writing: load, and ingest, which creates its branch together with the load."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.commit.branch_refs import read_ref
from omnigraph.commit.model import MAIN
from omnigraph.commit.updates import SchemaIs
from omnigraph.errors import BadRequest
from omnigraph.graph.contract import Contract
from omnigraph.graph.handle import Handle
from omnigraph.policy.actions import BRANCH_CREATE, CHANGE, Need
from omnigraph.shown import with_bar

if TYPE_CHECKING:
    from omnigraph.load.model import LoadResult, Progress

Mode = Literal["append", "merge", "update", "overwrite"]
Engine = Literal["auto", "local", "spark"]


def edges_again_text(types: Sequence[str]) -> str:
    """The warning when edges without a key seem to have been loaded twice."""
    named = ", ".join(types)
    return (
        f"edges of {named} were there already between the same nodes and are there twice now: without a key every load adds new "
        "ones; declare `@key(src, dst)` to have one edge for each pair of nodes"
    )


class Loading(Handle):
    """Many rows as one commit."""

    @with_bar("load")
    def load(
        self,
        data: Any,
        mode: Mode = "append",
        *,
        branch: str | None = None,
        base: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        engine: Engine = "auto",
        lenient: bool = False,
        format: Literal["jsonl", "parquet", "csv", "arrow"] | None = None,
        type: str | None = None,
        edge: str | None = None,
        mapping: Mapping[str, str] | None = None,
        ignore_extra: bool = False,
        delimiter: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        idempotency: Literal["contents", "key"] = "contents",
        progress: Callable[[Progress], None] | None = None,
    ) -> LoadResult:
        """Load rows: all of them in one commit, or none.

        `data`: a path, several, a glob, a folder, an `s3://` URI, `-` for standard input, bytes, an iterable of dicts, or a
        table with `type` or `edge`. `mode`: `append` refuses ids that exist; `merge` replaces their whole rows, so that what a
        row does not give becomes null or its default; `update` keeps what is not given of rows that exist; `overwrite` replaces
        every type that the input mentions. `base`: create the branch from this one when there is none of its name, together with
        the load. `message`: kept with the commit; what was loaded unless given.
        `lenient`: a stream of JSON values in which what is unknown or wrong is passed over where that is possible.
        `mapping`: for tables, from their columns to `id`, `from`, `to` and properties; `ignore_extra`: other columns are left
        out instead of refused. `delimiter`: of CSV files; found out unless given. `idempotency_key`: a repeat of the call
        with the same contents returns the first answer and writes nothing; with other contents it is refused. With
        `idempotency="key"` the key alone counts, and contents are not compared. `progress`: called on this thread; an error it
        raises ends the load with nothing written, and is only logged once the commit is made.
        """
        from omnigraph.load.engine import choose
        from omnigraph.load.execute import Load
        from omnigraph.load.inputs import Given, look_at, title_of
        from omnigraph.load.model import Request
        from omnigraph.load.scratch import Scratch
        from omnigraph.load.tabular import Columns

        self._allow_write(actor, *self._needs_of_load(self._named(branch), base))
        scratch = Scratch(self._context.root, self._named(branch))
        try:
            given = Given(
                data,
                format,
                type,
                edge,
                Columns(mapping or {}, ignore_extra),
                lenient,
                self._context.root.storage_options or None,
                delimiter,
                self._spark.ship_package,
            )

            def write(contract: Contract, schema: SchemaIs) -> LoadResult:
                request = Request(
                    catalog=contract.catalog,
                    schema=schema,
                    branch=self._named(branch),
                    mode=mode,
                    embedder=self._embedder,
                    base=base,
                    actor=actor or self.actor,
                    message=message,
                    title=title_of(data),
                    if_commit=if_commit,
                    idempotency_key=idempotency_key,
                    idempotency=idempotency,
                    lenient=lenient,
                    external_blobs=self._external_blobs,
                    progress=progress,
                )
                return Load(self._context, request, inputs, choose(engine, inputs.size, self._spark), scratch).run()

            name = self._named(branch)
            inputs = look_at(given, scratch, self._captured(name, base)[1][0].catalog)
            result = self._under_schema(name, write, base)
        finally:
            scratch.close()
        if result.report.edges_again:
            warnings.warn(edges_again_text(result.report.edges_again), stacklevel=2)
        return result

    def load_frames(
        self,
        frames: Mapping[str, Any],
        mode: Mode = "append",
        **options: Any,
    ) -> LoadResult:
        """Load tables of several types as one commit, or none of them: `{"Person": people, "Knows": pairs}`.

        A table is a data frame of Spark, pandas or polars, or an Arrow table; `node:T` and `edge:T` name types as well. Takes the
        options of `load`.
        """
        from omnigraph.load.inputs import Frames

        if not isinstance(frames, Mapping) or not frames or not all(isinstance(name, str) for name in frames):
            raise BadRequest("give the frames by type, such as {'Person': people, 'Knows': pairs}")
        for word in ("type", "edge", "format", "lenient", "delimiter"):
            if options.get(word):
                raise BadRequest(f"`{word}` is for `load`: the frames say themselves what they are")
        return self.load(Frames(frames), mode, **options)

    def ingest(
        self,
        data: Any,
        branch: str,
        base: str | None = None,
        mode: Mode = "merge",
        **options: Any,
    ) -> LoadResult:
        """Load into a branch that is created from `base` when there is none of its name, only if the load succeeds.

        Takes the options of `load`.
        """
        return self.load(data, mode, branch=branch, base=self._named(base), **options)

    def _needs_of_load(self, branch: str, base: str | None) -> list[Need]:
        """The permissions that a load needs: to change its branch and, if the load creates it, to create it."""
        needs = [Need(CHANGE, branch)]
        # The branch is looked up only when there is a policy to check.
        if base is not None and branch != MAIN and self._is_guarded and read_ref(self._context.store, branch) is None:
            needs.insert(0, Need(BRANCH_CREATE, base, branch))
        return needs
