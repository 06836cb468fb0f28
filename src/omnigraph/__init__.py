"""OmniGraph: a typed property graph over Lance tables, with branches, commits and merges.

Names are loaded when they are first used, so that `import omnigraph` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph import errors
    from omnigraph.changes.model import Change, ChangeSet
    from omnigraph.commit.model import Commit
    from omnigraph.errors import OmnigraphError
    from omnigraph.graph.entry import init, open
    from omnigraph.graph.graph import Graph
    from omnigraph.graph.snapshot import Snapshot
    from omnigraph.load.model import LoadResult
    from omnigraph.merge.result import MergeResult
    from omnigraph.mutation.execute import MutationResult

__version__ = "0.1.0"

__all__ = [
    "Change",
    "ChangeSet",
    "Commit",
    "Graph",
    "LoadResult",
    "MergeResult",
    "MutationResult",
    "OmnigraphError",
    "Snapshot",
    "__version__",
    "errors",
    "init",
    "open",
]

_HOMES = {
    "Change": "omnigraph.changes.model",
    "ChangeSet": "omnigraph.changes.model",
    "Commit": "omnigraph.commit.model",
    "Graph": "omnigraph.graph.graph",
    "LoadResult": "omnigraph.load.model",
    "MergeResult": "omnigraph.merge.result",
    "MutationResult": "omnigraph.mutation.execute",
    "OmnigraphError": "omnigraph.errors",
    "Snapshot": "omnigraph.graph.snapshot",
    "init": "omnigraph.graph.entry",
    "open": "omnigraph.graph.entry",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("omnigraph.errors")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
