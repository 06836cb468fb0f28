"""`omnigraph completion`: the scripts, and what they get to hear from the program."""

from __future__ import annotations

import os

import pytest

from tests.cli.calling import call, spawn

Capsys = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("shell", "mark"),
    [("bash", "complete -o nosort -F _omnigraph_completion"), ("zsh", "#compdef omnigraph"), ("fish", "complete ")],
)
def test_scripts(capsys: Capsys, shell: str, mark: str) -> None:
    outcome = call(capsys, "completion", shell)
    assert outcome.code == 0
    assert mark in outcome.out
    assert f"_OMNIGRAPH_COMPLETE={shell}_complete" in outcome.out


def test_an_unknown_shell(capsys: Capsys) -> None:
    outcome = call(capsys, "completion", "csh")
    assert (outcome.code, outcome.out) == (2, "")
    assert "'csh' is not one of 'bash', 'zsh', 'fish'" in outcome.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("omnigraph sna", {"snapshot"}),
        ("omnigraph branch ", {"create", "list", "merge", "rebase", "delete"}),
        ("omnigraph query --format j", {"json", "jsonl"}),
        ("omnigraph mutate --if", {"--if-commit"}),
        ("omnigraph branch list --sto", {"--store"}),
        ("omnigraph version --sto", set()),
    ],
)
def test_what_is_offered(words: str, expected: set[str]) -> None:
    words_so_far = words.split(" ")
    environment = {
        "_OMNIGRAPH_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words_so_far) - 1),
    }
    done = spawn(env=os.environ | environment)
    assert {line.partition(",")[2] for line in done.stdout.splitlines() if line} == expected
