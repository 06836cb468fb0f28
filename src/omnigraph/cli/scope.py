"""Which global flags a command takes; every other one is refused before anything happens."""

from __future__ import annotations

from dataclasses import dataclass, field

import click


@dataclass(frozen=True)
class Scope:
    """A kind of command as messages name it, and the addressing flags that mean something to it."""

    kind: str
    takes: frozenset[str] = field(default_factory=frozenset)


_ADDRESS = frozenset({"server", "graph", "store", "profile"})

#: Reads of a graph, embedded or served.
READ = Scope("data", _ADDRESS)
#: Writes to a graph, embedded or served.
WRITE = Scope("data", _ADDRESS | {"as"})
#: Work on the storage of a graph, which no server does for its callers.
DIRECT = Scope("direct (storage-native)", frozenset({"graph", "store", "profile", "cluster"}))
#: A look at the storage of a graph, or at what a direct write would do there.
PREVIEW = Scope("direct (storage-native)", frozenset({"store", "profile"}))
#: Making a graph: it is named by its URI alone.
NEW = Scope("direct (storage-native)")
#: Making a graph of data from elsewhere, which is a commit of an actor.
IMPORT = Scope("direct (storage-native)", frozenset({"as"}))
#: What only a server can answer.
SERVED = Scope("served", frozenset({"server", "profile"}))
#: The declaration of a cluster, named by its folder alone; some of it is done by an actor.
CLUSTER_CONTROL = Scope("cluster control")
CLUSTER_ACTOR = Scope("cluster control", frozenset({"as"}))
#: What a server does with a declaration that it is sent, too.
CLUSTER_PLAN = Scope("cluster control", frozenset({"server"}))
CLUSTER_APPLY = Scope("cluster control", frozenset({"server", "as"}))
#: What a cluster declares about one graph.
CLUSTER_GRAPH = Scope("cluster control", frozenset({"cluster", "graph", "profile"}))
#: Works on this machine only, with no graph.
LOCAL = Scope("local")
#: Serves graphs, or those of a cluster.
SERVING = Scope("local", frozenset({"cluster"}))
#: Shows what the flags and the configuration come to.
EFFECTIVE = Scope("local", _ADDRESS | {"cluster", "as"})

_MEANINGS = {
    "as": "`--as` names the actor of a direct write",
    "server": "`--server` addresses a served graph",
    "graph": "`--graph` selects a graph of a server or cluster",
    "store": "`--store` addresses the storage of one graph",
    "cluster": "`--cluster` addresses a cluster",
    "profile": "`--profile` selects an address from the configuration",
}


def refuse_foreign_flag(command: str, scope: Scope, flag: str) -> None:
    """A flag that a command does not take is a usage error that says why."""
    if flag in scope.takes:
        return
    raise click.UsageError(
        f"`{command}` is a {scope.kind} command; {_MEANINGS[flag]} and does not apply.{_hint(scope, flag)}"
    )


def _hint(scope: Scope, flag: str) -> str:
    if scope is NEW:
        return " Pass the place of the new graph as its URI."
    if flag in ("server", "cluster") and "store" in scope.takes:
        return " Address the graph with --store <uri>."
    return ""
