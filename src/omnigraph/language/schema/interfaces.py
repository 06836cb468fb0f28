"""What `implements` brings into a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from omnigraph.language.schema.ast import InterfaceDecl, NodeDecl, PropertyDecl, spelling
from omnigraph.language.schema.constraints import property_constraints
from omnigraph.language.source import Source
from omnigraph.language.suggest import did_you_mean, nearest_name
from omnigraph.language.types import PropType


def implement(node: NodeDecl, interfaces: Mapping[str, InterfaceDecl], source: Source) -> NodeDecl:
    """The node with the properties of its interfaces that it does not declare itself, and their short constraints."""
    own = {prop.name: prop for prop in node.properties}
    inherited: dict[str, tuple[InterfaceDecl, PropertyDecl]] = {}
    for interface in _implemented(node, interfaces, source):
        for prop in interface.properties:
            if prop.name in own:
                _refuse_other_type(node, own[prop.name], interface, prop, source)
            elif prop.name not in inherited:
                inherited[prop.name] = (interface, prop)
            elif _meaning(inherited[prop.name][1]) != _meaning(prop):
                first = inherited[prop.name][0].name
                source.catalog_error(
                    f"interfaces {first} and {interface.name} give {node.name} different properties `{prop.name}`; "
                    f"declare `{prop.name}` in {node.name} or make the two the same",
                    node.span,
                )
    added = tuple(prop for _, prop in inherited.values())
    constraints = tuple(constraint for prop in added for constraint in property_constraints(prop))
    return replace(node, properties=node.properties + added, constraints=node.constraints + constraints)


def _meaning(prop: PropertyDecl) -> tuple[PropType, list[str]]:
    """What two declarations of a property must share to be the same."""
    return prop.type, sorted(map(spelling, prop.annotations))


def _implemented(node: NodeDecl, interfaces: Mapping[str, InterfaceDecl], source: Source) -> list[InterfaceDecl]:
    for name, times in Counter(node.implements).items():
        if name not in interfaces:
            suggestion = nearest_name(name, interfaces)
            source.semantic_error(
                f"node {node.name} implements unknown interface `{name}`{did_you_mean(suggestion)}",
                node.span,
                suggestion=suggestion,
            )
        if times > 1:
            source.semantic_error(f"node {node.name} implements {name} more than once", node.span)
    return [interfaces[name] for name in node.implements]


def _refuse_other_type(
    node: NodeDecl, own: PropertyDecl, interface: InterfaceDecl, prop: PropertyDecl, source: Source
) -> None:
    if own.type != prop.type:
        source.semantic_error(
            f"property {node.name}.{own.name} is {own.type}, but {interface.name}.{prop.name} is {prop.type}; "
            f"a node declares a property of its interface with the identical type",
            own.span,
        )
