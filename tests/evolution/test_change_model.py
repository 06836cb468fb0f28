"""Random schema changes and writes against a model in memory: what is allowed, what rows are then, and what they were before."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.errors import SchemaChangeRefused

NUMBERS: dict[str, tuple[Any, ...]] = {
    "I32": (-(2**31), -1, 0, 7, 2**31 - 1),
    "U32": (0, 7, 2**32 - 1),
    "I64": (-(2**63), -1, 0, 7, 2**63 - 1),
    "U64": (0, 7, 2**63),
    "F32": (0.5, -0.25, 3.0),
    "F64": (0.5, 1e300, 3.0),
}
TEXTS = ("a", "b", "7", "")
WIDER = {("I32", "I64"), ("U32", "U64"), ("F32", "F64"), ("U32", "I64"), ("I32", "F64"), ("I64", "String")}


@dataclass
class Declared:
    """A property: its scalar, whether it may be null, the values of its enum."""

    scalar: str
    nullable: bool = True
    enum: tuple[str, ...] | None = None

    def __str__(self) -> str:
        core = f"enum({', '.join(self.enum)})" if self.enum else self.scalar
        return f"{core}{'?' if self.nullable else ''}"

    def value(self, rng: random.Random) -> Any:
        if self.nullable and rng.random() < 0.3:
            return None
        values: tuple[Any, ...] = self.enum or NUMBERS.get(self.scalar) or TEXTS
        return rng.choice(values)


@dataclass
class Model:
    """A node type and an edge type with the same properties, on one branch."""

    properties: dict[str, Declared] = field(default_factory=lambda: {"x": Declared("I32"), "y": Declared("String")})
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: list[dict[str, Any]] = field(default_factory=list)

    def text(self, changed: dict[str, str] | None = None) -> str:
        shown = {name: str(declared) for name, declared in self.properties.items()} | (changed or {})
        members = " ".join(f"{name}: {text}" for name, text in shown.items())
        return f"node T {{ k: String @key {members} }} edge E: T -> T {{ {members} }}"

    def all_rows(self) -> list[dict[str, Any]]:
        return [*self.rows.values(), *self.edges]

    def shown(self) -> list[dict[str, Any]]:
        names = list(self.properties)
        return sorted(({name: row.get(name) for name in names} for row in self.all_rows()), key=repr)


def shown(graph: og.Graph, model: Model, branch: str | None, snapshot: str | None = None) -> list[dict[str, Any]]:
    columns = ", ".join(f"$t.{name} as {name}" for name in model.properties)
    found: list[dict[str, Any]] = []
    for pattern in ("$t: T", "$a: T $a $t:e $b"):
        text = f"query q() {{ match {{ {pattern} }} return {{ {columns} }} }}"
        schema: Any = {"schema": "then"} if snapshot else {}
        found += graph.query(text, branch=None if snapshot else branch, snapshot=snapshot, **schema).to_dicts()
    return sorted(found, key=repr)


def converted(value: Any, old: str, new: str) -> Any:
    if value is None:
        return None
    if new == "String":
        return str(value)
    if new == "F64":
        return float(np.float32(value)) if old == "F32" else float(value)
    return value


class Walk:
    """One sequence of random steps."""

    def __init__(self, graph: og.Graph, rng: random.Random) -> None:
        self.graph, self.rng, self.model = graph, rng, Model()
        self.branch: str | None = None
        self.history: list[tuple[str, Model, list[dict[str, Any]]]] = []
        self.count = 0

    def step(self) -> None:
        self.rng.choice(
            (self.insert, self.insert, self.retype, self.require, self.enum, self.add, self.drop, self.fork)
        )()
        assert shown(self.graph, self.model, self.branch) == self.model.shown()

    def insert(self) -> None:
        self.count += 1
        key = f"k{self.count}"
        row = {name: declared.value(self.rng) for name, declared in self.model.properties.items()}
        edge = {name: declared.value(self.rng) for name, declared in self.model.properties.items()}
        lines = [{"type": "T", "data": {"k": key, **row}}, {"edge": "E", "from": key, "to": key, "data": edge}]
        self.graph.load(lines, branch=self.branch, engine="local")
        self.model.rows[key] = row
        self.model.edges.append(edge)

    def change(self, name: str, wanted: str, allowed: bool, backfill: str | None = None) -> bool:
        """Ask for a change of one property; it is carried out when it is allowed, and refused with nothing changed otherwise."""
        text = self.model.text({name: wanted})
        given = None if backfill is None else [f"T.{name} = {backfill}", f"E.{name} = {backfill}"]
        before = self.graph.head(self.branch)
        kept = (Model(dict(self.model.properties)), self.model.shown())
        assert self.graph.plan_schema(text, branch=self.branch, backfill=given).supported == allowed, text
        if not allowed:
            with pytest.raises(SchemaChangeRefused):
                self.graph.apply_schema(text, branch=self.branch, backfill=given)
            assert self.graph.head(self.branch) == before
        elif self.graph.apply_schema(text, branch=self.branch, backfill=given).applied:
            self.history.append((before.id, *kept))
        return allowed

    def retype(self) -> None:
        name = self.rng.choice(list(self.model.properties))
        declared, new = self.model.properties[name], self.rng.choice([*NUMBERS, "String"])
        if declared.enum or new == declared.scalar:
            return
        old = declared.scalar
        if self.change(name, str(Declared(new, declared.nullable)), (old, new) in WIDER):
            self.model.properties[name] = Declared(new, declared.nullable)
            for row in self.model.all_rows():
                row[name] = converted(row.get(name), old, new)

    def require(self) -> None:
        name = self.rng.choice(list(self.model.properties))
        declared = self.model.properties[name]
        turned = Declared(declared.scalar, not declared.nullable, declared.enum)
        default = self.rng.random() < 0.5 and declared.nullable
        filled = turned.value(self.rng) if default else None
        # A default that is written in the schema would stay there; the model has none, so it is taken back at once.
        has_null = any(row.get(name) is None for row in self.model.all_rows())
        if default and (isinstance(filled, str) or (isinstance(filled, int) and 0 <= filled < 2**63)):
            text = f'"{filled}"' if isinstance(filled, str) else str(filled)
            assert self.change(name, f"{turned} @default({text})", allowed=True)
            for row in self.model.all_rows():
                row[name] = filled if row.get(name) is None else row[name]
            self.model.properties[name] = turned
            assert self.change(name, str(turned), allowed=True)
        elif self.change(name, str(turned), turned.nullable or not has_null):
            self.model.properties[name] = turned

    def enum(self) -> None:
        texts = [name for name, declared in self.model.properties.items() if declared.scalar == "String"]
        name = self.rng.choice(texts) if texts else ""
        if not texts:
            return
        values = tuple(sorted(self.rng.sample(("a", "b", "c"), self.rng.randint(1, 3))))
        fits = all(row.get(name) in (None, *values) for row in self.model.all_rows())
        wanted = Declared("String", self.model.properties[name].nullable, values)
        if self.change(name, str(wanted), fits):
            self.model.properties[name] = wanted

    def add(self) -> None:
        if len(self.model.properties) > 4:
            return
        self.count += 1
        name = f"p{self.count}"
        source = self.rng.choice(list(self.model.properties))
        required = self.rng.random() < 0.5
        nulls = any(row.get(source) is None for row in self.model.all_rows())
        wanted = Declared("String", not required)
        text = f'nullif(if({source} is null, "none", "set"), "none")'
        if self.change(name, str(wanted), not (required and nulls), text):
            for row in self.model.all_rows():
                row[name] = None if row.get(source) is None else "set"
            self.model.properties[name] = wanted

    def drop(self) -> None:
        if len(self.model.properties) < 3:
            return
        name = self.rng.choice([name for name in self.model.properties if name not in ("x",)])
        before, kept = self.graph.head(self.branch), (Model(dict(self.model.properties)), self.model.shown())
        del self.model.properties[name]
        self.graph.apply_schema(self.model.text(), branch=self.branch)
        self.history.append((before.id, *kept))
        for row in self.model.all_rows():
            row.pop(name, None)

    def fork(self) -> None:
        """Go on with a new branch, which shares every table."""
        self.count += 1
        name = f"b{self.count}"
        self.graph.create_branch(name, self.branch or "main")
        self.branch = name


def walk(path: Path, seed: int, steps: int) -> None:
    rng = random.Random(seed)
    graph = og.init(path / "graph", Model().text())
    walked = Walk(graph, rng)
    for _ in range(steps):
        walked.step()
    for commit, model, rows in walked.history:
        assert shown(graph, model, None, commit) == rows, f"the snapshot before a change, {commit}"
    if walked.branch is not None:
        graph.merge(walked.branch)
        walked.branch = None
        assert shown(graph, walked.model, None) == walked.model.shown()
    assert graph.verify(deep=True).ok


@pytest.mark.parametrize("seed", range(4))
def test_random_changes(tmp_path: Path, seed: int) -> None:
    walk(tmp_path, seed, 12)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_random_changes(tmp_path: Path, seed: int) -> None:
    walk(tmp_path, seed, 40)
