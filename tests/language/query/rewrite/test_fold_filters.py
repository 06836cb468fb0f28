"""Rule fold_filters: conditions that stand twice or stand between literals."""

from __future__ import annotations

import pytest

from omnigraph.language.query.rewrite.fold_filters import fold_filters
from tests.language.query.rewrite.fixture import Case, check_rule, read

CASES = (
    Case(
        "fold_filters",
        read(
            "$s: Staff { level: 3 } $s.level = 3 $s.level = 4 "
            '1 < 2.5 "abc" contains "b" "abc" starts_with "a" [1, 2] contains 2'
        ),
        """\
        Project one = 1
          Filter 1 < 2.5 and "abc" contains "b" and "abc" starts_with "a" and [1, 2] has 2
            NodeScan $s: Staff where $s.level = 3 and $s.level = 3 and $s.level = 4""",
        """\
        Project one = 1
          NodeScan $s: Staff where $s.level = 3 and $s.level = 4""",
    ),
    Case(
        "fold_filters to false",
        read('$s: Staff "a" > "b" $n > 3'),
        """\
        Project one = 1
          Filter "a" > "b" and $n > 3
            NodeScan $s: Staff""",
        """\
        Project one = 1
          Filter false
            NodeScan $s: Staff""",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_before_and_after(case: Case) -> None:
    check_rule(fold_filters, case)
