"""The options of `format("omnigraph")`, read once and refused where they make no sense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.errors import BadRequest

#: Options of the storage begin with this, such as `storage.aws_endpoint`.
STORAGE = "storage."
#: Spark adds this one itself when a path is given to `load` or `save`; it is the graph.
_PATH = "path"


@dataclass(frozen=True)
class GraphOptions:
    """Which graph is meant, and which type of it: `node:Person` or `edge:Knows`."""

    uri: str
    kind: str
    type_name: str
    branch: str | None = None
    snapshot: str | None = None
    columns: tuple[str, ...] | None = None
    storage: Mapping[str, str] = field(default_factory=dict)

    @property
    def type_key(self) -> str:
        return f"{self.kind}:{self.type_name}"


def graph_options(options: Mapping[str, str]) -> GraphOptions:
    """The options that reading and writing share; names in any case, as Spark's are."""
    given = {name.lower(): value for name, value in options.items()}
    uri = given.get("graph") or given.get(_PATH)
    if not uri:
        raise BadRequest("format('omnigraph') needs the graph: .option('graph', 'path or s3:// URI')")
    branch, snapshot = given.get("branch"), given.get("snapshot")
    if branch is not None and snapshot is not None:
        raise BadRequest("branch and snapshot exclude each other: a snapshot says itself what is read; give one")
    kind, name = _type(given)
    columns = given.get("columns")
    return GraphOptions(
        uri,
        kind,
        name,
        branch,
        snapshot,
        None if columns is None else tuple(part.strip() for part in columns.split(",") if part.strip()),
        {key.removeprefix(STORAGE): value for key, value in given.items() if key.startswith(STORAGE)},
    )


def _type(given: Mapping[str, str]) -> tuple[str, str]:
    node, edge = given.get("type"), given.get("edge")
    if (node is None) == (edge is None):
        raise BadRequest(
            "format('omnigraph') needs one of .option('type', 'Person') for nodes and .option('edge', 'Knows') for edges"
        )
    if edge is not None:
        return "edge", edge.removeprefix("edge:")
    assert node is not None
    return ("edge", node.removeprefix("edge:")) if node.startswith("edge:") else ("node", node.removeprefix("node:"))


def flag(options: Mapping[str, str], name: str) -> bool:
    """An option that is true or false; false unless given."""
    value = options.get(name, "false").strip().lower()
    if value not in ("true", "false"):
        raise BadRequest(f"the option {name} is true or false, not {options[name]!r}")
    return value == "true"
