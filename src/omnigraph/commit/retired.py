"""Histories of deleted branches: which tables made up the state of each commit that was made on them.

Deleting a branch deletes its manifest. The states of its commits are written down before, in one file per incarnation:
`__retired/<name, percent-encoded>/<id of its first commit>.json`. The file names tables by paths relative to the graph, so it
stays valid when the graph moves. It is read only when such a commit is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

import orjson

from omnigraph.commit.format import CURRENT
from omnigraph.commit.model import Commit, Identity, ManifestState, TableEntry, Touched
from omnigraph.commit.rows import decode_touched
from omnigraph.errors import StorageError
from omnigraph.storage.digests import digest_of, forget, note
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.root import Root
from omnigraph.storage.tables.location import Location

RETIRED = "__retired"
FORMAT = 1
_REMEMBERED = 64


@dataclass(frozen=True)
class Publish:
    """One publish on a deleted branch: the state it led to, and the ids of its commits in order.

    `touched`: what each commit of a group did to the tables, as from `Manifest.members_of`; empty for a single commit.
    """

    state: ManifestState
    commits: tuple[str, ...]
    touched: tuple[Mapping[str, Touched], ...] = ()


@dataclass(frozen=True)
class RetiredLine:
    """The publishes of one incarnation of a deleted branch, oldest first."""

    branch: str
    incarnation: str
    publishes: tuple[Publish, ...]
    #: The path of its file; it stays the same when publishes are left out.
    path: str

    @property
    def locations(self) -> set[Location]:
        """All locations of tables that its states name."""
        return {entry.location for publish in self.publishes for entry in publish.state.tables.values()}


def line_path(branch: str, first_commit: str) -> str:
    return f"{_folder(branch)}/{first_commit}.json"


def _folder(branch: str) -> str:
    return f"{RETIRED}/{quote(branch, safe='')}"


# --- writing ----------------------------------------------------------------------------------------------------------


def write_line(store: ObjectStore, root: Root, line: RetiredLine) -> None:
    """Write the history, replacing an earlier file of the same incarnation."""
    data = _encode(line)
    note(root, {line.path: digest_of(data)})
    store.put(line.path, data)


def remove_line(store: ObjectStore, root: Root, line: RetiredLine) -> None:
    """Remove the history: none of its commits can be read any more."""
    forget(root, line.path)
    store.delete(line.path)


def _encode(line: RetiredLine) -> bytes:
    publishes = []
    before: Mapping[Identity, TableEntry] = {}
    for publish in line.publishes:
        state = publish.state
        told: dict[str, Any] = {
            "commits": list(publish.commits),
            "manifest_version": state.commit_version,
            "fence": state.fence,
            "schema": state.schema_hash,
            # Store only the differences to the previous state, so that the file grows with the changes, not with the types.
            "tables": [_table(entry) for key, entry in state.tables.items() if before.get(key) != entry],
            "dropped": [list(key) for key in before if key not in state.tables],
        }
        if publish.touched:
            told["touched"] = [
                {identity: {"ids": list(one.ids), "rows": one.rows} for identity, one in member.items()}
                for member in publish.touched
            ]
        publishes.append(told)
        before = state.tables
    value = {"format": FORMAT, "branch": line.branch, "incarnation": line.incarnation, "publishes": publishes}
    return orjson.dumps(value)


def _table(entry: TableEntry) -> dict[str, Any]:
    return {
        "key": entry.key,
        "path": entry.path,
        "identity": list(entry.identity),
        "version": entry.version,
        "branch": entry.branch,
        "rows": entry.row_count,
    }


# --- reading ----------------------------------------------------------------------------------------------------------


def find_publish(store: ObjectStore, commit: Commit) -> Publish | None:
    """The publish of a commit on a deleted branch; None when it is no longer known."""
    paths = sorted(info.path for info in store.list(_folder(commit.branch)))
    # Incarnations of a name follow each other: look first at the last one that began before the commit; clocks may disagree.
    earlier = [path for path in paths if path <= line_path(commit.branch, commit.id)]
    for path in [*earlier[::-1], *paths[len(earlier) :]]:
        line = read_line(store, path)
        for publish in () if line is None else line.publishes:
            if commit.id in publish.commits:
                return publish
    return None


def retired_lines(store: ObjectStore) -> Iterator[RetiredLine]:
    """All histories of deleted branches."""
    for info in store.list(RETIRED):
        line = read_line(store, info.path)
        if line is not None:
            yield line


def read_line(store: ObjectStore, path: str) -> RetiredLine | None:
    """The history at a path; None when it was removed meanwhile."""
    data = store.get_or_none(path)
    return None if data is None else _decode(path, data)


@lru_cache(maxsize=_REMEMBERED)
def _decode(path: str, data: bytes) -> RetiredLine:
    try:
        value = orjson.loads(data)
        branch, incarnation = str(value["branch"]), str(value["incarnation"])
        if value["format"] != FORMAT or unquote(path.split("/")[1]) != branch:
            raise ValueError(f"format {value['format']} of branch {branch}")
        publishes = tuple(_publishes(branch, incarnation, value["publishes"]))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StorageError(
            f"the history of a deleted branch in {path} is unreadable ({type(error).__name__}); restore it from a backup, or "
            "remove it to give those states up",
            kind="permanent",
            path=path,
        ) from None
    return RetiredLine(branch, incarnation, publishes, path)


def _publishes(branch: str, incarnation: str, values: Iterable[dict[str, Any]]) -> Iterator[Publish]:
    tables: dict[Identity, TableEntry] = {}
    for value in values:
        tables = dict(tables)
        for identity in value["dropped"]:
            tables.pop((identity[0], identity[1]), None)
        for told in value["tables"]:
            key = (int(told["identity"][0]), int(told["identity"][1]))
            tables[key] = TableEntry(told["key"], told["path"], key, told["version"], told["branch"], told["rows"])
        state = ManifestState(
            branch=branch,
            version=value["manifest_version"],
            commit_version=value["manifest_version"],
            incarnation=incarnation,
            stamp=CURRENT,
            fence=value["fence"],
            head=value["commits"][-1],
            tables=tables,
            tags={},
            schema_hash=value["schema"],
            retired=True,
        )
        touched = tuple(decode_touched({"touched": member}) for member in value.get("touched", ()))
        yield Publish(state, tuple(value["commits"]), touched)


def without(line: RetiredLine, kept: Sequence[Publish]) -> RetiredLine:
    """The same history with only these publishes."""
    return replace(line, publishes=tuple(kept))
