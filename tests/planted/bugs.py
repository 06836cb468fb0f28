"""Bugs that were planted once and that nothing caught, as data: where each is planted, and the test that must fail with it.

A bug is one replacement in one file of a copy of the source. `old` occurs exactly once there; when the code has moved on, the row
is brought up to date with it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SOURCE = PROJECT / "src"


@dataclass(frozen=True)
class Bug:
    """One planted bug.

    `test`: what pytest is given to run, or the arguments of `python -m tests.soak`. `finds`: a pattern of what the soak says.
    """

    name: str
    file: str
    old: str
    new: str
    test: str
    finds: str = ""

    def plant(self, target: Path) -> Path:
        """A copy of the source with the bug in it; returns the folder that is to come first on the path."""
        shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        path = target / "omnigraph" / self.file
        text = path.read_text()
        assert text.count(self.old) == 1, (
            f"{self.name}: its place in {self.file} is not there any more, or not the only one"
        )
        path.write_text(text.replace(self.old, self.new))
        return target


#: Each is found by a test of its own.
BUGS: tuple[Bug, ...] = ()

#: What the soak finds, whatever operation meets it: its sensitivity.
FOR_THE_SOAK = (
    Bug(
        "what a write has looked at is not required",
        "commit/protocol.py",
        "        needed += [read(entry) for entry in self.reads]\n",
        "",
        "--place local --seed 101",
        r"broke a rule: .*(dangles|mark|leads)|had to be refused",
    ),
    Bug(
        "half of a write is rolled forward",
        "commit/recovery.py",
        "    complete = decision is Decision.ROLL_FORWARD or (",
        "    complete = True or (",
        "--place local --seed 102",
        r"differs from the model|broke a rule|had to be refused",
    ),
    Bug(
        "cleanup forgets tags and merge bases",
        "maintenance/retention.py",
        "    for commit in (*_tagged(context), *_merge_bases(histories, states)):\n",
        "    for commit in ():\n",
        "--place local --seed 103 --round 20",
        r"tag .* can not be read|HistoricalVersionReclaimed",
    ),
    Bug(
        "a deleted node leaves the edges that lead to it",
        "mutation/statements.py",
        '            for end, type_name in (("src", edge.from_type), ("dst", edge.to_type)):\n',
        '            for end, type_name in (("src", edge.from_type),):\n',
        "--place local --seed 104 --round 10",
        r"differs from the model",
    ),
)
