"""The memory of a process and of those it started, watched while it runs: by role, and their sum at its highest."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

_EVERY_SECONDS = 0.2


@dataclass
class Peaks:
    """The highest memory of each role, and of all together, in MiB."""

    by_role: dict[str, float] = field(default_factory=dict)
    together: float = 0.0


def run_watched(arguments: Sequence[str]) -> tuple[str, Peaks]:
    """Run a Python program of its own and return what it printed, with its peaks."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True)
    peaks = Peaks()
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, peaks, ended))
    watcher.start()
    try:
        printed, _ = process.communicate()
    finally:
        ended.set()
        watcher.join()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} ended with {process.returncode}")
    return printed, peaks


def _watch(pid: int, peaks: Peaks, ended: threading.Event) -> None:
    while not ended.wait(_EVERY_SECONDS):
        sizes: dict[str, float] = {}
        for member in _tree(pid):
            size, role = _size(member), _role(member, pid)
            sizes[role] = sizes.get(role, 0.0) + size
        for role, size in sizes.items():
            peaks.by_role[role] = max(peaks.by_role.get(role, 0.0), size)
        peaks.together = max(peaks.together, sum(sizes.values()))


def _tree(pid: int) -> list[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


def _size(pid: int) -> float:
    """What a process holds by itself and its share of what it shares: forked workers share much."""
    try:
        for line in Path("/proc", str(pid), "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except (OSError, ValueError):
        pass
    return 0.0


def _role(pid: int, driver: int) -> str:
    if pid == driver:
        return "driver"
    try:
        program = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")[0]
    except OSError:
        return "workers"
    return "JVM" if program.endswith(b"java") else "workers"
