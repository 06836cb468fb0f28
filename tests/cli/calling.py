"""Ways to call the command line in a test: in this process, or as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

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


def spawn(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command line as a process."""
    command = [sys.executable, "-m", "omnigraph", *arguments]
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, capture_output=True, text=True, check=False, **options
    )
    return done
