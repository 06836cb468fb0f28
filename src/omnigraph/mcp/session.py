"""The session of a tool call: the graph, the actor, the permissions, and the size limit of answers.
A `Guard` in front of the policy confines a session: every tool names its needs, and the guard checks them before the work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omnigraph.commit.branch_refs import check_name
from omnigraph.commit.model import MAIN
from omnigraph.errors import AlreadyExists, BadRequest, Denied
from omnigraph.ids import new_ulid
from omnigraph.policy.actions import BRANCH_CREATE, BRANCH_DELETE, BRANCH_MERGE, CHANGE, READING, Guard, Need
from omnigraph.query.limits import Cancel

if TYPE_CHECKING:
    from omnigraph.client.graph import AnyGraph
    from omnigraph.mcp.stored import Stored

#: The default size limit of an answer in bytes, and the bounds of this limit.
ANSWER_BYTES = 32 * 1024
LEAST_ANSWER_BYTES, MOST_ANSWER_BYTES = 2 * 1024, 4 * 1024 * 1024
#: The instructions that every agent gets when it connects.
INSTRUCTIONS = """\
OmniGraph is a typed property graph with branches, commits and merges.
Begin with describe_type (all types, then one of them) and find (entities by words or meaning). entity_get, neighbours and \
paths look around without a query language; query runs .gq queries: read omnigraph://best-practices/queries before, and \
check a text with lint.
Write on a branch: branches_create, mutate or load, diff, merge_preview. A merge into main is for whoever has the right.
Errors say what to do in `next`. A cut answer has `truncated` with the arguments that give the rest.
"""


def check_confinement(branch: str) -> None:
    """Raise BadRequest for a branch to which a session can not be confined."""
    if branch == MAIN:
        raise BadRequest(
            "a session that writes to main only is not confined: name a branch of the agent's own, such as agent/x"
        )
    check_name(branch)


@dataclass(frozen=True)
class Confined:
    """Allows a session to read, and to write to one branch (`branch`) or not at all (`read_only`); then `behind` decides."""

    branch: str | None = None
    read_only: bool = False
    behind: Guard | None = None

    def check(self, actor: str | None, need: Need) -> None:
        if need.action not in READING:
            self._check_write(actor, need)
        if self.behind is not None:
            self.behind.check(actor, need)

    def _check_write(self, actor: str | None, need: Need) -> None:
        if self.read_only:
            raise Denied(f"{need.words} is not possible: this session is read-only", action=need.action, actor=actor)
        if self.branch is None:
            return
        written = {CHANGE: need.branch}.get(need.action, need.target)
        if written != self.branch or need.action not in (CHANGE, BRANCH_CREATE, BRANCH_DELETE, BRANCH_MERGE):
            raise Denied(
                f"{need.words} is not possible: this session writes to branch '{self.branch}' only; leave the branch out, and "
                f"ask somebody with the right to merge '{self.branch}'",
                action=need.action,
                actor=actor,
            )


@dataclass
class Session:
    """One conversation with an agent, or one request of it."""

    graph: AnyGraph
    #: Checks the needs of tools: the confinement of the session, then the policy.
    guard: Guard
    #: The actor; None when it is unknown, or known only to the server of a served graph.
    actor: str | None = None
    #: Whether `actor` is passed to each write; a served graph takes it from the token instead.
    names_actor: bool = True
    #: The only branch that the session may write to; None for any.
    branch: str | None = None
    read_only: bool = False
    answer_bytes: int = ANSWER_BYTES
    stored: Callable[[], Mapping[str, Stored]] = field(default=dict)
    #: Returns the graphs of the server, as `GET /graphs` lists them.
    graphs: Callable[[], list[dict[str, str]]] = field(default=list)
    #: The prefix of idempotency keys, so that equal keys of two actors are different keys.
    key_prefix: str = ""
    timeout: float | None = None
    cancel: Cancel | None = None
    #: Removes paths of the server from texts.
    hidden: Callable[[str], str] = str
    #: Whether a write has made a commit.
    committed: bool = False
    #: Whether the branch of a confined session is known to exist.
    _is_made: bool = False

    def check(self, need: Need) -> None:
        """Raise `Denied` unless the session has this permission."""
        self.guard.check(self.actor, need)

    def may(self, need: Need) -> bool:
        """Whether the session has this permission."""
        try:
            self.check(need)
        except Denied:
            return False
        return True

    # --- branches ---------------------------------------------------------------------------------------------------

    def read_branch(self, given: str | None) -> str:
        """The branch to read: the given branch, else the branch of the session if it exists, else main."""
        if given is not None:
            return given
        return self.branch if self.branch is not None and self.is_made() else MAIN

    def write_branch(self, given: str | None) -> str:
        """The branch to write to: the given branch, else the branch of the session, else main."""
        return given if given is not None else self.branch or MAIN

    def is_made(self) -> bool:
        """Whether the branch of a confined session exists."""
        if not self._is_made:
            self._is_made = self.branch in self.graph.branches()
        return self._is_made

    def needs_of_write(self, branch: str) -> list[Need]:
        """The needs of a write to a branch; the first write of a confined session also creates its branch."""
        needs = [Need(CHANGE, branch)]
        if branch == self.branch and not self.is_made():
            needs.insert(0, Need(BRANCH_CREATE, MAIN, branch))
        return needs

    def make_branch(self, branch: str) -> None:
        """Create the branch of a confined session from main, unless it exists. Other branches are not created."""
        if branch != self.branch or self.is_made():
            return
        try:
            self.graph.create_branch(branch, MAIN, **self.signed())
        except AlreadyExists:
            # Another session has created the branch, or its name conflicts with another branch.
            if not self.is_made():
                raise
        self._is_made = True

    # --- writing ----------------------------------------------------------------------------------------------------

    def signed(self) -> dict[str, Any]:
        """The actor as an argument of the verbs that write."""
        return {"actor": self.actor} if self.names_actor else {}

    def keyed(self, given: str | None) -> str:
        """The idempotency key of a write, with the prefix: the agent's key, else a new one."""
        if given is not None and not (0 < len(given) <= 255 and given.isprintable()):
            raise BadRequest("an idempotency_key has 1 to 255 printable characters")
        return self.key_prefix + (given if given is not None else new_ulid())

    @property
    def writer(self) -> str | None:
        """The actor of the last write, for answers."""
        return self.actor if self.names_actor else self.graph.actor


def about(session: Session) -> str:
    """The instructions of a session: the general instructions, and its confinement."""
    if session.read_only:
        return f"{INSTRUCTIONS}This session reads only.\n"
    if session.branch is not None:
        return (
            f"{INSTRUCTIONS}This session writes to branch '{session.branch}' only, which is made by the first write.\n"
        )
    return INSTRUCTIONS
