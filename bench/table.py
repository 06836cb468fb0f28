"""Rows as a Markdown table, and the machine and versions they were measured on."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.measure import Measure, Row

_HEADER = ("what", "ours", "spread", "floor or peer", "ratio", "goal", "met")
_PACKAGES = ("omnigraph", "pylance", "pyarrow", "obstore", "orjson", "click", "pyspark")
_SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def show(measure: Measure) -> str:
    """The median for people."""
    return _amount(measure.median, measure.unit)


def _amount(value: float, unit: str) -> str:
    if unit != "s":
        return f"{value:,.6g} {unit}"
    scale, name = next((item for item in _SCALES if value >= item[0]), _SCALES[-1])
    return f"{value / scale:.3g} {name}"


def render(rows: Iterable[Row]) -> str:
    """The table, its columns aligned."""
    cells = [_HEADER, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEADER))]
    header, *body = (_line(line, widths) for line in cells)
    return "\n".join([header, _line(["-" * width for width in widths], widths), *body])


def _cells(row: Row) -> tuple[str, ...]:
    ours, floor = row.ours, row.floor
    return (
        row.what,
        show(ours),
        f"{_amount(ours.low, ours.unit)} … {_amount(ours.high, ours.unit)}",
        f"{floor.name}: {show(floor.measure)}" if floor else "–",
        f"{row.ratio:.3g} ×" if row.ratio is not None else "–",
        f"≤ {_amount(row.goal, ours.unit)}" if row.goal is not None else "–",
        {None: "–", True: "yes", False: "NO"}[row.met],
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"| {' | '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))} |"


def machine() -> list[str]:
    """Machine and versions, one fact per line."""
    return [
        f"machine: {_processor()}, {os.cpu_count()} cores, {_memory()}, {platform.system()} {platform.release()}",
        f"versions: Python {platform.python_version()}, {', '.join(_versions())}",
    ]


def moment() -> list[str]:
    """When, and beside what else."""
    return [f"date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC", f"load average at the end: {os.getloadavg()[0]:.1f}"]


def _versions() -> Iterable[str]:
    for package in _PACKAGES:
        try:
            yield f"{package} {version(package)}"
        except PackageNotFoundError:
            continue


def _processor() -> str:
    for line in _read_lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    for line in _read_lines("/proc/meminfo"):
        if line.startswith("MemTotal"):
            return f"{int(line.split()[1]) / 2**20:.0f} GiB"
    return "memory unknown"


def _read_lines(path: str) -> list[str]:
    """The lines of a file that exists only on Linux."""
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
