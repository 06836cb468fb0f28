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
    from omnigraph.graph.backups import restore
    from omnigraph.graph.entry import init, open
    from omnigraph.graph.graph import Graph
    from omnigraph.graph.snapshot import Snapshot
    from omnigraph.graph.upgrading import upgrade
    from omnigraph.graph.verification import verify
    from omnigraph.graph.writing import Transaction
    from omnigraph.integrations.from_networkx import from_networkx
    from omnigraph.integrations.neo4j.run import import_neo4j, propose_neo4j
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
