"""Every planted bug is found: a copy of the source with the bug in it makes its test fail. The long run does so for all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.planted.bugs import BUGS, FOR_THE_SOAK, PROJECT, SOURCE, Bug

#: How pytest ends when tests ran and some failed.
TESTS_FAILED = 1


def _run(source: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python that imports omnigraph from a folder."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    where = subprocess.run(
        [sys.executable, "-c", "import omnigraph; print(omnigraph.__file__)"],
        env=environment, cwd=PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(where.stdout.strip()).is_relative_to(source)
    return subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=PROJECT, capture_output=True, text=True, check=False
    )


@pytest.mark.long
@pytest.mark.parametrize("bug", [pytest.param(bug, id=bug.name) for bug in BUGS])
def test_a_planted_bug_is_found(bug: Bug, tmp_path: Path) -> None:
    source = bug.plant(tmp_path / "src")
    done = _run(source, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", bug.test)
    assert done.returncode == TESTS_FAILED, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("bug", [pytest.param(bug, id=bug.name) for bug in FOR_THE_SOAK])
def test_the_soak_finds_a_planted_bug(bug: Bug, tmp_path: Path) -> None:
    source = bug.plant(tmp_path / "src")
    done = _run(source, "-m", "tests.soak", "--minutes", "10", "--until", bug.finds, *bug.test.split())
    assert done.returncode == 1, done.stdout[-3000:] + done.stderr[-1000:]
    assert re.search(f"VIOLATION .*({bug.finds})", done.stdout), done.stdout[-3000:]


@pytest.mark.parametrize("bug", [pytest.param(bug, id=bug.name) for bug in (*BUGS, *FOR_THE_SOAK)])
def test_a_planted_bug_has_its_place_and_its_test(bug: Bug) -> None:
    """The cheap half, so that a row that no longer fits the code is seen at once."""
    assert (SOURCE / "omnigraph" / bug.file).read_text().count(bug.old) == 1
    file, _, name = bug.test.partition("::")
    if bug in BUGS:
        assert f"def {name.partition('[')[0]}(" in (PROJECT / file).read_text()
