"""`RESULTS.md`: a section for each family of benchmarks, with the day and the load it was measured under."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Row
from bench.table import machine, moment, render

RESULTS = Path(__file__).with_name("RESULTS.md")
_TITLE = "# Results of the last runs of `python -m bench`"


def keep(family: str, rows: Sequence[Row], path: Path = RESULTS) -> None:
    """Put a family that was run whole in the place of what was known of it."""
    sections = _sections(path.read_text()) if path.exists() else {}
    sections[family] = f"{_listed(moment())}\n\n{render(rows)}\n"
    body = "\n".join(f"## {name}\n\n{sections[name]}" for name in sorted(sections))
    path.write_text(f"{_TITLE}\n\n{_listed(machine())}\n\n{body}")


def _sections(text: str) -> dict[str, str]:
    """The sections by their names."""
    _, *parts = re.split(r"^## (\S+)\n+", text, flags=re.MULTILINE)
    return {name: body.rstrip("\n") + "\n" for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _listed(facts: Sequence[str]) -> str:
    return "\n".join(f"- {fact}" for fact in facts)
