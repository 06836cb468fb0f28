"""Cells of the query language in a real IPython session: results, parameters, errors of one line, completion, progress."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og

interactive = pytest.importorskip("IPython.core.interactiveshell")
completer = pytest.importorskip("IPython.core.completer")

SCHEMA = "node Person { name: String @key  age: I32? }  edge Knows: Person -> Person"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Any]:
    """A session with a graph `g` and the extension."""
    session = interactive.InteractiveShell()
    g = og.init(str(tmp_path / "g.omni"), SCHEMA)
    g.mutate(
        'insert Person { name: "Ada", age: 36 } insert Person { name: "Bob" } insert Knows { from: "Ada", to: "Bob" }'
    )
    session.user_ns["g"] = g
    assert session.run_cell("%load_ext omnigraph").success
    yield session
    session.run_cell("%unload_ext omnigraph")
    session.history_manager.enabled = False


def run(shell: Any, cell: str) -> Any:
    return shell.run_cell(cell).result


def completed(shell: Any, text: str) -> set[str]:
    """What IPython offers at the end of a text."""
    with completer.provisionalcompleter():
        return {one.text for one in shell.Completer.completions(text, len(text))}


def test_a_query(shell: Any) -> None:
    found = run(shell, "%%gq\nmatch { $p: Person } return { $p.name } order { $p.name }")
    assert [row["p.name"] for row in found] == ["Ada", "Bob"]


def test_a_query_on_a_line(shell: Any) -> None:
    assert run(shell, "%gq match { $p: Person } return { count($p) as n }").rows == [{"n": 2}]


def test_a_mutation_is_a_commit(shell: Any) -> None:
    done = run(shell, '%%gq g --branch main\ninsert Person { name: "Eve" }')
    assert done.affected_nodes == 1
    assert done.commit == shell.user_ns["g"].head()


def test_parameters_come_from_the_line_or_from_variables(shell: Any) -> None:
    query = "query older($least: I32) { match { $p: Person $p.age >= $least } return { $p.name } }"
    shell.user_ns["least"] = 30
    assert len(run(shell, f"%%gq\n{query}")) == 1
    assert len(run(shell, f"%%gq --param least=40\n{query}")) == 0
    assert len(run(shell, "%%gq --param least=30\nmatch { $p: Person $p.age >= $least } return { $p.name }")) == 1


def test_the_name_of_a_query_and_of_a_variable_for_its_result(shell: Any) -> None:
    two = "query a() { match { $p: Person } return { $p.name } } query b() { match { $p: Person } return { count($p) as n } }"
    assert run(shell, f"%%gq g b --to found\n{two}") is None
    assert shell.user_ns["found"].rows == [{"n": 2}]


def test_a_plan(shell: Any) -> None:
    assert "NodeScan" in str(run(shell, "%%gq --explain\nmatch { $p: Person } return { $p.name }"))
    assert run(shell, "%%gq --analyze\nmatch { $p: Person } return { $p.name }").analyzed


def test_the_past(shell: Any) -> None:
    before = shell.user_ns["g"].head().id
    run(shell, '%%gq\ninsert Person { name: "Eve" }')
    counted = "match { $p: Person } return { count($p) as n }"
    assert run(shell, f"%%gq --as-of {before}\n{counted}").rows == [{"n": 2}]
    assert run(shell, f"%%gq\n{counted}").rows == [{"n": 3}]


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("%%gq\nmatch { $p: Persn } return { $p.name }", "Person"),
        ("%%gq\nmatch { $p: Person return", "^"),
        ("%%gq --nonsense\nmatch { $p: Person } return { $p.name }", "--nonsense"),
        ("%%gq --param x\nmatch { $p: Person } return { $p.name }", "--param name=Ada"),
        ("%%gq --as-of main\ninsert Person { name: \"x\" }", "--as-of is for queries"),
    ],
)  # fmt: skip
def test_an_error_is_told_without_a_traceback(
    cell: str, told: str, shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    done = shell.run_cell(cell)
    assert type(done.error_in_exec).__name__ == "UsageError"
    shown = "".join(capsys.readouterr())
    assert told in shown
    assert "Traceback" not in shown


def test_without_a_graph(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    del shell.user_ns["g"]
    assert not shell.run_cell("%%gq\nmatch { $p: Person } return { $p.name }").success
    assert "open one first" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("match { $p: Per", "Person"),
        ("match { $p: Person } return { $p.na", ".name"),
        ("match { $p: Person $p kno", "knows"),
        ("mat", "match"),
        ("match { $p: Person } return { low", "lower("),
    ],
)
def test_completion(text: str, expected: str, shell: Any) -> None:
    cell = f"%%gq\n{text}"
    found = completed(shell, cell)
    assert expected in found


def test_other_cells_are_completed_as_before(shell: Any) -> None:
    shell.user_ns["mattress"] = 1
    found = completed(shell, "mat")
    assert "mattress" in found
    assert "match" not in found


def test_progress_ends_as_a_line(
    shell: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from omnigraph.notebook import magic as progress

    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    shown: list[str] = []

    def show(bar: Any, html: str) -> None:
        bar._display = bar
        shown.append(html)

    monkeypatch.setattr(progress.Bar, "_show", show)
    run(shell, 'g.load([{"type": "Person", "data": {"name": "Eve"}}])')
    assert any("load: " in html and "%" in html for html in shown)
    assert "s</span>" in shown[-1]


def test_the_extension_can_be_taken_away(shell: Any) -> None:
    assert shell.run_cell("%unload_ext omnigraph").success
    assert not shell.run_cell("%%gq\nmatch { $p: Person } return { $p.name }").success
