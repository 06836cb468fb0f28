"""The actions of policies, and the permission (need) that a request requires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

READ, EXPORT, CHANGE = "read", "export", "change"
SCHEMA_APPLY, BRANCH_CREATE, BRANCH_DELETE, BRANCH_MERGE = (
    "schema_apply",
    "branch_create",
    "branch_delete",
    "branch_merge",
)
INVOKE_QUERY, ADMIN, GRAPH_LIST = "invoke_query", "admin", "graph_list"
CLUSTER_PLAN, CLUSTER_APPLY = "cluster_plan", "cluster_apply"

#: Actions whose rules may have a `branch_scope`, and actions whose rules may have a `target_branch_scope`.
BRANCH_SCOPED = frozenset({READ, EXPORT, CHANGE})
TARGET_SCOPED = frozenset({SCHEMA_APPLY, BRANCH_CREATE, BRANCH_DELETE, BRANCH_MERGE})
#: Actions on a graph, and actions on the server as a whole.
GRAPH_ACTIONS = BRANCH_SCOPED | TARGET_SCOPED | {INVOKE_QUERY, ADMIN}
SERVER_ACTIONS = frozenset({GRAPH_LIST, CLUSTER_PLAN, CLUSTER_APPLY})
ACTIONS = GRAPH_ACTIONS | SERVER_ACTIONS

#: The actions that a read-only server allows.
READING = frozenset({READ, EXPORT, INVOKE_QUERY, GRAPH_LIST, CLUSTER_PLAN})


@dataclass(frozen=True)
class Need:
    """One permission that a request needs: the action, the branch it is checked on, and the branch it is aimed at."""

    action: str
    branch: str | None = None
    target: str | None = None

    @property
    def words(self) -> str:
        """The text of the need in denials."""
        on = "" if self.branch is None else f" on branch '{self.branch}'"
        aim = "" if self.target is None else f" targeting branch '{self.target}'"
        return f"action '{self.action}'{on}{aim}"


class Guard(Protocol):
    """Decides about needs. `actor` is None when it is unknown."""

    def check(self, actor: str | None, need: Need) -> None:
        """Raise `Denied` unless the actor has the permission."""
