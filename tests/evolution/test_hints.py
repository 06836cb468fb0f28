"""What looks like a rename: the plan says so and shows the line to write."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og

BEFORE = """
node Person { name: String @key bio: String? age: I32? born: Date? }
node Office { code: String @key city: String? }
edge Knows: Person -> Person { since: Date? }
"""


@pytest.mark.parametrize(
    ("after", "hints"),
    [
        pytest.param(
            BEFORE.replace("bio: String?", "about: String?"),
            [
                "'Person.bio' is dropped and 'about' is added; if that is a rename, write: about: String? @rename_from(\"bio\")"
            ],
            id="the-only-one-of-its-type",
        ),
        pytest.param(
            BEFORE.replace("age: I32?", "ages: I64? @index"),
            [
                "'Person.age' is dropped and 'ages' is added; if that is a rename, write: ages: I64? @rename_from(\"age\")"
            ],
            id="wider-too",
        ),
        pytest.param(
            BEFORE.replace("since: Date?", "sinse: Date?"),
            [
                "'Knows.since' is dropped and 'sinse' is added; if that is a rename, write: sinse: Date? @rename_from(\"since\")"
            ],
            id="of-an-edge",
        ),
        pytest.param(
            BEFORE.replace("Office", "Site"),
            [
                "node type 'Office' is dropped and 'Site' is added; if that is a rename, "
                'write: node Site @rename_from("Office")'
            ],
            id="a-type-with-the-same-properties",
        ),
        pytest.param(
            BEFORE.replace("Knows:", "Knowz:"),
            [
                "edge type 'Knows' is dropped and 'Knowz' is added; if that is a rename, "
                'write: edge Knowz: Person -> Person @rename_from("Knows")'
            ],
            id="an-edge-type",
        ),
        pytest.param(BEFORE.replace("bio: String?", "seen: DateTime?"), [], id="another-type"),
        pytest.param(BEFORE.replace("bio: String?", "x: String? y: String?"), [], id="which-of-two"),
        pytest.param(BEFORE.replace("bio: String?", 'x: String? @rename_from("bio")'), [], id="a-rename"),
        pytest.param(BEFORE.replace("bio: String?", ""), [], id="only-dropped"),
        pytest.param(
            BEFORE.replace("node Office { code: String @key city: String? }", "node Rain { mm: F64 }"), [], id="no-twin"
        ),
    ],
)
def test_hints(tmp_path: Path, after: str, hints: list[str]) -> None:
    graph = og.init(tmp_path / "graph", BEFORE)
    plan = graph.plan_schema(after)
    assert [str(hint) for hint in plan.hints] == hints
    assert [hint["text"] for hint in plan.to_dict().get("hints", [])] == hints


def test_the_line_is_a_rename(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", BEFORE)
    (hint,) = graph.plan_schema(BEFORE.replace("bio: String?", "about: String?")).hints
    renamed = graph.plan_schema(BEFORE.replace("bio: String?", hint.line))
    assert [step.kind for step in renamed.steps] == ["rename_property"]
    assert renamed.hints == ()
