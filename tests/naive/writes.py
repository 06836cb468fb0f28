"""A naive interpreter of mutations: what a world holds afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from omnigraph.language.query import ast
from omnigraph.language.query.parser import parse_query_file
from tests.naive.graph import Entity, World, plain
from tests.naive.reads import Reading, Scope


def changed(text: str, world: World) -> World:
    """The world after the statements of the first query of a text, each of which sees what those before it left."""
    (query, *_) = parse_query_file(text).queries
    assert isinstance(query.body, ast.Mutation)
    after = World(
        world.catalog,
        {name: dict(found) for name, found in world.nodes.items()},
        {name: dict(found) for name, found in world.edges.items()},
    )
    for statement in query.body.statements:
        _Change(after).carry_out(statement)
    return after


class _Change:
    """One statement; what it matches and reads is the state before it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.reading = Reading(world, {})

    def carry_out(self, statement: ast.Statement) -> None:
        match statement:
            case ast.Insert() | ast.Upsert():
                self.put(statement, [{}])
            case ast.MatchInsert():
                self.put(statement.statement, self.reading.match(statement.clauses, [{}]))
            case ast.Update():
                found = [each for each in self.of_type(statement.type_name) if self.fits(each, statement.condition)]
                self.assign([(each, Scope({}, None, words(each))) for each in found], statement.assignments)
            case ast.Delete():
                found = [each for each in self.of_type(statement.type_name) if self.fits(each, statement.condition)]
                self.remove(found)
            case ast.MatchUpdate():
                rows = self.reading.match(statement.clauses, [{}])
                chosen = {row[statement.variable.name]: Scope(row) for row in reversed(rows)}
                pairs = [(each, scope) for each, scope in chosen.items() if each is not None]
                self.assign(pairs, statement.assignments)
            case ast.MatchDelete():
                rows = self.reading.match(statement.clauses, [{}])
                self.remove(row[statement.variable.name] for row in rows if row[statement.variable.name] is not None)

    def of_type(self, name: str) -> list[Entity]:
        kinds = self.world.nodes if name in self.world.nodes else self.world.edges
        return list(kinds[name].values())

    def fits(self, entity: Entity, condition: ast.Expr) -> bool:
        return self.reading.value(condition, Scope({}, None, words(entity))) is True

    def kept(self, entity: Entity) -> None:
        kinds = self.world.nodes if entity.kind == "node" else self.world.edges
        kinds[entity.type][entity.id] = entity

    def assign(self, found: list[tuple[Entity, Scope]], assignments: Iterable[ast.Assignment]) -> None:
        """New values of properties, all worked out before the first is kept."""
        after = [
            replace(entity, properties={**entity.properties, **self.given(entity.type, assignments, scope)})
            for entity, scope in found
        ]
        for entity in after:
            self.kept(entity)

    def given(self, type_name: str, assignments: Iterable[ast.Assignment], scope: Scope) -> dict[str, Any]:
        """The values of assignments, as the properties hold them; the ends of an edge are ids."""
        catalog = self.world.catalog
        declared = (catalog.nodes.get(type_name) or catalog.edges[type_name]).properties
        found: dict[str, Any] = {}
        for each in assignments:
            value = self.reading.value(each.value, scope)
            value = value.id if isinstance(value, Entity) else value
            found[each.property] = plain(value, declared[each.property].type) if each.property in declared else value
        return found

    def put(self, statement: ast.Insert | ast.Upsert, rows: list[dict[str, Any]]) -> None:
        """Insert once for each row; a node with the same key is replaced, or completed by an upsert."""
        for data in [self.given(statement.type_name, statement.assignments, Scope(row)) for row in rows]:
            node = self.world.catalog.nodes.get(statement.type_name)
            if node is None:
                edge = self.world.catalog.edges[statement.type_name]
                ends = data.pop("from"), data.pop("to")
                properties = {name: data.get(name) for name in edge.properties}
                id_ = f"new{len(self.world.edges[edge.name])}"
                self.kept(Entity("edge", edge.name, id_, properties, *ends))
                continue
            assert node.key is not None
            id_ = data[node.key[0]]
            before = self.world.nodes[node.name].get(id_) if isinstance(statement, ast.Upsert) else None
            own = dict.fromkeys(node.properties) if before is None else dict(before.properties)
            self.kept(Entity("node", node.name, id_, {**own, **data}))

    def remove(self, found: Iterable[Entity]) -> None:
        """Entities, and the edges at the nodes among them."""
        for entity in dict.fromkeys(found):
            if entity.kind == "edge":
                self.world.edges[entity.type].pop(entity.id, None)
                continue
            self.world.nodes[entity.type].pop(entity.id, None)
            for edge in self.world.catalog.edges.values():
                at = [
                    each.id
                    for each in self.world.edges[edge.name].values()
                    if (edge.from_type, each.src) == (entity.type, entity.id)
                    or (edge.to_type, each.dst) == (entity.type, entity.id)
                ]
                for id_ in at:
                    del self.world.edges[edge.name][id_]


def words(entity: Entity) -> dict[str, Any]:
    """What a bare word of a condition stands for."""
    ends = {"from": entity.src, "to": entity.dst, "@src": entity.src, "@dst": entity.dst}
    return {**ends, "@id": entity.id, **entity.properties}
