"""OmniGraph: a typed property graph over Lance tables, with branches, commits and merges.

Names are loaded when they are first used, so that `import omnigraph` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph import errors
    from omnigraph.changes.model import Change, ChangeSet
    from omnigraph.client.aio import AsyncGraph, connect_async
    from omnigraph.client.graph import AnyGraph, RemoteGraph, connect
    from omnigraph.commit.model import Commit
    from omnigraph.errors import OmnigraphError
    from omnigraph.graph.entry import init, open
    from omnigraph.graph.graph import Graph
    from omnigraph.graph.snapshot import Snapshot
    from omnigraph.graph.transactions import Transaction
    from omnigraph.graph.verification import verify
    from omnigraph.load.model import LoadResult
    from omnigraph.maintenance.verify_report import Damage, Restored, VerifyReport
    from omnigraph.merge.result import MergeResult
    from omnigraph.mutation.execute import MutationResult
    from omnigraph.query.limits import Cancel

__version__ = "0.1.0"

__all__ = [
    "AnyGraph",
    "AsyncGraph",
    "Cancel",
    "Change",
    "ChangeSet",
    "Commit",
    "Damage",
    "Graph",
    "LoadResult",
    "MergeResult",
    "MutationResult",
    "OmnigraphError",
    "RemoteGraph",
    "Restored",
    "Snapshot",
    "Transaction",
    "VerifyReport",
    "__version__",
    "connect",
    "connect_async",
    "errors",
    "init",
    "open",
    "verify",
]

_HOMES = {
    "AnyGraph": "omnigraph.client.graph",
    "AsyncGraph": "omnigraph.client.aio",
    "Cancel": "omnigraph.query.limits",
    "Change": "omnigraph.changes.model",
    "ChangeSet": "omnigraph.changes.model",
    "Commit": "omnigraph.commit.model",
    "Damage": "omnigraph.maintenance.verify_report",
    "Graph": "omnigraph.graph.graph",
    "LoadResult": "omnigraph.load.model",
    "MergeResult": "omnigraph.merge.result",
    "MutationResult": "omnigraph.mutation.execute",
    "OmnigraphError": "omnigraph.errors",
    "RemoteGraph": "omnigraph.client.graph",
    "Restored": "omnigraph.maintenance.verify_report",
    "Snapshot": "omnigraph.graph.snapshot",
    "Transaction": "omnigraph.graph.transactions",
    "VerifyReport": "omnigraph.maintenance.verify_report",
    "connect": "omnigraph.client.graph",
    "connect_async": "omnigraph.client.aio",
    "init": "omnigraph.graph.entry",
    "open": "omnigraph.graph.entry",
    "verify": "omnigraph.graph.verification",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("omnigraph.errors")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
