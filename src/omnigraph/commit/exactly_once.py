"""Exactly-once requests: how a request is identified, and how the earlier answer or commit of a repeated request is found.

Receipts of commits are manifest rows, published with the commit; receipts of calls without a commit are in `receipts`.
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
    """A request to be carried out once: its idempotency key, and a digest of its arguments."""

    key: str
    request: str

    @property
    def digest(self) -> str:
        """The hash of the key, usable in a path."""
        return hashlib.sha256(self.key.encode()).hexdigest()


def once(key: str | None, verb: str, **asked: object) -> Once | None:
    """The request under an idempotency key; None without a key."""
    if key is None:
        return None
    refuse_no_text(key)
    return Once(key, request_of(verb, **asked))


def request_of(verb: str, **asked: object) -> str:
    """A digest of a verb and its arguments, equal for a repeated call."""
    told = orjson.dumps([verb, asked], default=str, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(told).hexdigest()


def earlier_receipt(context: CommitContext, branch: str, key: str | None) -> Receipt | None:
    """The receipt that a branch has under an idempotency key; None without a key or a receipt."""
    if key is None:
        return None
    refuse_no_text(key)
    return context.manifest.receipt(branch, key)


def refuse_no_text(key: object) -> None:
    """Raise if an idempotency key is not a text."""
    if not is_text(key):
        raise BadRequest(f"an idempotency key is a text, not {key!r}")


def refuse_other_request(known: Receipt, fingerprint: str, branch: str, key: str | None) -> None:
    """Raise if the key was used for a different request."""
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
    """Carry out work that publishes its receipt, once; `repeated` rebuilds the answer of an earlier call from its receipt.

    Work that fails, or makes nothing (`is_made`), may have lost to a call with the same key; then that call's answer counts.
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
    """The commit of a write, else None: just made by the publisher, or published by recovery and looked up."""
    if after.newest is not None and after.newest.id == commit_id:
        return after.newest
    return context.manifest.find_commit(branch, commit_id)


def commits_made(
    context: CommitContext, before: ManifestState, after: ManifestState, branch: str, lineages: Sequence[Lineage]
) -> Sequence[Commit | None]:
    """The commits of one publish, in order. `before`: the branch when they were prepared; `after`: after the publish."""
    newest = after.newest
    # Another publish may have come between the two states, on tables that these commits do not touch.
    if newest is None or newest.id != lineages[-1].id or after.fence != before.fence + 1:
        return [context.manifest.find_commit(branch, lineage.id) for lineage in lineages]
    parents = [before.head or None, *(lineage.id for lineage in lineages[:-1])]
    return [
        commit_from(lineage, branch, parent, newest.manifest_version)
        for parent, lineage in zip(parents, lineages, strict=True)
    ]
