"""Ways to call the command line in a test: in this process, or as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import pytest

from omnigraph.cli.main import run


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> Outcome:
    """Run a command line in this process, exactly as the installed command does."""
    code = run(arguments)
    captured = capsys.readouterr()
    return Outcome(code, captured.out, captured.err)


def spawn(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command line as a process."""
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-m", "omnigraph", *arguments], capture_output=True, text=True, check=False, **options
    )
