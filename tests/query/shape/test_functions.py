"""Every function of the registry has a kernel and a line on its page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from omnigraph.language.query.functions import AGGREGATES, FUNCTIONS
from omnigraph.query.shape.functions import KERNELS
from omnigraph.query.shape.functions.choices import CHOICES
from omnigraph.query.shape.functions.dates import DATES
from omnigraph.query.shape.functions.lists import LISTS
from omnigraph.query.shape.functions.numbers import NUMBERS
from omnigraph.query.shape.functions.texts import TEXTS

ROOT = Path(__file__).parent.parent.parent.parent
#: Functions that are part of the plan instead of a kernel.
OF_THE_PLAN = {"if", "id", "type", "nodes", "edges", "object"}


def test_every_function_has_a_kernel() -> None:
    assert FUNCTIONS.keys() - KERNELS.keys() == OF_THE_PLAN
    assert not {name for name in KERNELS if name.isidentifier()} - FUNCTIONS.keys() - {"negative"}


def test_no_function_is_in_two_families() -> None:
    families = (CHOICES, DATES, LISTS, NUMBERS, TEXTS)
    assert sum(map(len, families)) == len(KERNELS)


def test_every_function_has_a_line_of_help() -> None:
    helps = [one.help for one in FUNCTIONS.values()] + [one.help for one in AGGREGATES.values()]
    assert all(text.endswith((".", "`.")) for text in helps)


def test_the_page_is_made_from_the_registry() -> None:
    made = subprocess.run(
        [sys.executable, "-c", "import runpy; print(runpy.run_path('scripts/functions_page.py')['page'](), end='')"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ROOT / "docs" / "functions.md").read_text() == made.stdout
