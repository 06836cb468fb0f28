"""Every object that a verb returns shows itself in a notebook, and no value leaves its cell."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.shown import Listing, Shown

SCHEMA = """
node Person { name: String @key  age: I32? @index }
edge Knows: Person -> Person { since: Date? }
"""
NAMES = "match { $p: Person } return { $p.name } order { $p.age }"
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e&\"'"
#: What a message may hold of it.
MESSAGE = "<script>alert(1)</script>&\"'"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    g = og.init(str(tmp_path_factory.mktemp("notebook") / "g.omni"), SCHEMA)
    people = [{"type": "Person", "data": {"name": f"p{number}", "age": number}} for number in range(60)]
    edges = [{"edge": "Knows", "from": f"p{number}", "to": f"p{number + 1}", "data": {}} for number in range(20)]
    g.load([*people, {"type": "Person", "data": {"name": HOSTILE}}, *edges])
    g.create_branch("work")
    g.mutate('update Person set { age: 7 } where name = "p1"', branch="work", message=MESSAGE)
    g.mutate('update Person set { age: 8 } where name = "p1"')
    g.mutate('delete Person where name = "p2"')
    return g


CASES: dict[str, tuple[Callable[[og.Graph], Any], tuple[str, ...]]] = {
    "graph": (lambda g: g, ("Graph", "main", "g.omni")),
    "result": (lambda g: g.query(f"{NAMES} limit 3"), ("3 rows", "p.name")),
    "many rows": (lambda g: g.query(NAMES), ("60 rows", "the first 20 and the last 5", "…")),
    "explanation": (lambda g: g.explain("match { $p: Person { age: 3 } } return { $p.name }"), ("Plan", "NodeScan")),
    "commits": (lambda g: g.commits(), ("mutation", "load", "time (UTC)")),
    "commit": (lambda g: g.head(), ("Commit", "mutation")),
    "branches": (lambda g: g.branch_states(), ("work", "ahead")),
    "recoveries": (lambda g: g.recoveries(), ("nothing",)),
    "snapshot": (lambda g: g.snapshot(), ("node:Person", "edge:Knows")),
    "diff": (lambda g: g.diff("main", "work"), ("before", "after", "p1", "1 updated")),
    "comparison": (lambda g: g.compare("main", "work"), ("Person", "inserted")),
    "commit changes": (lambda g: g.commit_changes(g.head().id), ("p2", "3 deleted", "minus")),
    "feed": (lambda g: g.changes(start="beginning"), ("block", "cursor")),
    "baseline": (lambda g: g.baseline(), ("Baseline", "cursor")),
    "mutation": (lambda g: g.mutate('insert Person { name: "new" }'), ("1 node", "commit")),
    "load": (
        lambda g: g.load([{"type": "Person", "data": {"name": "newer"}}], "merge", engine="local"),
        ("1 node", "local", "merge"),
    ),
    "merge": (lambda g: g.merge("work", "main", dry_run=True, images=True), ("1 conflict", "ours", "theirs", "base")),
    "schema": (lambda g: g.contract(), ("<svg", "Knows")),
    "schema plan": (lambda g: g.plan_schema(SCHEMA.replace("age: I32?", "age: I32?  city: String?")), ("can be applied", "city")),
    "neighbours": (lambda g: g.neighbours("Person", "p5"), ("Knows", "p6")),
    "stats": (lambda g: g.stats(), ("node:Person", "fragments")),
    "indexes": (lambda g: g.ensure_indices(dry_run=True), ("Indexes",)),
    "optimize": (lambda g: g.optimize(dry_run=True), ("Optimize", "nothing was changed")),
    "cleanup": (lambda g: g.cleanup(keep=50, dry_run=True), ("Cleanup", "nothing was changed")),
    "repair": (lambda g: g.repair(), ("Repair",)),
    "verify": (lambda g: g.verify(), ("no damage", "looked at")),
    "picture": (lambda g: g.picture("Person", "p5"), ("<svg", "Person")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_it_shows_itself(name: str, graph: og.Graph) -> None:
    make, expected = CASES[name]
    shown = make(graph)._repr_html_()
    for word in expected:
        assert word in shown, f"{word!r} is missing in {shown}"
    assert "<script" not in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_values_stay_text(graph: og.Graph) -> None:
    rows = graph.query("match { $p: Person } return { $p.name, $p.age } order { $p.age nulls first } limit 1")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m\\u202e&amp;&quot;&#x27;" in rows._repr_html_()
    commits = graph.commits("work")
    assert isinstance(commits, Listing)
    assert "<script" not in commits._repr_html_()


def test_only_what_is_shown_is_read(graph: og.Graph) -> None:
    result = graph.query("match { $p: Person } return { $p.name }")
    result._repr_html_()
    assert "rows" not in vars(result), "all rows were made for a table of some"


def test_a_listing_is_a_list(graph: og.Graph) -> None:
    commits = graph.commits()
    assert isinstance(commits, Listing)
    assert commits == list(commits)
    assert commits[0] == graph.head()


def returned() -> list[tuple[str, type]]:
    """The classes of ours that verbs return, with the verb."""
    found = []
    for name, verb in inspect.getmembers(og.Graph, inspect.isfunction):
        if name.startswith("_"):
            continue
        text = inspect.signature(verb).return_annotation
        for home in vars(inspect.getmodule(inspect.unwrap(verb))).values():
            if inspect.isclass(home) and dataclasses.is_dataclass(home) and text == home.__name__:
                found.append((name, home))
    return found


@pytest.mark.parametrize(
    ("verb", "kind"), returned(), ids=lambda value: value if isinstance(value, str) else value.__name__
)
def test_what_verbs_return_is_shown(verb: str, kind: type) -> None:
    assert issubclass(kind, Shown), f"{verb} returns {kind.__name__}, which a notebook shows as plain text"


def test_the_page_is_not_loaded_before_it_is_shown(tmp_path: Path) -> None:
    code = "import omnigraph, sys; omnigraph.Commit; print('omnigraph.notebook.objects' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
