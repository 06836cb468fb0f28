"""Connecting variables: from rows that bind some variables, follow every link that can be reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.language.query.ir import EdgePattern, Expand, NodePattern, Plan


@dataclass(frozen=True, slots=True)
class Link:
    """Two variables that must be connected; the edge's direction is seen from `source`."""

    source: str
    source_type: str
    edge: EdgePattern
    target: str
    target_type: str


def connect(plan: Plan, links: list[Link], nodes: Mapping[str, NodePattern], bound: set[str]) -> Plan:
    """Add an Expand for every link that can be reached, in the order of the links.

    Links used up are taken out of `links`; variables reached are added to `bound`. A link may be followed from either
    end: the pairs of nodes within some distance are the same seen from both.
    """
    while True:
        link = next((link for link in links if link.source in bound or link.target in bound), None)
        if link is None:
            return plan
        links.remove(link)
        plan = _expand(plan, link if link.source in bound else _turned(link), nodes, bound)


def _turned(link: Link) -> Link:
    return Link(link.target, link.target_type, link.edge.reversed, link.source, link.source_type)


def _expand(plan: Plan, link: Link, nodes: Mapping[str, NodePattern], bound: set[str]) -> Expand:
    closing = link.target in bound
    bound.add(link.target)
    target = NodePattern(link.target, link.target_type) if closing else nodes[link.target]
    return Expand(plan, link.source, link.edge, target, closing)
