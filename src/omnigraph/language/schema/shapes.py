"""Types for a three-way merge, with names replaced by numbers, so that a rename does not hide a use elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.language.schema.catalog import EdgeType, Property
from omnigraph.language.schema.ir import SchemaIR
from omnigraph.language.schema.printer import print_property, print_type
from omnigraph.language.schema.sameness import Entity, Sameness, types_of

#: A column that a rule names: the number of a property, or the name of an edge's end.
Column = int | str
ABSENT: Any = object()
CLASH: Any = object()


@dataclass(frozen=True)
class Shape:
    """A type with every name replaced by a number. `facts` are compared one by one, `sets` element by element."""

    entity: Entity
    facts: Mapping[Any, Any]
    sets: Mapping[str, frozenset[Any]]
    properties: Mapping[int, Mapping[str, Any]]
    declared: Mapping[int, Property]


def shapes_of(ir: SchemaIR, same: Sameness) -> dict[int, Shape]:
    nodes = {name: same.type(node.id) for name, node in ir.catalog.nodes.items()}
    return {same.type(entity.id): _shape(entity, same, nodes) for entity in types_of(ir)}


def _shape(entity: Entity, same: Sameness, nodes: Mapping[str, int]) -> Shape:
    numbers = {name: same.property(entity.id, declared.id) for name, declared in entity.properties.items()}

    def column(name: str) -> Column:
        return numbers.get(name, name)

    def columns(names: Iterable[str]) -> tuple[Column, ...]:
        return tuple(column(name) for name in names)

    facts: dict[Any, Any] = {
        "name": entity.name,
        "key": None if entity.key is None else columns(entity.key),
        "description": entity.description,
        "instruction": entity.instruction,
        "annotations": entity.annotations,
    }
    for rule in entity.ranges:
        facts["range", column(rule.property)] = (rule.low, rule.high)
    checks: dict[Column, tuple[str, ...]] = {}
    for check in entity.checks:
        checks[column(check.property)] = (*checks.get(column(check.property), ()), check.pattern)
    sets: dict[str, frozenset[Any]] = {
        "uniques": frozenset(tuple(sorted(columns(names), key=str)) for names in entity.uniques),
        "indexes": frozenset(tuple(sorted(columns(names), key=str)) for names in entity.indexes),
        "checks": frozenset((name, pattern) for name, patterns in checks.items() for pattern in patterns),
    }
    if isinstance(entity, EdgeType):
        facts["ends"] = (nodes[entity.from_type], nodes[entity.to_type])
        facts["cardinality"] = entity.cardinality
    else:
        sets["implements"] = frozenset(entity.implements)
    declared = {numbers[name]: found for name, found in entity.properties.items()}
    properties = {number: _property_facts(found, column) for number, found in declared.items()}
    return Shape(entity, facts, sets, properties, declared)


def _property_facts(declared: Property, column: Callable[[str], Column]) -> dict[str, Any]:
    embed = declared.embed
    return {
        "name": declared.name,
        "type": declared.type,
        "embed": None if embed is None else (column(embed.source), embed.model),
        "default": declared.default,
        "metric": declared.metric,
        "description": declared.description,
        "annotations": declared.annotations,
    }


def lasting(annotations: tuple[Any, ...]) -> tuple[Any, ...]:
    """The annotations without `@rename_from`, which describes a transition and not the schema itself."""
    return tuple(annotation for annotation in annotations if annotation.name != "rename_from")


def meaning(shape: Shape) -> Any:
    """The content of a type, to compare whether a side has changed it."""
    own = {name: value for name, value in shape.facts.items() if name != "annotations"}
    properties = {number: property_meaning(facts) for number, facts in shape.properties.items()}
    return own, lasting(shape.facts["annotations"]), dict(shape.sets), properties


def property_meaning(facts: Mapping[str, Any]) -> Any:
    return {**facts, "annotations": lasting(facts["annotations"])}


def merged_fact(name: Any, base: Any, ours: Any, theirs: Any) -> Any:
    """The three-way merge of one fact; CLASH when both sides changed it differently."""
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if name == "annotations" and lasting(ours) == lasting(theirs):
        return lasting(ours)
    if name == "type" and base is not ABSENT:
        return _types(base, ours, theirs)
    return CLASH


def _types(base: Any, ours: Any, theirs: Any) -> Any:
    """The merge of a type that both sides changed: kind, nullability and enum separately; enums value by value."""
    kind = merged_fact("kind", kind_of(base), kind_of(ours), kind_of(theirs))
    nullable = merged_fact("nullable", base.nullable, ours.nullable, theirs.nullable)
    enum = merged_fact("enum", base.enum, ours.enum, theirs.enum)
    if enum is CLASH and None not in (base.enum, ours.enum, theirs.enum):
        was, mine, other = set(base.enum), set(ours.enum), set(theirs.enum)
        enum = tuple(sorted((mine & other) | (mine - was) | (other - was))) or CLASH
    if CLASH in (kind, enum):
        return CLASH
    return replace(kind, enum=enum, nullable=nullable)


def kind_of(kind: Any) -> Any:
    """The type without enum and nullability: the kind of values that the column stores."""
    return replace(kind, enum=None, nullable=False)


def keyed(shape: Shape) -> Any:
    """The parts of a type that determine ids and edge ends: the key, its types, and the ends."""
    key = shape.facts["key"] or ()
    kinds = [kind_of(shape.properties[column]["type"]) if column in shape.properties else column for column in key]
    return key, kinds, shape.facts.get("ends")


def merged_set(base: Mapping[str, frozenset[Any]], ours: Any, theirs: Any, name: str) -> frozenset[Any]:
    """The three-way merge of sets: elements added by a side are in it, elements removed by a side are not."""
    was, mine, other = (side.get(name, frozenset()) for side in (base, ours, theirs))
    found: frozenset[Any] = (mine & other) | (mine - was) | (other - was)
    return found


def key_of(shape: Shape) -> str:
    kind = "edge" if isinstance(shape.entity, EdgeType) else "node"
    return f"{kind}:{shape.facts['name']}"


def texts_of(*shapes: Shape | None) -> list[str | None]:
    return [None if shape is None else print_type(shape.entity) for shape in shapes]


def property_text(shape: Shape | None, name: str) -> str | None:
    """The declaration that a side has under a name; None where it has none."""
    declared = None if shape is None else shape.entity.properties.get(name)
    return None if declared is None else print_property(declared)


def declared_in(shapes: Mapping[int, Shape], number: int) -> Mapping[Any, Property]:
    return shapes[number].declared if number in shapes else {}


def columns_of(shape: Shape) -> Iterator[Column]:
    """Every column that the rules of a type name."""
    yield from shape.facts["key"] or ()
    yield from (name[1] for name in shape.facts if isinstance(name, tuple))
    for name in ("uniques", "indexes"):
        yield from (column for columns in shape.sets[name] for column in columns)
    yield from (column for column, _ in shape.sets["checks"])
    yield from (facts["embed"][0] for facts in shape.properties.values() if facts["embed"] is not None)


def without_column(shape: Shape, column: Column) -> Shape:
    """A type without the rules that name a column."""
    facts = {name: value for name, value in shape.facts.items() if not (isinstance(name, tuple) and name[1] == column)}
    if facts["key"] is not None and column in facts["key"]:
        facts["key"] = None
    sets = {
        name: values if name == "implements" else frozenset(value for value in values if column not in value)
        for name, values in shape.sets.items()
    }
    properties = {
        number: {**found, "embed": None} if found["embed"] is not None and found["embed"][0] == column else found
        for number, found in shape.properties.items()
    }
    return replace(shape, facts=facts, sets=sets, properties=properties)
