"""Graph branches: each is a Lance branch of `__manifest`, whose ref file is the authority for its existence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote

import orjson

from omnigraph.commit.model import MAIN
from omnigraph.errors import BadRequest, StorageError
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables.location import branch_path

MANIFEST_PATH = "__manifest"
_REFS = f"{MANIFEST_PATH}/_refs/branches"

#: An internal ref of schema changes; never a user's branch.
SCHEMA_APPLY_LOCK = "__schema_apply_lock__"
RESERVED = frozenset({MAIN, SCHEMA_APPLY_LOCK})

#: In bytes of a ref's file name as Lance writes it on a disk, where it escapes the escapes.
LONGEST_NAME = 200
#: Every read of a branch looks at its ref, which is nearly always the same.
_REMEMBERED = 1024
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)*")


@dataclass(frozen=True, slots=True)
class BranchRef:
    """What Lance records about a branch. `incarnation` differs each time a name is created anew."""

    name: str
    parent: str
    parent_version: int
    incarnation: str
    created_at: int


def read_ref(store: ObjectStore, name: str) -> BranchRef | None:
    """The ref of a branch, or None when there is no such branch."""
    if not is_name(name):
        return None
    data = store.get_or_none(_ref_path(name))
    return None if data is None else _decode(name, data)


def list_refs(store: ObjectStore) -> list[BranchRef]:
    """The refs of all branches but main, by name. A ref that vanishes while it is listed is left out."""
    names = list_names(store)
    found = zip(names, store.get_many([_ref_path(name) for name in names]), strict=True)
    return [_decode(name, data) for name, data in found if data is not None]


def has_more_branches_than(store: ObjectStore, count: int) -> bool:
    """Whether there are more than so many branches beside main, also where there are far more."""
    return store.has_more_than(count, _REFS)


def list_names(store: ObjectStore) -> list[str]:
    """The names of all branches but main, in order: one listing, whatever the number of branches; no ref is read."""
    names = (unquote(info.path.removeprefix(f"{_REFS}/").removesuffix(".json")) for info in store.list(_REFS))
    return sorted(name for name in names if name != SCHEMA_APPLY_LOCK and is_name(name))


@lru_cache(maxsize=_REMEMBERED)
def _ref_path(name: str) -> str:
    # Lance writes one file per branch and escapes the slash.
    return f"{_REFS}/{quote(name, safe='')}.json"


@lru_cache(maxsize=_REMEMBERED)
def _decode(name: str, data: bytes) -> BranchRef:
    try:
        value = orjson.loads(data)
        return BranchRef(
            name=name,
            parent=value["parentBranch"] or MAIN,
            parent_version=value["parentVersion"],
            incarnation=value["identifier"]["version_mapping"][-1][1],
            created_at=value["createAt"],
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, IndexError) as error:
        raise StorageError(
            f"the ref of branch '{name}' is unreadable ({type(error).__name__}); restore {_ref_path(name)} from a backup, or "
            "remove it to give the branch up",
            kind="permanent",
            path=_ref_path(name),
        ) from None


def is_name(name: str) -> bool:
    """Whether a text can be the name of a branch: one that Lance and a file system can hold."""
    return isinstance(name, str) and _can_be_held(name)


@lru_cache(maxsize=_REMEMBERED)
def _can_be_held(name: str) -> bool:
    return (
        _NAME.fullmatch(name) is not None
        and ".." not in name
        and not name.endswith(".lock")
        and all(part != "." for part in name.split("/"))
        and len(quote(quote(name, safe=""), safe="")) <= LONGEST_NAME
    )


def check_name(name: str) -> None:
    """Refuse a branch name that is reserved or that can not be stored."""
    if not is_name(name):
        raise BadRequest(
            f"cannot create branch '{name}': a name is made of letters, digits, `.`, `-` and `_`, in parts separated "
            f"by `/`, has no `..`, does not end in `.lock` and has at most {LONGEST_NAME} bytes (a `/`, and each byte of "
            "a letter beyond ASCII, counts as five)"
        )
    if name in RESERVED:
        raise BadRequest(f"cannot create branch '{name}': the name is reserved")


def overlapping(store: ObjectStore, name: str) -> str | None:
    """The live branch of this name, or else one that is a path-prefix of it or lies below it. Main is always live.

    Other branches are not looked at: Lance makes the files of a branch before its ref and removes them after it, and those
    of a branch below another lie in its folder.
    """
    parts = name.split("/")
    above = ["/".join(parts[:length]) for length in range(1, len(parts))]
    found = next((other for other in above if other == MAIN or read_ref(store, other) is not None), None)
    if found is not None or not store.has_more_than(0, branch_path(MANIFEST_PATH, name)):
        return found
    names = list_names(store)
    return name if name in names else next((other for other in names if other.startswith(f"{name}/")), None)


def nested_below(store: ObjectStore, name: str) -> str | None:
    """A branch whose files lie inside those of this one; a graph that only OmniGraph writes has none."""
    folder = branch_path(MANIFEST_PATH, name)
    paths = (info.path.removeprefix(f"{folder}/").split("/") for info in store.list(folder))
    if not any("_versions" in parts[1:] for parts in paths):
        return None
    return next((other for other in list_names(store) if other.startswith(f"{name}/")), None)
