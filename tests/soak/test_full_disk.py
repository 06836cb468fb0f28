"""A disk that is full for moments: nothing that was acknowledged is lost, nothing that failed is there, nothing is wedged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

#: Bytes; a graph of the harness and its history fit in.
DISK = 24 << 20


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, where this process may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], check=False, capture_output=True, text=True
    )
    if made.returncode != 0:
        pytest.skip(
            f"a file system can not be mounted here ({made.stderr.strip()}); limited file sizes are tested instead"
        )
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def run(folder: Path, kind: str, episodes: int, seed: int, *more: str) -> dict[str, int]:
    """Let a process of its own go through the episodes; returns how often each kind of write ended how."""
    command = [sys.executable, "-m", "tests.soak.full_disk", str(folder), kind, str(episodes), str(seed), *more]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    lines = done.stdout.splitlines()
    found = json.loads(lines[-1])
    assert found["violations"] == 0, "\n".join(line for line in lines if "VIOLATION" in line)[:8000]
    counts: dict[str, int] = found["episodes"]
    assert sum(counts.values()) == episodes
    return counts


def failures(counts: dict[str, int]) -> int:
    return sum(count for name, count in counts.items() if not name.endswith(" ok"))


def test_files_that_are_cut_for_moments(tmp_path: Path) -> None:
    counts = run(tmp_path, "limited", 16, 1)
    assert failures(counts) > 2, counts


def test_a_disk_that_is_full_for_moments(mounted: Path) -> None:
    run(mounted, "mounted", 15, 2)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_files_that_are_cut_for_moments_at_length(tmp_path: Path, seed: int) -> None:
    assert failures(run(tmp_path, "limited", 100, 100 + seed)) > 20


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_a_disk_that_is_full_for_moments_at_length(mounted: Path, seed: int) -> None:
    assert failures(run(mounted, "mounted", 100, 200 + seed)) > 20


@pytest.mark.long
def test_a_disk_that_is_full_for_moments_with_loads_on_spark(mounted: Path) -> None:
    counts = run(mounted, "mounted", 64, 300, "spark")
    assert sum(count for name, count in counts.items() if name.startswith("load_on_spark")) == 4
