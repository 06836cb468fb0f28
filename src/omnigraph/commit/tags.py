"""Tags: names of commits, stored in main's manifest, whatever branch a commit was made on. Cleanup keeps tagged commits.

A tag is published like any update but makes no commit: head and history stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from omnigraph.commit.branch_refs import LONGEST_NAME
from omnigraph.commit.context import CommitContext
from omnigraph.commit.exactly_once import Once, published_once
from omnigraph.commit.history import state_of
from omnigraph.commit.model import MAIN
from omnigraph.commit.publisher import compact_when_due, publish
from omnigraph.commit.recovery import heal
from omnigraph.commit.updates import DropTag, RecordReceipt, Requirement, SetTag, TagIs, Update
from omnigraph.errors import BadRequest, NotFound
from omnigraph.ids import is_ulid

_NAME = re.compile(r"[\w.-]+(/[\w.-]+)*")
_NUMBER = re.compile(r"-?[0-9]+")


def tagged_commits(context: CommitContext) -> Mapping[str, str]:
    """The tagged commits by tag name, in name order."""
    return dict(sorted(context.manifest.load(MAIN).tags.items()))


def set_tag(
    context: CommitContext, name: str, commit_id: str, actor: str | None = None, asked: Once | None = None
) -> str:
    """Tag a commit whose state is still readable; raises if the name is taken. Returns the id of the commit.

    `asked`: a repeated call sets nothing, and returns the commit that the first call tagged.
    """

    return published_once(
        context,
        MAIN,
        asked,
        lambda: _set_tag(context, name, commit_id, actor, asked),
        lambda known: known.commit_id,
    )


def _set_tag(context: CommitContext, name: str, commit_id: str, actor: str | None, asked: Once | None) -> str:
    _check_name(name)
    commit = context.manifest.commit_near(commit_id)
    # A tagged state must stay readable: it must be readable now, and its branch must not be deleted meanwhile.
    with context.locks.hold_all({MAIN, commit.branch}):
        state_of(context.manifest, commit)
        _publish(context, SetTag(name, commit_id, actor), TagIs(name, None), _receipt(asked, commit_id))
    return commit_id


def drop_tag(context: CommitContext, name: str, asked: Once | None = None) -> None:
    """Delete a tag; its commit stays until cleanup removes it. `asked`: a repeated call deletes no later tag of the name."""
    published_once(context, MAIN, asked, lambda: _drop_tag(context, name, asked), lambda known: None)


def _drop_tag(context: CommitContext, name: str, asked: Once | None) -> None:
    commit = tagged_commits(context).get(name)
    if commit is None:
        raise NotFound(f"tag '{name}' not found")
    with context.locks.hold(MAIN):
        _publish(context, DropTag(name), TagIs(name, commit), _receipt(asked, commit))


def _receipt(asked: Once | None, commit_id: str) -> list[Update]:
    """The receipt to publish together with a tag change, as a list; empty without an idempotency key."""
    return [] if asked is None else [RecordReceipt(asked.key, asked.request, {}, commit_id)]


def _publish(context: CommitContext, update: Update, requirement: Requirement, receipt: list[Update]) -> None:
    """Publish a tag change under the lock of main, which the caller holds."""
    heal(context, holding={MAIN})
    publish(context, MAIN, [update, *receipt], [requirement], None)
    compact_when_due(context.manifest, MAIN)


def _check_name(name: str) -> None:
    """Raise if a name could be mistaken for a commit id, a version or main, or has other characters than allowed."""
    if (
        not isinstance(name, str)
        or _NAME.fullmatch(name) is None
        or ".." in name
        or _NUMBER.fullmatch(name) is not None
        or is_ulid(name)
        or name == MAIN
        or len(name.encode()) > LONGEST_NAME
    ):
        raise BadRequest(
            f"'{name}' can not be a tag: a name is made of letters, digits, `.`, `-` and `_`, in parts separated by `/`, "
            f"has no `..` and at most {LONGEST_NAME} bytes, and is neither a number, a commit id nor `{MAIN}`"
        )
