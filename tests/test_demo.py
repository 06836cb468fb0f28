"""The demo runs and shows what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).resolve().parent.parent / "examples" / "demo.py"


def test_the_demo_runs() -> None:
    done = subprocess.run([sys.executable, str(DEMO)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "did you mean `age`?" in done.stdout
    assert "Cleo        | 29" in done.stdout
    assert "RolledForward, for doomed; Ada is 99" in done.stdout
