"""The report of `verify`: damages, what they affect, and what can be done about each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, TypeVar

from omnigraph.errors import OmnigraphError
from omnigraph.shown import Shown

_Result = TypeVar("_Result")

#: How many commits of a damage are listed by id, and how many entities or rows as examples.
LISTED = 20


class DamageKind(StrEnum):
    """The kind of a damage."""

    #: A file that is needed, or was recorded, does not exist.
    MISSING = "missing"
    #: A file has another size than was written.
    SIZE = "size"
    #: The bytes of a file differ from what was written.
    CONTENT = "content"
    #: A file has the right name and size, as far as known, but can not be read.
    UNREADABLE = "unreadable"
    #: Two readable pieces of data contradict each other.
    DISAGREES = "disagrees"
    #: An index refers to a column that its table does not have.
    DEAD_INDEX = "dead_index"
    #: Rows break a rule of the schema.
    RULE = "rule"
    #: The head of a table is not its pin, and no sidecar explains it.
    DRIFT = "drift"
    #: Lines of the digest log are damaged; the files they described may be undamaged.
    DIGEST_LOG = "digest_log"


@dataclass(frozen=True, slots=True)
class Damage:
    """One damage. `path`: the file, or the table if no single file is meant, below the graph root.

    `branches` and `tags`: those whose current state is affected. `commits`: retained commits whose state is affected, at most
    20 of `commit_count`. `rows`: how many rows of a state are affected, None if unknown; `entities`: some of their ids.
    """

    path: str
    kind: DamageKind
    message: str
    remedy: str
    type_key: str | None = None
    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    commit_count: int = 0
    rows: int | None = None
    entities: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return {**asdict(self), "kind": self.kind.value}


@dataclass(frozen=True, slots=True)
class Restored:
    """What `repair` did to a table of a branch: the version whose content was restored, or the index that was dropped.

    `lost_rows`: how many rows fewer the table has; None when the damaged state could not be counted. `lost_commits`: the
    commits whose changes to this table are lost. `removed_edges`: how many edges were removed because a node is gone.
    """

    type_key: str
    branch: str
    action: str
    commit: str
    version: int
    lost_rows: int | None = None
    lost_commits: tuple[str, ...] = ()
    removed_edges: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class VerifyReport(Shown):
    """What `verify` examined and found. `ok`: nothing is damaged.

    `unrecorded`: how many needed files have no recorded digest, so that only their structure was checked.
    `recorded`: how many of them were added to the log now. `repaired`: what `repair` did; `repairable`: what it would do
    (with an empty `commit`).
    """

    deep: bool
    branches: int
    tags: int
    commits: int
    files: int
    bytes: int
    unrecorded: int
    damages: tuple[Damage, ...]
    notes: tuple[str, ...] = ()
    recorded: int = 0
    repaired: tuple[Restored, ...] = ()
    repairable: tuple[Restored, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damages

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return {
            "ok": self.ok,
            "deep": self.deep,
            "branches": self.branches,
            "tags": self.tags,
            "commits": self.commits,
            "files": self.files,
            "bytes": self.bytes,
            "unrecorded": self.unrecorded,
            "recorded": self.recorded,
            "damages": [damage.to_dict() for damage in self.damages],
            "notes": list(self.notes),
            "repaired": [restored.to_dict() for restored in self.repaired],
            "repairable": [restored.to_dict() for restored in self.repairable],
        }


def attempted(action: Callable[[], _Result]) -> _Result | str:
    """The result of reading data that may be damaged, or a line of text that says why it can not be read.

    Damaged data makes decoders raise anything; Lance also panics, which is not an `Exception`. None of it may end the check.
    """
    try:
        return action()
    except OmnigraphError as error:
        return error.message
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        first = (str(error).splitlines() or [""])[0][:300]
        return f"{type(error).__name__}: {first}"
