"""The actions that a policy knows, and one permission that a request needs."""

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

#: Actions whose rules may name a `branch_scope`, and those whose rules may name a `target_branch_scope`.
BRANCH_SCOPED = frozenset({READ, EXPORT, CHANGE})
TARGET_SCOPED = frozenset({SCHEMA_APPLY, BRANCH_CREATE, BRANCH_DELETE, BRANCH_MERGE})
#: Actions on a graph, and those on the server as a whole.
GRAPH_ACTIONS = BRANCH_SCOPED | TARGET_SCOPED | {INVOKE_QUERY, ADMIN}
SERVER_ACTIONS = frozenset({GRAPH_LIST, CLUSTER_PLAN, CLUSTER_APPLY})
ACTIONS = GRAPH_ACTIONS | SERVER_ACTIONS

#: What a server that only reads still does.
READING = frozenset({READ, EXPORT, INVOKE_QUERY, GRAPH_LIST, CLUSTER_PLAN})


@dataclass(frozen=True)
class Need:
    """One permission that a request needs: the action, the branch it is checked on, and the branch it is aimed at."""

    action: str
    branch: str | None = None
    target: str | None = None

    @property
    def words(self) -> str:
        """The need as denials name it."""
        on = "" if self.branch is None else f" on branch '{self.branch}'"
        aim = "" if self.target is None else f" targeting branch '{self.target}'"
        return f"action '{self.action}'{on}{aim}"


class Guard(Protocol):
    """Decides about needs. `actor` is None where nobody is known."""

    def check(self, actor: str | None, need: Need) -> None:
        """Return when the actor may do it; raise `Denied` otherwise."""
