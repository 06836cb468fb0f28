"""Receipts of calls that make no commit: making and deleting branches, settings, maintenance. They lie in `__receipts`.

The receipt of a commit is a manifest row, see `exactly_once`. A call without a commit has two files instead.
`__receipts/<SHA-256 of the key>.json` is the receipt, written when the call is done. `__receipts/begun/<subject>.json` says what
is about to be done to a subject (a branch, the settings, the work under one key). It is written under the lock of the subject,
directly before the one step that takes effect, and is removed once the receipt exists. The next caller that takes the lock
settles such a file: every caller does so before a change, so the state of the subject tells whether the step was taken. A
process may die anywhere: a repeated call neither does the work twice nor takes another caller's work for its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import orjson

from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.commit.exactly_once import Once
from omnigraph.commit.model import MAIN
from omnigraph.errors import BadRequest, Conflict, ManifestContention, OmnigraphError, StorageError
from omnigraph.ids import new_ulid, now_micros
from omnigraph.storage.locks import lock_path
from omnigraph.storage.objects import ObjectStore

FOLDER = "__receipts"
FORMAT = 1
#: Cleanup removes older receipts: no request is repeated after so long.
KEPT_FOR = timedelta(days=7)

failpoints.declare("receipt.begun", "receipt.before_kept", "receipt.kept")

_log = logging.getLogger(__name__)

Told = Mapping[str, Any]
Report = TypeVar("Report")


def _path(asked: Once) -> str:
    return f"{FOLDER}/{asked.digest}.json"


def _lock(asked: Once) -> str:
    """The lock for work that belongs to no single branch: one of 256, with names that no branch can have."""
    return f"~receipts {asked.digest[:2]}"


def _subject(asked: Once) -> str:
    """The subject under which the work of a key is noted."""
    return f"~key {asked.digest}"


def answered_once(context: CommitContext, asked: Once | None, work: Callable[[], Told]) -> Told:
    """The answer of an earlier call under the same key, else the answer of `work`, which keeps its own receipt.

    If `work` fails because another process has done it meanwhile, that answer is returned.
    """
    if asked is None:
        return work()
    known = find_receipt(context.store, asked)
    if known is not None:
        return known
    try:
        return work()
    except OmnigraphError:
        known = find_receipt(context.store, asked)
        if known is None:
            raise
        return known


@contextmanager
def alone_with_key(context: CommitContext, asked: Once) -> Iterator[None]:
    """Allow one call at a time under a key; `Conflict` when the running call takes too long."""
    with ExitStack() as held:
        try:
            held.enter_context(context.locks.hold(_lock(asked)))
        except ManifestContention:
            raise Conflict(
                f"a call with idempotency key '{asked.key}' is under way and takes long; repeat it later to learn how it ended"
            ) from None
        yield


def find_receipt(store: ObjectStore, asked: Once) -> Told | None:
    """The stored answer under a key, else None; raises if the key was used for a different request."""
    data = store.get_or_none(_path(asked))
    if data is None:
        return None
    kept = _decoded(_path(asked), data)
    if kept["request"] != asked.request:
        raise BadRequest(f"idempotency key '{asked.key}' was used for another request")
    answer: Told = kept["answer"]
    return answer


def keep_receipt(context: CommitContext, asked: Once, answer: Told) -> None:
    """Store an answer. An existing receipt stays: two different requests that misuse one key concurrently are both done."""
    failpoints.hit("receipt.before_kept")
    told = {"format": FORMAT, "request": asked.request, "answer": answer, "at": now_micros()}
    try:
        context.store.create(_path(asked), orjson.dumps(told))
    except StorageError as error:
        # The store may have done the work before it failed, so look for the file.
        if error.kind not in ("precondition", "unknown") or not context.store.exists(_path(asked)):
            raise
    context.make_durable(_path(asked))
    failpoints.hit("receipt.kept")


# --- steps that take effect ---------------------------------------------------------------------------------------------


@contextmanager
def one_step(context: CommitContext, subject: str, asked: Once | None, answer: Told, plan: Told) -> Iterator[None]:
    """Take the one step of a call, under the lock of its subject, and keep the receipt.

    `plan`: what `settle_begun` needs to tell whether the step was taken. If the step fails, its note stays: the store may
    have done the step before it failed.
    """
    if asked is None:
        yield
        return
    note_step(context, subject, asked, answer, plan)
    yield
    end_step(context, subject, asked, answer)


def note_step(context: CommitContext, subject: str, asked: Once, answer: Told, plan: Told) -> None:
    """Write the note about a step on a subject, before the step is taken."""
    path = _begun_path(subject)
    note = {"format": FORMAT, "key": asked.key, "request": asked.request, "answer": answer, "plan": plan}
    context.store.put(path, orjson.dumps(note))
    context.make_durable(path)
    failpoints.hit("receipt.begun")


def end_step(context: CommitContext, subject: str, asked: Once, answer: Told) -> None:
    """Store the receipt of a step that was taken, and remove its note."""
    keep_receipt(context, asked, answer)
    _forget(context, _begun_path(subject))


def settle_begun(context: CommitContext, subject: str, was_taken: Callable[[Told], bool]) -> None:
    """Settle the step that a dead or failed call has noted for a subject; called under its lock before any change.

    `was_taken`: tells from the state of the subject whether the step with this plan was taken.
    """
    path = _begun_path(subject)
    data = context.store.get_or_none(path)
    if data is None:
        return
    note = _decoded(path, data)
    if was_taken(note["plan"]):
        keep_receipt(context, Once(note["key"], note["request"]), note["answer"])
    _forget(context, path)


def worked_once(
    context: CommitContext, asked: Once, work: Callable[[str], Told], was_made: Callable[[str], bool]
) -> Told:
    """The answer of work that may make a commit, and whose answer is known only afterwards.

    `work` is called with the id for the commit it may make; its answer has that id under `commit`, or None if it made none.
    `was_made`: whether a commit with this id exists. A call that died after its commit is carried out again, which finds
    nothing left to do; the answer then names the earlier commit.
    """
    path = _begun_path(_subject(asked))
    with alone_with_key(context, asked):
        known = find_receipt(context.store, asked)
        if known is not None:
            return known
        data = context.store.get_or_none(path)
        begun = None if data is None else _decoded(path, data)
        made: str | None = None
        if begun is not None and begun["request"] == asked.request and was_made(begun["plan"]["commit"]):
            made = begun["plan"]["commit"]
        commit = new_ulid()
        if made is None:
            note_step(context, _subject(asked), asked, {}, {"commit": commit})
        answer = work(commit)
        if made is not None and answer.get("commit") is None:
            answer = {**answer, "commit": made}
        end_step(context, _subject(asked), asked, answer)
        return answer


def _forget(context: CommitContext, path: str) -> None:
    try:
        context.store.delete(path)
    except StorageError as error:
        # The step is taken and its receipt is stored; the next call finds both.
        _log.warning("%s is left for the next call: %s", path, error)


# --- expiry -------------------------------------------------------------------------------------------------------------


def expired_receipts(store: ObjectStore) -> list[str]:
    """The paths of receipts and notes older than `KEPT_FOR`."""
    latest = datetime.now(UTC) - KEPT_FOR
    return [info.path for info in store.list(FOLDER) if info.modified < latest]


def _begun_path(subject: str) -> str:
    return f"{FOLDER}/begun/{lock_path(subject).partition('/')[2]}.json"


def _decoded(path: str, data: bytes) -> dict[str, Any]:
    try:
        told: dict[str, Any] = orjson.loads(data)
        if told["format"] == FORMAT and isinstance(told["request"], str) and isinstance(told["answer"], dict):
            return told
    except (orjson.JSONDecodeError, KeyError, TypeError):
        pass
    raise StorageError(
        f"{path} is no receipt that can be read; remove it, and look at the graph before the call is repeated",
        kind="permanent",
        path=path,
    )


def reported_once(
    context: CommitContext,
    asked: Once | None,
    kind: type[Report],
    work: Callable[[str | None], Report],
    branch: str = MAIN,
) -> Report:
    """The report of maintenance: of an earlier call with the same key, else of `work`. `kind`: the dataclass of the report.

    `work` is called with the id of the commit that it may make on `branch`; None: it chooses an id itself.
    """
    if asked is None:
        return work(None)
    import msgspec

    def run(commit_id: str) -> Told:
        told: Told = msgspec.to_builtins(work(commit_id))
        return told

    def was_made(commit_id: str) -> bool:
        return context.manifest.find_commit(branch, commit_id) is not None

    return msgspec.convert(answered_once(context, asked, lambda: worked_once(context, asked, run, was_made)), kind)
