"""Calls of every verb, each as a function of a handle: what they come to must not depend on the kind of handle."""

from __future__ import annotations

import base64
import io
import math
import tempfile
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa

import omnigraph as og
from tests.server.serving import ADD, AGE, ALL, DROP, SCHEMA

Scenario = Callable[[Any], Any]
NO_COMMIT = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
EVE = b'{"type":"Person","data":{"name":"eve","age":3}}\n'


class _Long(int):
    """An integer of a class of its own, such as those of the drivers of other databases."""


def add(graph: Any, name: str = "eve", **options: Any) -> Any:
    return graph.mutate(ADD, "add", {"name": name}, **options)


def set_age(graph: Any, age: int, name: str = "ada", **options: Any) -> Any:
    return graph.mutate(AGE, "age", {"name": name, "age": age}, **options)


def people(graph: Any, **options: Any) -> Any:
    return graph.query(ALL, **options).rows


def branched(graph: Any) -> Any:
    """A branch `b` that has something of its own."""
    graph.create_branch("b")
    add(graph, "eve", branch="b")
    return graph


def diverged(graph: Any) -> Any:
    """A branch `b` that says something else about ada."""
    graph.create_branch("b")
    set_age(graph, 1)
    set_age(graph, 2, branch="b")
    return graph


TYPED = """query typed($s: String, $i: I32, $l: I64, $f: F64, $b: Bool, $d: Date, $t: DateTime, $n: [String], $x: I32?) {
  match { $p: Person { name: $s } } return { $p.name, $p.age, $p.big, $p.born, $p.day, $p.tags }
}"""
TYPED_PARAMS = {
    "s": "ada",
    "i": 1,
    "l": 2**60,
    "f": 0.5,
    "b": True,
    "d": "2026-01-01",
    "t": "2026-01-01T00:00:00Z",
    "n": ["a"],
}

READS: dict[str, Scenario] = {
    "query": lambda g: g.query(ALL),
    "query without a name": lambda g: g.query(
        "match { $p: Person { name: $n } } return { $p.name, $p.day }", params={"n": "ada"}
    ),
    "query with Python values": lambda g: g.query(
        TYPED, params=TYPED_PARAMS | {"d": date(2026, 1, 1), "t": datetime(2026, 1, 1, tzinfo=UTC)}
    ),
    "query rows as Python values": lambda g: [repr(row) for row in g.query(TYPED, params=TYPED_PARAMS).rows],
    "query with Arrow values": lambda g: g.query(
        TYPED, params=TYPED_PARAMS | {"i": pa.scalar(1), "n": pa.chunked_array([["a"], ["b"]]), "l": Decimal("7")}
    ),
    "query with a float that is not finite": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"f": math.nan}),
    "query with one among others": lambda g: g.query(
        "query q($v: [F64]) { match { $p: Person } return { $p.name, $v as v } }", params={"v": [0.5, math.inf]}
    ),
    "query with a null that is no number": lambda g: g.query(
        "query q($v: F64?) { match { $p: Person } return { $p.name, $v as v } }", params={"v": math.nan}
    ),
    "query with floats of less precision": lambda g: g.query(
        "query q($v: [F64], $w: F64) { match { $p: Person } return { $v as v, $w as w } }",
        params={"v": np.array([0.1], np.float32), "w": np.float32(0.1)},
    ),
    "query with a midnight as a date": lambda g: g.query(
        "query q($d: Date, $e: [Date]) { match { $p: Person } return { $d as d, $e as e } }",
        params={"d": datetime(2026, 1, 2), "e": [np.datetime64("2026-01-02"), datetime(2026, 1, 3, tzinfo=UTC)]},
    ),
    "query with an hour as a date": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"d": datetime(2026, 1, 2, 3)}),
    "query with a date as a text": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"s": date(2026, 1, 1)}),
    "query with bytes as a text": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"s": b"ada"}),
    "query with a set": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"n": {"a"}}),
    "query with an integer of its own class": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"l": _Long(7)}),
    "query with an integer of 100 bits": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"l": 2**99, "f": 2**99}),
    "query with a date that is not asked for": lambda g: g.query(ALL, params={"none": date(2026, 1, 1)}),
    "query without a name with what is no number": lambda g: _class_of(
        lambda: g.query("match { $p: Person { age: $n } } return { $p.name }", params={"n": math.nan})
    ),
    "query with a memory limit of much": lambda g: g.query(ALL, memory_limit="9999999999999GiB"),
    "query by name": lambda g: g.query(ALL + ADD, "q"),
    "query with parameters as the name": lambda g: g.query(ALL, {"n": 1}),
    "query with a list of parameters": lambda g: g.query(ALL, None, [1]),
    "query on main": lambda g: g.query(ALL, branch="main"),
    "query with typed parameters": lambda g: g.query(TYPED, params=TYPED_PARAMS),
    "query with a null parameter": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"x": None}),
    "query of an empty answer": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"s": "nobody"}),
    "query to arrow": lambda g: g.query(ALL).to_arrow().to_pydict(),
    "query arrow schema": lambda g: str(g.query(TYPED, params=TYPED_PARAMS).to_arrow().schema),
    "query to json": lambda g: g.query(ALL).to_json(),
    "query as text": lambda g: str(g.query(ALL)),
    "query as html": lambda g: g.query(ALL)._repr_html_(),
    "query length": lambda g: len(g.query(ALL)),
    "query commit is head": lambda g: g.query(ALL).commit == g.head().id,
    "query of a commit": lambda g: g.query(ALL, snapshot=g.head().id),
    "query of a snapshot": lambda g: g.query(ALL, snapshot=g.snapshot()),
    "query of a snapshot id": lambda g: g.query(ALL, snapshot=g.snapshot().id),
    "query of a version": lambda g: g.query(ALL, snapshot=g.snapshot().version),
    "query of an older version": lambda g: g.query(ALL, snapshot=1),
    "query of then": lambda g: g.query(ALL, snapshot=g.head().id, schema="then"),
    "query with a timeout": lambda g: g.query(ALL, timeout=20),
    "query with a memory limit": lambda g: g.query(ALL, memory_limit="64MiB"),
    "query with a cancel": lambda g: g.query(ALL, cancel=og.Cancel()),
    "query that is cancelled": lambda g: g.query(ALL, cancel=_cancelled()),
    "query of a file": lambda g: g.query(_file(ALL, ".gq")),
    "query of a missing file": lambda g: g.query("none/none.gq"),
    "query with a bad timeout": lambda g: g.query(ALL, timeout=0),
    "query with a bad memory limit": lambda g: g.query(ALL, memory_limit="much"),
    "query with too little memory": lambda g: g.query(ALL, memory_limit=1),
    "query with an unknown engine": lambda g: g.query(ALL, engine="none"),
    "query that does not parse": lambda g: g.query("query q( {"),
    "query that is empty": lambda g: g.query(""),
    "query of an unknown type": lambda g: g.query("query q() { match { $p: None } return { $p.x } }"),
    "query of an unknown property": lambda g: g.query("query q() { match { $p: Person } return { $p.none } }"),
    "query that is a mutation": lambda g: g.query(ADD, params={"name": "x"}),
    "query of several without a name": lambda g: g.query(ALL + ALL.replace("query q", "query r")),
    "query of an unknown name": lambda g: g.query(ALL, "p"),
    "query without its parameter": lambda g: g.query(TYPED, params={}),
    "query with an unknown parameter": lambda g: g.query(ALL, params={"none": 1}),
    "query with a misspelt parameter": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"ss": 1}),
    "query with a wrong integer": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"i": "x"}),
    "query with a large integer": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"i": 2**40}),
    "query with a wrong date": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"d": "x"}),
    "query with a wrong time": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"t": "x"}),
    "query with a wrong list": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"n": "x"}),
    "query with a null for what is needed": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"s": None}),
    "query with an object": lambda g: g.query(TYPED, params=TYPED_PARAMS | {"s": {"a": 1}}),
    "query of an unknown branch": lambda g: g.query(ALL, branch="none"),
    "query of an empty branch name": lambda g: g.query(ALL, branch=""),
    "query of an unknown commit": lambda g: g.query(ALL, snapshot=NO_COMMIT),
    "query of no snapshot": lambda g: g.query(ALL, snapshot="none"),
    "query of an unknown version": lambda g: g.query(ALL, snapshot=999),
    "query of branch and snapshot": lambda g: g.query(ALL, branch="main", snapshot=g.head().id),
    "explain": lambda g: g.explain(ALL).to_dict()["rewritten"],
    "explain what does not parse": lambda g: g.explain("query"),
    "explain an unknown branch": lambda g: g.explain(ALL, branch="none"),
    "branches": lambda g: g.branches(),
    "head": lambda g: g.head(),
    "head of main": lambda g: g.head("main"),
    "head of an unknown branch": lambda g: g.head("none"),
    "commits": lambda g: g.commits(),
    "commits of an unknown branch": lambda g: g.commits("none"),
    "commit": lambda g: g.commit(g.head().id),
    "commit that is unknown": lambda g: g.commit(NO_COMMIT),
    "commit of dots": lambda g: [_raised(partial(g.commit, name)) for name in (".", "..", "a/../b", "%2E", 5)],
    "commit that is no id": lambda g: g.commit("none"),
    "snapshot": lambda g: g.snapshot(),
    "snapshot at a commit": lambda g: g.snapshot(at=g.head().id),
    "snapshot at a version": lambda g: g.snapshot(at=1),
    "snapshot of an unknown branch": lambda g: g.snapshot("none"),
    "snapshot at nothing": lambda g: g.snapshot(at="none"),
    "schema": lambda g: g.schema(),
    "entity": lambda g: g.entity("node", "Person", "ada"),
    "entity of an edge": lambda g: g.entity("edge", "Wrote", "w1"),
    "entity with a blob": lambda g: g.entity("node", "Doc", "hello"),
    "entity that is not there": lambda g: g.entity("node", "Person", "nobody"),
    "entity at a commit": lambda g: g.entity("node", "Person", "ada", snapshot=g.head().id),
    "entity of an unknown type": lambda g: g.entity("node", "Persn", "ada"),
    "entity of an unknown branch": lambda g: g.entity("node", "Person", "ada", branch="none"),
    "blob": lambda g: g.read_blob("node", "Doc", "hello", "content"),
    "blob bytes": lambda g: g.read_blob("node", "Doc", "hello", "content").read().decode(),
    "blob range": lambda g: g.read_blob("node", "Doc", "hello", "content").read(6, 11).decode(),
    "blob empty range": lambda g: g.read_blob("node", "Doc", "hello", "content").read(5, 5).decode(),
    "blob in parts": lambda g: b"".join(g.read_blob("node", "Doc", "hello", "content")).decode(),
    "blob of an edge": lambda g: list(g.read_blob("edge", "Wrote", "w1", "draft").read()),
    "blob at a commit": lambda g: g.read_blob("node", "Doc", "hello", "content", snapshot=g.head().id),
    "blob beyond its end": lambda g: g.read_blob("node", "Doc", "hello", "content").read(0, 12),
    "blob backwards": lambda g: g.read_blob("node", "Doc", "hello", "content").read(6, 5),
    "blob that is null": lambda g: g.read_blob("node", "Doc", "empty", "content"),
    "blob of nobody": lambda g: g.read_blob("node", "Doc", "none", "content"),
    "blob that is none": lambda g: g.read_blob("node", "Doc", "hello", "title"),
    "blob of an unknown type": lambda g: g.read_blob("node", "None", "hello", "content"),
    "blob of an unknown branch": lambda g: g.read_blob("node", "Doc", "hello", "content", branch="none"),
    "commit changes of the first commit": lambda g: g.commit_changes(g.commits()[-1].id),
    "commit changes of the load": lambda g: g.commit_changes(g.head().id),
    "commit changes as a list": lambda g: [
        change.id for change in g.commit_changes(g.head().id).changes if change.kind == "node"
    ],
    "commit changes in pages": lambda g: _pages(g),
    "commit changes of a kind": lambda g: g.commit_changes(g.head().id, kinds="edge", types=["Knows"], ops=["insert"]),
    "commit changes of an unknown kind": lambda g: g.commit_changes(g.head().id, kinds="none"),
    "commit changes of an unknown type": lambda g: g.commit_changes(g.head().id, types="None"),
    "commit changes of no changes": lambda g: g.commit_changes(g.head().id, limit=0),
    "commit changes of too many": lambda g: g.commit_changes(g.head().id, limit=8193),
    "commit changes with a bad token": lambda g: g.commit_changes(g.head().id, page_token="x"),
    "commit changes of an unknown commit": lambda g: g.commit_changes(NO_COMMIT),
    "changes now": lambda g: g.changes(),
    "changes from the beginning": lambda g: g.changes(start="beginning"),
    "changes after a commit": lambda g: g.changes(start=f"after:{g.commits()[-1].id}"),
    "changes with a bad start": lambda g: g.changes(start="soon"),
    "changes with a bad cursor": lambda g: g.changes(cursor="x"),
    "changes with two places": lambda g: g.changes(cursor="x", start="now"),
    "changes of an unknown branch": lambda g: g.changes("none"),
    "changes with too many commits": lambda g: g.changes(max_commits=513),
    "changes with another filter": lambda g: g.changes(cursor=g.changes().cursor, kinds="edge"),
    "diff with nothing between": lambda g: g.diff("main", "main"),
    "diff of commits": lambda g: g.diff(g.commits()[-1], g.head()),
    "diff of a kind": lambda g: g.diff(g.commits()[-1].id, kinds="edge"),
    "diff of an unknown target": lambda g: g.diff("none"),
    "tags of nothing": lambda g: g.tags(),
    "baseline without data": lambda g: g.baseline(),
    "baseline to a file": lambda g: _baseline(g),
    "baseline of some": lambda g: _baseline(g, kinds="edge", types="Knows"),
    "baseline of an unknown type": lambda g: g.baseline(out=io.BytesIO(), types="None"),
    "baseline of an unknown branch": lambda g: g.baseline("none"),
    "export": lambda g: _export(g),
    "export of some": lambda g: _export(g, types=["Person"]),
    "export of a commit": lambda g: _export(g, snapshot=g.head().id),
    "export of an unknown type": lambda g: _export(g, types=["None"]),
    "export of an unknown branch": lambda g: _export(g, branch="none"),
    "export in chunks": lambda g: b"".join(g.export_chunks(types=["Doc"])).decode(),
    "plan of the same schema": lambda g: g.plan_schema(SCHEMA),
    "plan of a new property": lambda g: g.plan_schema(SCHEMA.replace("age: I32?", "age: I32?\n  nick: String?")),
    "plan with a backfill": lambda g: g.plan_schema(
        SCHEMA.replace("age: I32?", "age: I64?\n  nick: String"), backfill={"Person.nick": "lower(name)"}
    ),
    "plan of what looks like a rename": lambda g: g.plan_schema(SCHEMA.replace("age: I32?", "ages: I32?")),
    "plan of a refused change": lambda g: g.plan_schema(SCHEMA.replace("age: I32?", "age: String?")),
    "plan of a renamed type": lambda g: g.plan_schema(_renamed()),
    "plan of a dropped type": lambda g: g.plan_schema(_without_docs(), allow_data_loss=True),
    "plan of what does not parse": lambda g: g.plan_schema("node {"),
    "at an unknown branch": lambda g: g.at("none"),
    "delete a branch of dots": lambda g: [_raised(partial(g.delete_branch, name)) for name in (".", "..")],
    "delete a tag of dots": lambda g: [_raised(partial(g.delete_tag, name)) for name in (".", "..", 5)],
    "changes of a number": lambda g: _class_of(lambda: g.changes(kinds=5)),
    "delete main": lambda g: g.delete_branch("main"),
    "delete an unknown branch": lambda g: g.delete_branch("none"),
    "create main": lambda g: g.create_branch("main"),
    "create an empty name": lambda g: g.create_branch(""),
    "create a bad name": lambda g: g.create_branch("a b"),
    "create from an unknown branch": lambda g: g.create_branch("b", "none"),
    "merge into itself": lambda g: g.merge("main", "main"),
    "merge an unknown branch": lambda g: g.merge("none"),
    "revert an unknown commit": lambda g: g.revert(NO_COMMIT),
    "cherry-pick an unknown commit": lambda g: g.cherry_pick(NO_COMMIT),
    "mutate that is a read": lambda g: g.mutate(ALL),
    "mutate that does not parse": lambda g: g.mutate("query q() { insert }"),
    "mutate an unknown type": lambda g: g.mutate("query q() { insert None { a: 1 } }"),
    "mutate an unknown branch": lambda g: add(g, branch="none"),
    "mutate without its parameter": lambda g: g.mutate(ADD),
    "mutate with an unknown parameter": lambda g: g.mutate(ADD, params={"name": "x", "none": 1}),
    "mutate without effect": lambda g: g.mutate(DROP, params={"name": "nobody"}),
    "mutate at no commit": lambda g: _kept(g, lambda: _class_of(lambda: add(g, if_commit=5))),
    "mutate with a number as its key": lambda g: add(g, idempotency_key=5),
    "mutate at another commit": lambda g: add(g, if_commit=NO_COMMIT),
    "load of a wrong line": lambda g: g.load(EVE + b"{"),
    "load of an unknown type": lambda g: g.load(b'{"type":"None","data":{}}'),
    "load of an unknown property": lambda g: g.load(EVE + b'{"type":"Person","data":{"name":"x","none":1}}'),
    "load of a wrong value": lambda g: g.load(b'{"type":"Person","data":{"name":"x","age":"old"}}'),
    "load of an edge to nobody": lambda g: g.load(b'{"edge":"Knows","from":"ada","to":"nobody"}'),
    "load of an existing id": lambda g: g.load(b'{"type":"Person","data":{"name":"ada"}}'),
    "load of two wrong lines": lambda g: g.load(b'{"type":"A"}\n\n{"type":"B"}\n'),
    "load into an unknown branch": lambda g: g.load(EVE, branch="none"),
    "load with an unknown base": lambda g: g.load(EVE, branch="b", base="none"),
    "load of a missing file": lambda g: g.load("none/none.jsonl"),
    "load of a null": lambda g: g.load([None]),
    "load of a null and a row": lambda g: g.load([None, {"type": "Person", "data": {"name": "x"}}]),
    "load with a number as its message": lambda g: g.load(EVE, message=5),
    "load with a long message": lambda g: g.load(EVE, message="x" * 10_001),
    "load with a number as its key": lambda g: g.load(EVE, idempotency_key=5),
    "load of a table with a mapping of another": lambda g: g.load(
        pa.table({"name": ["x"]}), type="Person", mapping={"n": "age"}
    ),
    "a transaction with a number as its message": lambda g: g.transaction(message=5),
    "load of a dict": lambda g: g.load({"type": "Person"}),
    "load of a number": lambda g: g.load(1),
    "load of a wrong file": lambda g: _load_error(g),
    "load of a table without a type": lambda g: g.load(pa.table({"name": ["x"]})),
    "ingest from an unknown base": lambda g: g.ingest(EVE, "b", "none"),
}

WRITES: dict[str, Scenario] = {
    "mutate": lambda g: [add(g), people(g)],
    "mutate with a message": lambda g: add(g, message="why"),
    "load update": lambda g: [
        g.load(b'{"type":"Person","data":{"name":"ada","age":1}}', "update"),
        g.entity("node", "Person", "ada"),
    ],
    "mutate that cascades": lambda g: g.mutate(DROP, params={"name": "ada"}),
    "mutate twice": lambda g: [add(g, "eve"), add(g, "fay"), people(g)],
    "mutate an existing key": lambda g: [add(g, "ada"), people(g)],
    "mutate at the head": lambda g: add(g, if_commit=g.head().id),
    "mutate at an older commit": lambda g: [add(g, "eve"), add(g, "fay", if_commit=g.commits()[1].id)],
    "mutate with a key": lambda g: [add(g, idempotency_key="k"), add(g, idempotency_key="k"), len(g.commits())],
    "mutate with a key of another": lambda g: [add(g, "eve", idempotency_key="k"), add(g, "fay", idempotency_key="k")],
    "mutate on a branch": lambda g: [people(branched(g)), people(g, branch="b")],
    "mutate through at": lambda g: [branched(g).at("b").mutate(ADD, params={"name": "fay"}), people(g, branch="b")],
    "mutate reads itself": lambda g: [add(g).commit.id == g.query(ALL).commit],
    "mutate several statements": lambda g: g.mutate(
        'query two() { insert Person { name: "x" } insert Person { name: "y" } insert Knows { from: "x", to: "y" } }'
    ),
    "mutate an edge to nobody": lambda g: g.mutate('query e() { insert Knows { from: "ada", to: "nobody" } }'),
    "mutate a blob": lambda g: [
        g.mutate('query b() { insert Doc { title: "n", content: "base64:AQID" } }'),
        list(g.read_blob("node", "Doc", "n", "content").read()),
    ],
    "mutate an empty blob": lambda g: [
        g.mutate('query b() { insert Doc { title: "n", content: "base64:" } }'),
        g.read_blob("node", "Doc", "n", "content").read().decode(),
        g.read_blob("node", "Doc", "n", "content").length,
    ],
    "mutate many": lambda g: [
        g.mutate_many([(ADD, "add", {"name": "eve"}), (AGE, "age", {"name": "eve", "age": 7})], message="both"),
        people(g),
        g.head().message,
    ],
    "mutate many of plain sources": lambda g: g.mutate_many(
        ['query a() { insert Person { name: "x" } }', (_DROP_ADA,)]
    ),
    "mutate many where one fails": lambda g: _kept(g, lambda: g.mutate_many([(ADD, None, {"name": "eve"}), "query"])),
    "mutate many with parameters as the name": lambda g: _kept(g, lambda: g.mutate_many([(ADD, {"name": "eve"})])),
    "mutate many of one text": lambda g: _kept(g, lambda: g.mutate_many(ADD)),
    "mutate many of nothing new": lambda g: g.mutate_many([(DROP, "drop", {"name": "nobody"})]),
    "mutate many at the head": lambda g: g.mutate_many([(ADD, "add", {"name": "x"})], if_commit=g.head().id),
    "mutate many at another commit": lambda g: g.mutate_many([(ADD, "add", {"name": "x"})], if_commit=NO_COMMIT),
    "mutate many with a key": lambda g: [
        g.mutate_many([(ADD, "add", {"name": "x"})], idempotency_key="k"),
        g.mutate_many([(ADD, "add", {"name": "x"})], idempotency_key="k"),
        len(g.commits()),
    ],
    "mutate many on an unknown branch": lambda g: g.mutate_many([(ADD, "add", {"name": "x"})], branch="none"),
    "mutate many with an unknown parameter": lambda g: g.mutate_many([(ADD, "add", {"name": "x", "none": 1})]),
    "a transaction": lambda g: _transacted(g),
    "a transaction on a branch": lambda g: [_transacted(branched(g), branch="b"), people(g, branch="b")],
    "a transaction that is rolled back": lambda g: _rolled_back(g),
    "a transaction whose block fails": lambda g: _kept(g, lambda: _failing_block(g)),
    "commits of a kind": lambda g: [add(g), g.commits(kind="load"), g.commits(kind="mutation")],
    "commits since a moment": lambda g: [
        add(g),
        len(g.commits(since=g.head().created_at)),
        len(g.commits(until=g.head().created_at - 1)),
        len(g.commits(since=datetime(2000, 1, 1))),
    ],
    "commits of an actor": lambda g: [add(g), g.commits(actor="nobody")],
    "commits of an unknown kind": lambda g: g.commits(kind="none"),
    "stats": lambda g: [(table.type_key, table.rows, table.fragments) for table in g.stats().tables],
    "stats of an unknown branch": lambda g: g.stats("none"),
    "recoveries of nothing": lambda g: g.recoveries(),
    "ensure indices": lambda g: [g.ensure_indices(dry_run=True), g.ensure_indices(), g.ensure_indices()],
    "ensure indices of a type": lambda g: g.ensure_indices(types="node:Doc"),
    "ensure indices of an unknown type": lambda g: g.ensure_indices(types=["node:None"]),
    "optimize": lambda g: [add(g), g.optimize(dry_run=True), g.optimize(), g.head().kind],
    "cleanup": lambda g: [
        add(g),
        add(g, "fay"),
        _cleaned(g.cleanup(keep=1, dry_run=True)),
        _cleaned(g.cleanup(keep=1)),
    ],
    "cleanup by age": lambda g: _cleaned(g.cleanup(older_than=timedelta(days=1))),
    "cleanup without a rule": lambda g: g.cleanup(),
    "retrying": lambda g: [g.retrying(lambda h: set_age(h, people(h)[0]["p.age"] + 1)), people(g)],
    "retrying what fails": lambda g: g.retrying(lambda h: h.query("query")),
    "retrying with no attempts": lambda g: g.retrying(lambda h: None, attempts=0),
    "load": lambda g: [g.load(EVE), people(g)],
    "load of nothing": lambda g: g.load(b""),
    "load merge": lambda g: [g.load(b'{"type":"Person","data":{"name":"ada","age":1}}', "merge"), people(g)],
    "load overwrite": lambda g: [
        g.load(b'{"edge":"Knows","from":"ben","to":"ada"}', "overwrite"),
        _export(g, types=["Knows"]).count("\n"),
    ],
    "load of dicts": lambda g: [g.load([{"type": "Person", "data": {"name": "eve"}}]), people(g)],
    "load of dicts with floats that are not finite": lambda g: _scored(
        g, lambda: [{"type": "Person", "data": {"name": f"p{n}", "score": score}} for n, score in enumerate(_SCORES)]
    ),
    "load of a table with floats that are not finite": lambda g: _scored(
        g, lambda: pa.table({"name": ["p0", "p1", "p2"], "score": [math.nan, None, -math.inf]}), type="Person"
    ),
    "load of a table with large integers as floats": lambda g: _scored(
        g, lambda: pa.table({"name": ["p0"], "half": pa.array([2**64 - 1], pa.uint64())}), type="Person"
    ),
    "load of a table with bytes and decimals": lambda g: [
        g.load(pa.table({"title": ["n"], "content": [b"abc"]}), type="Doc"),
        g.read_blob("node", "Doc", "n", "content").read().decode(),
        _scored(g, lambda: pa.table({"name": ["p0"], "score": [Decimal("1.50")]}), type="Person"),
    ],
    "load of dicts with Python values": lambda g: [
        g.load(
            [
                {"type": "Person", "data": {"name": "eve", "age": Decimal("7"), "big": pa.scalar(2**40)}},
                {"type": "Person", "data": {"name": "fay", "day": pd.Timestamp("2026-01-02"), "born": pd.NaT}},
                {"type": "Doc", "data": {"title": "n", "content": b"abc"}},
            ]
        ),
        [g.entity("node", "Person", name) for name in ("eve", "fay")],
        g.read_blob("node", "Doc", "n", "content").read().decode(),
    ],
    "load of a dict with a float as an integer": lambda g: g.load(
        [{"type": "Person", "data": {"name": "x", "age": 1.5}}]
    ),
    "load of a generator": lambda g: g.load({"type": "Person", "data": {"name": f"p{n}"}} for n in range(50)),
    "load of a stream": lambda g: g.load(io.BytesIO(EVE)),
    "load of a file": lambda g: g.load(_file(EVE.decode(), ".jsonl")),
    "load of several files": lambda g: g.load(
        [_file(EVE.decode(), ".jsonl"), _file(EVE.decode().replace("eve", "fay"), ".jsonl")]
    ),
    "load of a table": lambda g: [
        g.load(pa.table({"name": ["eve"], "age": pa.array([3], pa.int32())}), type="Person"),
        people(g),
    ],
    "load of a table of edges": lambda g: g.load(pa.table({"from": ["ben"], "to": ["ada"]}), edge="Knows"),
    "load of a mapped table": lambda g: [
        g.load(pa.table({"n": ["eve"]}), type="Person", mapping={"n": "name"}),
        people(g),
    ],
    "load with a comment": lambda g: g.load(b"// hello\n\n" + EVE),
    "load leniently": lambda g: [
        g.load(b'{"type":"Person","extra":1,\n"data":{"name":"eve","none":2}}', lenient=True),
        people(g),
    ],
    "load into a new branch": lambda g: [g.load(EVE, branch="b", base="main"), g.branches()],
    "load at the head": lambda g: g.load(EVE, if_commit=g.head().id),
    "load at another commit": lambda g: g.load(EVE, if_commit=NO_COMMIT),
    "load with a key": lambda g: [g.load(EVE, idempotency_key="k"), g.load(EVE, idempotency_key="k"), len(g.commits())],
    "load with a key of another": lambda g: [
        g.load(EVE, idempotency_key="k"),
        g.load(b"", "merge", idempotency_key="k"),
    ],
    "ingest": lambda g: [g.ingest(EVE, "agent/1"), g.branches(), people(g, branch="agent/1")],
    "ingest twice": lambda g: [g.ingest(EVE, "b"), g.ingest(EVE, "b")],
    "create a branch": lambda g: [g.create_branch("b"), g.branches()],
    "create a branch of a branch": lambda g: [g.create_branch("b"), g.create_branch("c", "b"), g.branches()],
    "create a branch twice": lambda g: [g.create_branch("b"), g.create_branch("b")],
    "create a branch below another": lambda g: [g.create_branch("b"), g.create_branch("b/c")],
    "delete a branch": lambda g: [g.create_branch("agent/1"), g.delete_branch("agent/1"), g.branches()],
    "delete a branch with children": lambda g: [g.create_branch("b"), g.create_branch("c", "b"), g.delete_branch("b")],
    "delete the branch of the handle": lambda g: [g.create_branch("b"), g.at("b").delete_branch("b")],
    "merge forward": lambda g: [branched(g).merge("b"), people(g)],
    "merge with nothing new": lambda g: [g.create_branch("b"), g.merge("b")],
    "merge two sides": lambda g: [branched(g), add(g, "fay"), g.merge("b"), people(g)][1:],
    "merge and delete": lambda g: [branched(g).merge("b", delete_branch=True), g.branches()],
    "merge and be refused to delete": lambda g: [branched(g).create_branch("c", "b"), g.merge("b", delete_branch=True)],
    "merge with conflicts": lambda g: diverged(g).merge("b"),
    "merge for ours": lambda g: [diverged(g).merge("b", strategy="ours"), people(g)],
    "merge for theirs": lambda g: [diverged(g).merge("b", strategy="theirs"), people(g)],
    "merge as a trial": lambda g: [diverged(g).merge("b", dry_run=True), len(g.commits())],
    "merge as a trial with images": lambda g: diverged(g).merge("b", dry_run=True, images=True),
    "merge with a resolution": lambda g: [
        diverged(g).merge("b", resolutions=[{"type_key": "node:Person", "id": "ada", "take": "theirs"}]),
        people(g),
    ],
    "merge with a wrong resolution": lambda g: diverged(g).merge(
        "b", resolutions=[{"type_key": "node:None", "id": "x", "take": "ours"}]
    ),
    "merge with a wrong strategy": lambda g: diverged(g).merge("b", strategy="none"),
    "branches with keys": lambda g: [
        g.create_branch("b", idempotency_key="k").commit == g.create_branch("b", idempotency_key="k").commit,
        g.delete_branch("b", idempotency_key="l"),
        g.delete_branch("b", idempotency_key="l"),
        g.branches(),
    ],
    "a branch with a key of another": lambda g: [
        g.create_branch("b", idempotency_key="k").commit == g.head().id,
        g.create_branch("c", idempotency_key="k"),
    ],
    "tags with keys": lambda g: [
        g.tag("t", idempotency_key="k") == g.tag("t", idempotency_key="k"),
        g.delete_tag("t", idempotency_key="l"),
        g.delete_tag("t", idempotency_key="l"),
        g.tags(),
        g.tag("u", idempotency_key="k"),
    ],
    "a setting with a key": lambda g: [
        g.set_config("merge.level", "property", idempotency_key="k"),
        g.set_config("merge.level", None),
        g.set_config("merge.level", "property", idempotency_key="k"),
        g.config(),
        g.set_config("merge.level", "entity", idempotency_key="k"),
    ],
    "a schema with a key": lambda g: [
        g.apply_schema(_renamed(), idempotency_key="k"),
        g.apply_schema(_renamed(), idempotency_key="k"),
        len(g.commits()),
        g.apply_schema(SCHEMA, idempotency_key="k"),
    ],
    "upkeep with keys": lambda g: [
        [add(g, name).commit is not None for name in ("eve", "fay")],
        g.ensure_indices(idempotency_key="i") == g.ensure_indices(idempotency_key="i"),
        g.optimize(idempotency_key="o") == g.optimize(idempotency_key="o"),
        g.cleanup(keep=1, idempotency_key="c") == g.cleanup(keep=1, idempotency_key="c"),
        len(g.commits()),
        g.cleanup(keep=2, idempotency_key="c"),
    ],
    "merge with a key": lambda g: [branched(g).merge("b", idempotency_key="k"), g.merge("b", idempotency_key="k")],
    "merge into a branch": lambda g: [branched(g), add(g, "fay"), g.merge("main", "b"), people(g, branch="b")][1:],
    "rebase": lambda g: [branched(g), add(g, "fay"), g.rebase("b"), people(g, branch="b"), g.merge("b")][1:],
    "rebase with conflicts": lambda g: diverged(g).rebase("b"),
    "rebase by a strategy": lambda g: [diverged(g).rebase("b", strategy="ours"), people(g, branch="b")],
    "revert": lambda g: [add(g), g.revert(g.head().id), people(g)],
    "revert with conflicts": lambda g: [set_age(g, 1), set_age(g, 2), g.revert(g.commits()[1].id)],
    "cherry-pick": lambda g: [branched(g).cherry_pick(g.head("b").id), people(g)],
    "cherry-pick with conflicts": lambda g: diverged(g).cherry_pick(g.head("b").id),
    "tag": lambda g: [g.tag("v1") == g.head().id, g.tags(), g.query(ALL, snapshot="v1")],
    "tag a commit": lambda g: [g.tag("v1", g.commits()[-1].id), g.tags()],
    "tag twice": lambda g: [g.tag("v1"), add(g), g.tag("v1")],
    "tag an unknown commit": lambda g: g.tag("v1", NO_COMMIT),
    "delete a tag": lambda g: [g.tag("v1"), g.delete_tag("v1"), g.tags()],
    "the settings": lambda g: [g.config(), g.set_config("merge.level", "property"), g.config()],
    "unset a setting": lambda g: [
        g.set_config("merge.level", "property"),
        g.set_config("merge.level", None),
        g.config(),
    ],
    "an unknown setting": lambda g: g.set_config("merge.levl", "property"),
    "an unknown value of a setting": lambda g: g.set_config("merge.level", "properly"),
    "merge by habit": lambda g: [g.set_config("merge.level", "property"), branched(g).merge("b")],
    "delete an unknown tag": lambda g: g.delete_tag("none"),
    "apply a schema": lambda g: [
        g.apply_schema(SCHEMA.replace("age: I32?", "age: I32?\n  nick: String?")),
        g.schema() != SCHEMA,
    ],
    "apply with a backfill": lambda g: g.apply_schema(
        SCHEMA.replace("age: I32?", "age: I32?\n  nick: String"), backfill=["Person.nick = lower(name)"]
    ),
    "apply the same schema": lambda g: g.apply_schema(SCHEMA),
    "apply a refused schema": lambda g: g.apply_schema(SCHEMA.replace("age: I32?", "age: String?")),
    "apply what does not parse": lambda g: g.apply_schema("node {"),
    "apply a renamed type": lambda g: [g.apply_schema(_renamed()), g.entity("node", "Human", "ada")],
    "apply with branches": lambda g: [g.create_branch("b"), g.apply_schema(_renamed())],
    "a schema boundary": lambda g: [
        g.apply_schema(SCHEMA.replace("  day: Date?\n", "")),
        g.commit_changes(g.head().id),
    ],
    "the feed follows": lambda g: _followed(g),
    "the feed in pages": lambda g: _feed_pages(g),
    "the feed of a branch": lambda g: [branched(g).changes("b", start=f"after:{g.head().id}")],
    "changes of a mutation": lambda g: [set_age(g, 1), g.commit_changes(g.head().id)],
    "changes of a deletion": lambda g: [g.mutate(DROP, params={"name": "ada"}), g.commit_changes(g.head().id)],
    "diff of branches": lambda g: branched(g).diff("main", "b"),
    "diff by commits": lambda g: [set_age(g, 1), g.diff(g.commits()[1], g.head()).stats],
    "a large blob": lambda g: _large_blob(g),
    "refresh": lambda g: g.refresh(),
    "history of a branch": lambda g: [branched(g).commits("b"), g.head("b").branch],
    "time travel": lambda g: [g.head().id, add(g), people(g, snapshot=g.commits()[1].id)][1:],
}


_DROP_ADA = 'query d() { delete Person where name = "ada" }'


_SCORES: list[Any] = [math.nan, math.inf, -math.inf, None, np.float32("nan"), Decimal("NaN"), np.float32(0.1), 10**30]


def _scored(graph: Any, data: Callable[[], Any], **options: Any) -> Any:
    """Load persons with scores, and what the graph then holds."""
    graph.apply_schema(SCHEMA.replace("age: I32?", "age: I32?\n  score: F64?\n  half: F32?"))
    loaded = graph.load(data(), **options)
    return [loaded, _export(graph, types=["Person"])]


def _raised(work: Callable[[], Any]) -> Any:
    """The error of a call, for scenarios of several."""
    try:
        return work()
    except og.OmnigraphError as error:
        return [type(error).__name__, error.message]


def _class_of(work: Callable[[], Any]) -> Any:
    """Whether a call is a BadRequest, whose words differ where a server does not know what an embedded graph knows."""
    try:
        return work()
    except og.OmnigraphError as error:
        return isinstance(error, og.errors.BadRequest | og.errors.PreconditionFailed)


def _kept(graph: Any, work: Callable[[], Any]) -> Any:
    """The error of a call, and that it has left nothing."""
    before = graph.head().id
    try:
        return work()
    except og.OmnigraphError as error:
        return [type(error).__name__, error.message, graph.head().id == before, people(graph)]


def _transacted(graph: Any, **options: Any) -> Any:
    with graph.transaction(message="all", **options) as transaction:
        transaction.mutate(ADD, "add", {"name": "zoe"})
        transaction.mutate(AGE, "age", {"name": "zoe", "age": 9})
    return [transaction.result, transaction.branch, people(graph)]


def _rolled_back(graph: Any) -> Any:
    transaction = graph.transaction()
    transaction.mutate(ADD, "add", {"name": "zoe"})
    transaction.rollback()
    return _kept(graph, transaction.commit)


def _failing_block(graph: Any) -> Any:
    with graph.transaction() as transaction:
        transaction.mutate(ADD, "add", {"name": "zoe"})
        raise og.errors.BadRequest("on purpose")


def _cleaned(report: Any) -> Any:
    """What a cleanup says, without the sizes of files, which differ from graph to graph."""
    return [
        report.keep,
        report.older_than,
        report.dry_run,
        [(dataset.type_key, dataset.old_versions_removed, dataset.error) for dataset in report.datasets],
    ]


def _cancelled() -> og.Cancel:
    cancel = og.Cancel()
    cancel.cancel()
    return cancel


def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="scenario-"))


def _file(text: str, ending: str) -> Path:
    path = _folder() / f"file{ending}"
    path.write_text(text)
    return path


def _renamed() -> str:
    changed = SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {')
    return changed.replace("Person -> Person", "Human -> Human").replace("Person -> Doc", "Human -> Doc")


def _without_docs() -> str:
    return SCHEMA.partition("node Doc")[0] + "edge Knows: Person -> Person {\n  since: Date?\n}\n"


def _export(graph: Any, **options: Any) -> str:
    out = _folder() / "out.jsonl"
    count = graph.export(out, **options)
    text = out.read_text()
    assert text.count("\n") == count
    return text


def _baseline(graph: Any, **options: Any) -> Any:
    out = _folder() / "out.jsonl"
    found = graph.baseline(None, out, **options)
    return [
        found.entities,
        found.commit == graph.head().id,
        out.read_text(),
        graph.changes(cursor=found.cursor, **options),
    ]


def _pages(graph: Any) -> Any:
    first = graph.commit_changes(graph.head().id, limit=4)
    rest = graph.commit_changes(graph.head().id, limit=4, page_token=first.next_page_token)
    return [first.changes, rest.changes, rest.next_page_token]


def _followed(graph: Any) -> Any:
    cursor = graph.changes().cursor
    add(graph, "eve")
    set_age(graph, 5)
    page = graph.changes(cursor=cursor)
    return [page, graph.changes(cursor=page.cursor)]


def _feed_pages(graph: Any) -> Any:
    cursor = graph.changes().cursor
    add(graph, "eve")
    add(graph, "fay")
    first = graph.changes(cursor=cursor, limit=1)
    return [first.blocks, graph.changes(page_token=first.next_page_token, limit=1)]


def _load_error(graph: Any) -> Any:
    path = _file(EVE.decode() + "{\n", ".jsonl")
    try:
        return graph.load(path)
    except og.errors.LoadRejected as error:
        return [
            error.message.replace(str(path), "FILE"),
            [(file == str(path), line) for file, line, _ in error.errors],
            error.total,
        ]


def _large_blob(graph: Any) -> Any:
    content = bytes(range(256)) * (5 * 2**20 // 256)
    text = f"base64:{base64.b64encode(content).decode()}"
    graph.load(orjson.dumps({"type": "Doc", "data": {"title": "large", "content": text}}))
    blob = graph.read_blob("node", "Doc", "large", "content")
    return [
        blob.length,
        b"".join(blob) == content,
        blob.read(2**22 - 1, 2**22 + 1) == content[2**22 - 1 : 2**22 + 1],
        _too_long(blob),
    ]


def _too_long(blob: Any) -> Any:
    try:
        return len(blob.read())
    except og.errors.ResourceLimit as error:
        return error.to_dict()
