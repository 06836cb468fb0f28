"""Rule push_nots: `not` moves inwards, nested `and` and `or` become one."""

from __future__ import annotations

import pytest

from omnigraph.language.query.rewrite.push_nots import push_nots
from tests.language.query.rewrite.fixture import Case, check_rule, read

CASES = (
    Case(
        "push_nots",
        read("$s: Staff not ($s.level = 3 or not ($s.level < 9 and $s.handle is null))"),
        """\
        Project one = 1
          Filter not ($s.level = 3 or not ($s.level < 9 and $s.handle is null))
            NodeScan $s: Staff""",
        """\
        Project one = 1
          Filter $s.level != 3 and $s.level < 9 and $s.handle is null
            NodeScan $s: Staff""",
    ),
    Case(
        "push_nots makes chains",
        read("$s: Staff ($s.level = 1 or ($s.level = 2 or $s.level = 3)) and ($s.level > 0 and $s.level < 9)"),
        """\
        Project one = 1
          Filter ($s.level = 1 or ($s.level = 2 or $s.level = 3)) and $s.level > 0 and $s.level < 9
            NodeScan $s: Staff""",
        """\
        Project one = 1
          Filter ($s.level = 1 or $s.level = 2 or $s.level = 3) and $s.level > 0 and $s.level < 9
            NodeScan $s: Staff""",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_before_and_after(case: Case) -> None:
    check_rule(push_nots, case)
