"""A request counts once: what identifies it, an earlier answer to it, and the commit it made.

Receipts of commits are rows that are published with them; calls without a commit have theirs in `receipts`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import orjson

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import Commit, Lineage, ManifestState, is_text
from omnigraph.commit.publisher import commit_from
from omnigraph.commit.rows import Receipt
from omnigraph.errors import BadRequest, OmnigraphError

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Once:
    """A call that counts once: its idempotency key, and a digest of what it asks for."""

    key: str
    request: str

    @property
    def digest(self) -> str:
        """The key in a form that can be part of a path."""
        return hashlib.sha256(self.key.encode()).hexdigest()


def once(key: str | None, verb: str, **asked: object) -> Once | None:
    """A call under an idempotency key; None without one."""
    if key is None:
        return None
    refuse_no_text(key)
    return Once(key, request_of(verb, **asked))


def request_of(verb: str, **asked: object) -> str:
    """A digest of a verb and its arguments: the same for a repeat of the call."""
    told = orjson.dumps([verb, asked], default=str, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(told).hexdigest()


def earlier_receipt(context: CommitContext, branch: str, key: str | None) -> Receipt | None:
    """What a branch knows under an idempotency key; None without one."""
    if key is None:
        return None
    refuse_no_text(key)
    return context.manifest.receipt(branch, key)


def refuse_no_text(key: object) -> None:
    """Raise for an idempotency key that is no text."""
    if not is_text(key):
        raise BadRequest(f"an idempotency key is a text, not {key!r}")


def refuse_other_request(known: Receipt, fingerprint: str, branch: str, key: str | None) -> None:
    """Raise when the key was used for something else."""
    if known.request != fingerprint:
        raise BadRequest(f"idempotency key '{key}' was used for another request on branch '{branch}'")


def published_once(
    context: CommitContext,
    branch: str,
    asked: Once | None,
    work: Callable[[], Done],
    repeated: Callable[[Receipt], Done],
    is_made: Callable[[Done], bool] = lambda done: True,
) -> Done:
    """Work that publishes its receipt with what it does, done once; `repeated` makes the answer of an earlier call again.

    Work that fails, or that makes nothing (`is_made`), may have lost to a call with the same key; then the answer is that one's.
    """
    if asked is None:
        return work()
    known = _known(context, branch, asked)
    if known is not None:
        return repeated(known)
    try:
        done = work()
    except OmnigraphError:
        known = _known(context, branch, asked)
        if known is None:
            raise
        return repeated(known)
    known = None if is_made(done) else _known(context, branch, asked)
    return done if known is None else repeated(known)


def _known(context: CommitContext, branch: str, asked: Once) -> Receipt | None:
    known = context.manifest.receipt(branch, asked.key)
    if known is not None:
        refuse_other_request(known, asked.request, branch, asked.key)
    return known


def commit_made(context: CommitContext, after: ManifestState, branch: str, commit_id: str) -> Commit | None:
    """The commit of a write; the publisher has just made it, unless recovery has finished the write instead."""
    if after.newest is not None and after.newest.id == commit_id:
        return after.newest
    return context.manifest.find_commit(branch, commit_id)


def commits_made(
    context: CommitContext, before: ManifestState, after: ManifestState, branch: str, lineages: Sequence[Lineage]
) -> Sequence[Commit | None]:
    """The commits of one publish in their order. `before`: the branch when they were prepared; `after`: after the publish."""
    newest = after.newest
    # Others may have published between the two, on tables that these commits are not about.
    if newest is None or newest.id != lineages[-1].id or after.fence != before.fence + 1:
        return [context.manifest.find_commit(branch, lineage.id) for lineage in lineages]
    parents = [before.head or None, *(lineage.id for lineage in lineages[:-1])]
    return [
        commit_from(lineage, branch, parent, newest.manifest_version)
        for parent, lineage in zip(parents, lineages, strict=True)
    ]
