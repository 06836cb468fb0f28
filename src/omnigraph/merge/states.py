"""The states that a merge compares, read as far as cleanup and deleted branches have left them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import state_of
from omnigraph.commit.model import Commit, Identity, ManifestState, TableEntry
from omnigraph.errors import HistoricalVersionReclaimed
from omnigraph.storage.tables.lance_errors import Missing


@dataclass(frozen=True, slots=True)
class Sides:
    """The three states of a merge. `commit`: the id of the commit that is reverted or picked, for messages.

    `crossed`: the states of the other bases, each with the common ancestor of it and the base.
    """

    base: ManifestState
    ours: ManifestState
    theirs: ManifestState
    commit: str = ""
    crossed: tuple[tuple[ManifestState, ManifestState], ...] = ()


@dataclass(frozen=True, slots=True)
class Base:
    """The state that both sides are compared with. `reclaimed`: ids of better ancestors that are not readable."""

    commit: Commit
    state: ManifestState
    reclaimed: tuple[str, ...] = ()


def readable_base(context: CommitContext, candidates: Iterable[Commit], theirs: ManifestState) -> Base:
    """The first candidate whose state is readable, with every table that theirs has changed since. Raises if none is."""
    reclaimed: list[str] = []
    for commit in candidates:
        try:
            state = state_of(context.manifest, commit)
            require_tables(context, state, moved(state, theirs))
        except HistoricalVersionReclaimed:
            reclaimed.append(commit.id)
            continue
        return Base(commit, state, tuple(reclaimed))
    raise HistoricalVersionReclaimed(
        "no common ancestor of the two branches can be read any more: they were cleaned up or deleted with their "
        "branches; export one side and load it into the other",
        version=reclaimed[0] if reclaimed else "",
    )


def readable_pairs(
    context: CommitContext, pairs: Iterable[tuple[Commit, Commit]]
) -> Iterator[tuple[ManifestState, ManifestState]]:
    """The states of pairs of commits; left out if a state, or a table that differs between them, is not readable."""
    for pair in pairs:
        try:
            one, other = (state_of(context.manifest, commit) for commit in pair)
            for state in (one, other):
                require_tables(context, state, moved(one, other))
        except HistoricalVersionReclaimed:
            continue
        yield one, other


def require_tables(context: CommitContext, state: ManifestState, identities: Iterable[Identity]) -> None:
    """Raise unless these tables of a state can be opened."""
    for entry in (state.tables[identity] for identity in identities if identity in state.tables):
        try:
            context.tables.open(entry.location, entry.version)
        except Missing as error:
            raise HistoricalVersionReclaimed(
                f"version {entry.version} of {entry.key} at commit {state.head} has been cleaned up, or its branch was deleted",
                version=state.head,
            ) from error


def moved(before: ManifestState, after: ManifestState) -> Iterator[Identity]:
    """The identities of the tables that differ between two states."""
    for identity in before.tables.keys() | after.tables.keys():
        if not same_table(before.tables.get(identity), after.tables.get(identity)):
            yield identity


def same_table(one: TableEntry | None, other: TableEntry | None) -> bool:
    """Whether two entries publish the same version of the same line of a table."""
    if one is None or other is None:
        return one is other
    return (one.location, one.version) == (other.location, other.version)
