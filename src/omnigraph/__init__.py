"""OmniGraph: a typed property graph over Lance tables, with branches, commits and merges.

Names are loaded when they are first used, so that `import omnigraph` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph import errors
    from omnigraph.changes.baseline import Baseline
    from omnigraph.changes.commits import CommitChanges
    from omnigraph.changes.comparison import Comparison
    from omnigraph.changes.feed import FeedPage
    from omnigraph.changes.model import Change, ChangeSet
    from omnigraph.client.aio import AsyncGraph, connect_async
    from omnigraph.client.graph import AnyGraph, RemoteGraph, connect
    from omnigraph.commit.audit import Recovery
    from omnigraph.commit.model import Commit
    from omnigraph.drawing.picture import Picture
    from omnigraph.errors import OmnigraphError
    from omnigraph.evolution.apply import Applied
    from omnigraph.evolution.plan import Plan
    from omnigraph.graph.algorithms import Algorithms
    from omnigraph.graph.backups import restore
    from omnigraph.graph.blobs import BlobValue
    from omnigraph.graph.branching import BranchState
    from omnigraph.graph.entry import init, open
    from omnigraph.graph.exploring import Neighbours
    from omnigraph.graph.graph import Graph
    from omnigraph.graph.snapshot import Snapshot
    from omnigraph.graph.upgrading import upgrade
    from omnigraph.graph.verification import verify
    from omnigraph.graph.writing import Transaction
    from omnigraph.integrations.from_networkx import from_networkx
    from omnigraph.integrations.neo4j.run import import_neo4j, propose_neo4j
    from omnigraph.load.model import LoadResult
    from omnigraph.maintenance.backup import BackupReport
    from omnigraph.maintenance.cleanup import CleanupReport
    from omnigraph.maintenance.indexes import IndexReport
    from omnigraph.maintenance.optimize import OptimizeReport
    from omnigraph.maintenance.repair import RepairReport
    from omnigraph.maintenance.stats import GraphStats
    from omnigraph.maintenance.verify_report import Damage, Restored, VerifyReport
    from omnigraph.merge.result import Conflict, MergeResult
    from omnigraph.mutation.execute import MutationResult
    from omnigraph.query.limits import Cancel
    from omnigraph.query.result import Explanation, Result

__version__ = "0.1.0"

__all__ = [
    "Algorithms",
    "AnyGraph",
    "Applied",
    "AsyncGraph",
    "BackupReport",
    "Baseline",
    "BlobValue",
    "BranchState",
    "Cancel",
    "Change",
    "ChangeSet",
    "CleanupReport",
    "Commit",
    "CommitChanges",
    "Comparison",
    "Conflict",
    "Damage",
    "Explanation",
    "FeedPage",
    "Graph",
    "GraphStats",
    "IndexReport",
    "LoadResult",
    "MergeResult",
    "MutationResult",
    "Neighbours",
    "OmnigraphError",
    "OptimizeReport",
    "Picture",
    "Plan",
    "Recovery",
    "RemoteGraph",
    "RepairReport",
    "Restored",
    "Result",
    "Snapshot",
    "Transaction",
    "VerifyReport",
    "__version__",
    "connect",
    "connect_async",
    "errors",
    "from_networkx",
    "import_neo4j",
    "init",
    "open",
    "propose_neo4j",
    "restore",
    "upgrade",
    "verify",
]

_HOMES = {
    "Algorithms": "omnigraph.graph.algorithms",
    "AnyGraph": "omnigraph.client.graph",
    "Applied": "omnigraph.evolution.apply",
    "AsyncGraph": "omnigraph.client.aio",
    "BackupReport": "omnigraph.maintenance.backup",
    "Baseline": "omnigraph.changes.baseline",
    "BlobValue": "omnigraph.graph.blobs",
    "BranchState": "omnigraph.graph.branching",
    "Cancel": "omnigraph.query.limits",
    "Change": "omnigraph.changes.model",
    "ChangeSet": "omnigraph.changes.model",
    "CleanupReport": "omnigraph.maintenance.cleanup",
    "Commit": "omnigraph.commit.model",
    "CommitChanges": "omnigraph.changes.commits",
    "Comparison": "omnigraph.changes.comparison",
    "Conflict": "omnigraph.merge.result",
    "Damage": "omnigraph.maintenance.verify_report",
    "Explanation": "omnigraph.query.result",
    "FeedPage": "omnigraph.changes.feed",
    "Graph": "omnigraph.graph.graph",
    "GraphStats": "omnigraph.maintenance.stats",
    "IndexReport": "omnigraph.maintenance.indexes",
    "LoadResult": "omnigraph.load.model",
    "MergeResult": "omnigraph.merge.result",
    "MutationResult": "omnigraph.mutation.execute",
    "Neighbours": "omnigraph.graph.exploring",
    "OmnigraphError": "omnigraph.errors",
    "OptimizeReport": "omnigraph.maintenance.optimize",
    "Picture": "omnigraph.drawing.picture",
    "Plan": "omnigraph.evolution.plan",
    "Recovery": "omnigraph.commit.audit",
    "RemoteGraph": "omnigraph.client.graph",
    "RepairReport": "omnigraph.maintenance.repair",
    "Restored": "omnigraph.maintenance.verify_report",
    "Result": "omnigraph.query.result",
    "Snapshot": "omnigraph.graph.snapshot",
    "Transaction": "omnigraph.graph.writing",
    "VerifyReport": "omnigraph.maintenance.verify_report",
    "connect": "omnigraph.client.graph",
    "connect_async": "omnigraph.client.aio",
    "from_networkx": "omnigraph.integrations.from_networkx",
    "import_neo4j": "omnigraph.integrations.neo4j.run",
    "init": "omnigraph.graph.entry",
    "open": "omnigraph.graph.entry",
    "propose_neo4j": "omnigraph.integrations.neo4j.run",
    "restore": "omnigraph.graph.backups",
    "upgrade": "omnigraph.graph.upgrading",
    "verify": "omnigraph.graph.verification",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("omnigraph.errors")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext omnigraph`: the cell magic `%%gq` and progress bars."""
    import_module("omnigraph.notebook.magic").load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Called by `%unload_ext omnigraph`."""
    import_module("omnigraph.notebook.magic").unload(shell)


def __dir__() -> list[str]:
    return sorted(__all__)
