"""Taking a branch away: its ref and manifest files, and the table forks that only it used."""

from __future__ import annotations

import logging
from collections.abc import Collection

from omnigraph.commit.branch_refs import remove_ref_file
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, ManifestState
from omnigraph.errors import OmnigraphError
from omnigraph.storage.tables.commit import delete_lance_branch, drop_fork
from omnigraph.storage.tables.location import Location

_log = logging.getLogger(__name__)


def remove_ref(context: CommitContext, name: str) -> None:
    """Remove the ref of a branch, which is the authority for its existence, and its manifest files."""
    if name.startswith(f"{MAIN}/"):
        # Such a name is refused today. Lance tidies up the folder above a branch, and that of `main` is the manifest itself.
        remove_ref_file(context.store, name)
    delete_lance_branch(context.manifest.warm(MAIN).dataset, name)
    context.manifest.forget(name)


def drop_own_forks(context: CommitContext, state: ManifestState, inherited: Collection[Location]) -> None:
    """The forks a branch made, best effort; those it inherited belong to a branch above it. Cleanup is the backstop."""
    for entry in state.tables.values():
        if entry.branch is None or entry.location in inherited:
            continue
        try:
            drop_fork(context.tables, entry.location)
        except OmnigraphError as error:
            _log.warning("fork %s of %s is left for cleanup: %s", entry.branch, entry.key, error)
