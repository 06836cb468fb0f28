"""The demo and the tour run, say nothing on stderr, and show what they promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def test_the_demo_runs() -> None:
    shown = run("demo.py", "400")
    assert "line 1: @range violation on Paper.year: 1700 is not in 1950..2030" in shown
    assert "line 4: edge Cites" in shown
    assert "agent/1  has 2 retracted papers" in shown
    assert "20 updated, 0 deleted" in shown
    assert "\nmerged: commit" in shown
    assert "before the merge main had 0 retracted papers, now 2" in shown


def test_the_tour_runs() -> None:
    shown = run("tour.py")
    assert "did you mean `age`?" in shown
    assert "Cleo        | 29" in shown
    assert "RolledForward, for doomed; Ada is 99" in shown


def test_the_retriever_runs() -> None:
    shown = run("retriever.py").splitlines()
    assert [line.split(":")[0].split() for line in shown] == [["found", "p2"], ["cites", "p1"], ["<wrote", "Ada"]]
