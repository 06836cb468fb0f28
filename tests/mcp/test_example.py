"""The example of an agent's session is run as a program: find, describe, branch, mutate, preview, merge by another actor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "agent.py"
SHOWN = """\
found: [['Project', 'Engine']]
described: Somebody who works here. ['(Person) worksOn (Project): 1']
stored query: [['Ada', 'engineer']]
changed: 1 node and 1 edge by claude
preview: fast_forward 2 inserted
refused: policy denied action 'branch_merge' on branch 'agent/hiring' targeting branch 'main' for actor 'claude'
merged: fast_forward by lead
main: lead has merged, 4 commits
"""


def test_the_session_of_the_example(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == SHOWN
