"""`omnigraph functions`: everything in the registry, for people and for programs."""

from __future__ import annotations

import json

import pytest

from omnigraph.language.query.completion import WORDS
from omnigraph.language.query.functions import AGGREGATES, FUNCTIONS
from tests.cli.calling import call

Capsys = pytest.CaptureFixture[str]


def test_all_of_them(capsys: Capsys) -> None:
    outcome = call(capsys, "functions")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[:3] == ["text", "  lower(text)", "      The text in lower case."]
    assert "  substring(text, start, [length])" in lines
    assert "aggregates" in lines
    for name in (*FUNCTIONS, *AGGREGATES):
        assert f"  {name}(" in outcome.out


def test_for_programs(capsys: Capsys) -> None:
    found = json.loads(call(capsys, "functions", "--json").out)["functions"]
    assert [entry["name"] for entry in found] == [*FUNCTIONS, *AGGREGATES]
    (substring,) = (entry for entry in found if entry["name"] == "substring")
    assert substring == {
        "name": "substring",
        "group": "text",
        "usage": ["substring(text, start, [length])"],
        "help": FUNCTIONS["substring"].help,
        "aggregate": False,
        "nulls": "null when an argument is null",
        "signatures": [
            {
                "arguments": [
                    {"name": "text", "kind": "text", "optional": False},
                    {"name": "start", "kind": "integer", "optional": False},
                    {"name": "length", "kind": "integer", "optional": True},
                ],
                "repeats": False,
            }
        ],
    }


def test_one(capsys: Capsys) -> None:
    assert call(capsys, "functions", "median").out.splitlines() == [
        "aggregates",
        "  median(x)",
        f"      {AGGREGATES['median'].help}",
    ]
    outcome = call(capsys, "functions", "uper")
    assert (outcome.code, outcome.err) == (1, "Error: there is no function 'uper'; did you mean `upper`?\n")


def test_the_shell_completes_them() -> None:
    assert {f"{name}(" for name in (*FUNCTIONS, *AGGREGATES)} <= set(WORDS)
