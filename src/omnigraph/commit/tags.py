"""Tags: names of commits, kept in main's manifest whatever branch a commit was made on. Cleanup keeps what is tagged."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN


def tagged_commits(context: CommitContext) -> Mapping[str, str]:
    """The tagged commits by tag name, in name order."""
    return dict(sorted(context.manifest.load(MAIN).tags.items()))
