"""Nodes whose own line was refused. An edge that names such a node is not reported: it is the same problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.errors import ValidationError
from omnigraph.language.schema.catalog import NodeType
from omnigraph.values.columns import column_of
from omnigraph.values.identity import derive_ids
from omnigraph.values.json_values import from_json

#: Ids of refused nodes, by type.
Refused = Mapping[str, pa.Array]


class RefusedNodes:
    """Collects the ids of refused nodes, as far as they are known: the ids they give, and the ids that their keys make."""

    def __init__(self) -> None:
        self._types: dict[str, NodeType] = {}
        self._given: dict[str, list[str]] = {}
        self._keys: dict[str, list[list[Any]]] = {}

    def add(self, node: NodeType, data: object) -> None:
        """Record a refused node. `data`: the properties that its line gives."""
        if not isinstance(data, Mapping):
            return
        self._types[node.type_key] = node
        given = data.get("id")
        if isinstance(given, str):
            self._given.setdefault(node.type_key, []).append(given)
        if node.key is None:
            return
        try:
            key = [from_json(data.get(name), node.properties[name].type) for name in node.key]
        except ValueError:
            return
        if None not in key:
            self._keys.setdefault(node.type_key, []).append(key)

    def ids(self) -> Refused:
        """The ids by which edges may name the refused nodes, by type."""
        return {
            type_key: pa.concat_arrays([pa.array(self._given.get(type_key, []), pa.string()), self._derived(node)])
            for type_key, node in self._types.items()
        }

    def _derived(self, node: NodeType) -> pa.Array:
        keys = self._keys.get(node.type_key)
        if not keys:
            return pa.array([], pa.string())
        assert node.key is not None
        columns: list[Sequence[Any]] = list(zip(*keys, strict=True))
        made = [
            column_of(list(values), node.properties[name].type) for name, values in zip(node.key, columns, strict=True)
        ]
        try:
            return derive_ids(node, pa.Table.from_arrays(made, names=list(node.key)))
        except ValidationError:
            # A key that is not finite makes no id.
            return pa.array([], pa.string())


def together(parts: Sequence[Refused]) -> Refused:
    """The refused nodes of several pieces, by type."""
    keys = dict.fromkeys(key for part in parts for key in part)
    return {key: pa.concat_arrays([part[key] for part in parts if key in part]) for key in keys}
