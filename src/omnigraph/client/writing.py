"""The verbs that write, as generators of requests; see `requests`. Each has an idempotency key, so that it may be sent again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack

from omnigraph.client.handle import CONDITIONAL, Handle, Target, condition_of, refuse_actor, storage_only
from omnigraph.client.reading import ROWS, deadline, schema_body, snapshot
from omnigraph.client.requests import Ask, Request, keyed, post, segment
from omnigraph.client.sending import sent_params
from omnigraph.client.uploads import upload_of
from omnigraph.client.values import RemoteSnapshot
from omnigraph.commit.messages import checked_message
from omnigraph.commit.model import MAIN
from omnigraph.errors import BadRequest, Conflict, OmnigraphError
from omnigraph.evolution.apply import Applied
from omnigraph.evolution.backfill import GivenBackfill
from omnigraph.graph.loading import Engine, Mode, edges_again_text
from omnigraph.graph.merging import Asked, takes_decisions
from omnigraph.graph.sources import read_source, require_named
from omnigraph.graph.writing import Given, given_mutations
from omnigraph.load.inputs import title_of
from omnigraph.load.model import LoadResult, Progress
from omnigraph.merge.resolutions import listed_resolutions
from omnigraph.merge.result import MergeResult
from omnigraph.mutation.execute import MutationResult
from omnigraph.query.limits import Cancel
from omnigraph.query.result import Result
from omnigraph.wire import results
from omnigraph.wire.arrow import ARROW_STREAM, result_of
from omnigraph.wire.failures import LIBRARY

# --- mutations --------------------------------------------------------------------------------------------------------


def mutate(
    handle: Handle,
    source: str | Path,
    name: str | None = None,
    params: Mapping[str, object] | None = None,
    *,
    branch: str | None = None,
    actor: str | None = None,
    if_commit: str | None = None,
    idempotency_key: str | None = None,
    message: str | None = None,
) -> Ask[MutationResult]:
    """Run a mutation: one commit for all of its statements, or none when nothing changed."""
    refuse_actor(actor)
    place = handle._named(branch)
    body = _mutation(source, name, params) | {"branch": place, "message": message}
    return results.mutation_of((yield from handle._changed("/mutate", body, idempotency_key, if_commit, place)))


def mutate_many(
    handle: Handle,
    mutations: Sequence[Given],
    *,
    branch: str | None = None,
    actor: str | None = None,
    message: str | None = None,
    if_commit: str | None = None,
    idempotency_key: str | None = None,
) -> Ask[MutationResult]:
    """Run mutations in order as one commit; a failure of one undoes all."""
    refuse_actor(actor)
    place = handle._named(branch)
    body = {
        "mutations": [_mutation(*mutation) for mutation in given_mutations(mutations)],
        "branch": place,
        "message": message,
        "if_commit": handle._required(if_commit, place),
    }
    told = yield from handle._written("/transactions", body, idempotency_key)
    return results.mutation_of(told[LIBRARY])


def _mutation(source: str | Path, name: str | None, params: Mapping[str, object] | None) -> dict[str, Any]:
    text, _ = read_source(source)
    require_named(name, params)
    return {"query": text, "name": name, "params": sent_params(text, name, params)}


def invoke(
    handle: Handle,
    name: str,
    params: Mapping[str, object] | None = None,
    *,
    branch: str | None = None,
    snapshot: RemoteSnapshot | str | int | None = None,
    expect_mutation: bool | None = None,
    if_commit: str | None = None,
    idempotency_key: str | None = None,
    message: str | None = None,
    timeout: float | None = None,
) -> Ask[Result | MutationResult]:
    """Call a stored query of the server by its name: the rows of a read, or what a mutation did.

    `expect_mutation`: refuse a query of the other kind. `if_commit`, `idempotency_key`, `message`: as in `mutate`. `timeout`:
    seconds that a read may take.
    """
    body = {
        "params": sent_params(None, None, params),
        "expect_mutation": expect_mutation,
        "message": message,
    }
    path = f"/queries/{segment(name)}"
    condition = {}
    if if_commit is not None:
        path, condition = path + CONDITIONAL, condition_of(if_commit)
    headers = keyed(idempotency_key, ROWS | deadline(timeout) | condition)
    answer = yield post(path, body | handle._place(branch, snapshot), headers)
    if answer.headers["content-type"].startswith(ARROW_STREAM):
        return result_of(answer.content)
    return results.mutation_of(handle._told(answer)[LIBRARY])


# --- loads ------------------------------------------------------------------------------------------------------------


def load(
    handle: Handle,
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
) -> Ask[LoadResult]:
    """Load rows: all of them in one commit, or none. They are sent as a stream of JSON lines.

    `progress` is not called: the server tells when all is done.
    """
    refuse_actor(actor)
    storage_only(
        "served load",
        engine=(engine, "auto"),
        ignore_extra=(ignore_extra, False),
        delimiter=(delimiter, None),
        idempotency=(idempotency, "contents"),
    )
    upload = upload_of(data, format, type, edge, mapping)
    if upload.rows == 0 and mode == "overwrite":
        raise BadRequest(
            f"a served load sends rows, and an empty table has none that says what it replaces; delete all of {type or edge} "
            "with a mutation, or load it on the storage (og.open, --store)"
        )
    params = {
        "branch": handle._named(branch),
        "from": base,
        "mode": mode,
        "if_commit": if_commit,
        "message": checked_message(message),
        "title": title_of(data),
    }
    try:
        answer = yield Request(
            "POST",
            "/load/ndjson",
            params={name: value for name, value in params.items() if value is not None}
            | ({"lenient": "true"} if lenient else {}),
            content=upload.content,
            headers=keyed(idempotency_key, {"Content-Type": "application/x-ndjson"}),
            safe=upload.repeatable,
        )
    except OmnigraphError as error:
        raise upload.placed(error) from None
    loaded = results.load_of(handle._told(answer)[LIBRARY])
    if loaded.report.edges_again:
        warnings.warn(edges_again_text(loaded.report.edges_again), stacklevel=2)
    return loaded


def ingest(
    handle: Handle, /, data: Any, branch: str, base: str | None = None, mode: Mode = "merge", **options: Any
) -> Ask[LoadResult]:
    """Load into a branch that is created from `base` when there is none of its name. Takes the options of `load`."""
    return (yield from load(handle, data, mode, branch=branch, base=handle._named(base), **options))


# --- branches and merges ----------------------------------------------------------------------------------------------


def create_branch(
    handle: Handle,
    name: str,
    base: str | None = None,
    *,
    actor: str | None = None,
    idempotency_key: str | None = None,
) -> Ask[RemoteSnapshot]:
    """Make a branch at the current head of `base` (this handle's branch unless given)."""
    refuse_actor(actor)
    yield from handle._written("/branches", {"name": name, "from": handle._named(base)}, idempotency_key)
    return (yield from snapshot(handle, name))


def delete_branch(
    handle: Handle, name: str, *, actor: str | None = None, idempotency_key: str | None = None
) -> Ask[None]:
    """Remove a branch that no other branch depends on."""
    refuse_actor(actor)
    if name == handle.branch and name != MAIN:
        raise Conflict(f"cannot delete branch '{name}': it is the currently active branch of this handle")
    yield from handle._deleted(f"/branches/{segment(name)}", idempotency_key)


@takes_decisions
def merge(
    handle: Handle, source: str, into: str | None = None, *, delete_branch: bool = False, **asked: Unpack[Asked]
) -> Ask[MergeResult]:
    """Merge a branch into another one (this handle's branch unless given): one commit with two parents."""
    body = {"source": source, "target": handle._named(into), "delete_branch": delete_branch}
    return (yield from _merged(handle, "/branches/merge", body, asked))


@takes_decisions
def rebase(handle: Handle, branch: str, onto: str = MAIN, **asked: Unpack[Asked]) -> Ask[MergeResult]:
    """Bring a branch up to the newest state of another one, with the branch's own change on top."""
    return (yield from _merged(handle, "/branches/rebase", {"branch": branch, "onto": onto}, asked))


@takes_decisions
def revert(handle: Handle, commit: str, branch: str | None = None, **asked: Unpack[Asked]) -> Ask[MergeResult]:
    """Publish the inverse of a commit on a branch."""
    return (yield from _merged(handle, "/revert", {"commit": commit, "branch": handle._named(branch)}, asked))


@takes_decisions
def cherry_pick(handle: Handle, commit: str, onto: str | None = None, **asked: Unpack[Asked]) -> Ask[MergeResult]:
    """Apply to a branch what one commit changed against its first parent."""
    return (yield from _merged(handle, "/cherry-pick", {"commit": commit, "branch": handle._named(onto)}, asked))


def _merged(handle: Handle, path: str, body: dict[str, Any], asked: Asked) -> Ask[MergeResult]:
    refuse_actor(asked.get("actor"))
    storage_only("served merge", engine=(asked.get("engine", "auto"), "auto"))
    sent = ("dry_run", "strategy", "property_level", "images")
    options: dict[str, Any] = {name: asked[name] for name in sent if asked.get(name) is not None}  # type: ignore[literal-required]
    if asked.get("resolutions") is not None:
        options["resolutions"] = listed_resolutions(asked["resolutions"])
    wanted = asked.get("schema")
    if wanted is not None:
        options["schema"] = read_source(wanted, ".pg")[0]
    sent_body = body | {"options": options or None, "message": asked.get("message")}
    told = yield from handle._written(path, sent_body, asked.get("idempotency_key"))
    return results.merge_of(told[LIBRARY])


# --- tags and schema --------------------------------------------------------------------------------------------------


def tag(
    handle: Handle,
    name: str,
    commit: Target = None,
    *,
    actor: str | None = None,
    idempotency_key: str | None = None,
) -> Ask[str]:
    """Name a commit, the head of this handle's branch unless given; returns its id."""
    refuse_actor(actor)
    body = {"name": name, "commit": handle._target(commit) or handle.branch}
    told = yield from handle._written("/tags", body, idempotency_key)
    return str(told["graph_commit_id"])


def delete_tag(handle: Handle, name: str, *, actor: str | None = None, idempotency_key: str | None = None) -> Ask[None]:
    """Forget a tag; the commit stays."""
    refuse_actor(actor)
    yield from handle._deleted(f"/tags/{segment(name)}", idempotency_key)


def apply_schema(
    handle: Handle,
    schema: str | Path,
    *,
    branch: str | None = None,
    allow_data_loss: bool = False,
    backfill: GivenBackfill = None,
    actor: str | None = None,
    message: str | None = None,
    idempotency_key: str | None = None,
) -> Ask[Applied]:
    """Make a schema that of a branch, in one commit; none when it is already. `backfill`: for what rows do not have."""
    refuse_actor(actor)
    body = schema_body(schema, allow_data_loss, backfill) | {"message": message}
    told = yield from handle._written("/schema/apply", body, idempotency_key, params={"branch": handle._named(branch)})
    return results.applied_of(told, told[LIBRARY]["commit"])


class PendingTransaction:
    """Mutations that become one commit. They are sent together at the end, so their results are known then."""

    def __init__(self, handle: Handle, branch: str, options: dict[str, Any]) -> None:
        self._handle = handle
        self._options = options
        self._mutations: list[Given] = []
        self._over = ""
        #: What it did, once it is committed.
        self.result: MutationResult | None = None
        self.branch = branch

    def mutate(self, source: str | Path, name: str | None = None, params: Mapping[str, object] | None = None) -> None:
        """Add a mutation. Whether it can be carried out is told by the commit."""
        self._require_open()
        self._mutations.append((source, name, params))

    def query(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Result:
        """Refused: nothing of a served transaction is there to be read before its commit."""
        raise BadRequest(
            "a served transaction is carried out at its commit, so it can not be read before; query the graph before or after "
            "it, or open the graph with og.open"
        )

    def rollback(self) -> None:
        """Forget all that was asked; nothing of it is in the graph."""
        self._require_open()
        self._over = "it was rolled back"

    def _commit(self) -> Ask[MutationResult]:
        self._require_open()
        self._over = "its commit failed"
        self.result = yield from mutate_many(self._handle, self._mutations, branch=self.branch, **self._options)
        self._over = "it is committed"
        return self.result

    def _ends_well(self, error: BaseException | None) -> bool:
        """Whether the end of a block is to commit; a block that raises undoes what was asked."""
        if error is not None and not self._over:
            self._over = f"it was undone by an error: {getattr(error, 'message', error)}"
        return not self._over

    def _require_open(self) -> None:
        if self._over:
            raise BadRequest(f"this transaction is over: {self._over}; begin another one")
