"""Rule bound_order: an order with a limit."""

from __future__ import annotations

import pytest

from omnigraph.language.query.rewrite.rank_scans import bound_order
from tests.language.query.rewrite.fixture import Case, check_rule, read

CASES = (
    Case(
        "bound_order",
        read("$s: Staff", "$s.handle", "order { $s.level } limit 3"),
        """\
        Project s.handle = $s.handle
          Limit 3
            Order $s.level asc nulls first ties $s.id
              NodeScan $s: Staff""",
        """\
        Project s.handle = $s.handle
          Order $s.level asc nulls first ties $s.id limit 3
            NodeScan $s: Staff""",
    ),
    Case(
        "bound_order leaves a limit without an order alone",
        read("$s: Staff", "$s.handle", "limit 3"),
        """\
        Project s.handle = $s.handle
          Limit 3
            NodeScan $s: Staff""",
        """\
        Project s.handle = $s.handle
          Limit 3
            NodeScan $s: Staff""",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_before_and_after(case: Case) -> None:
    check_rule(bound_order, case)
