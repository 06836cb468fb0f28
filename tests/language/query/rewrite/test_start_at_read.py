"""Rule start_at_read: a count starts where something is read."""

from __future__ import annotations

import pytest

from omnigraph.language.query.rewrite.start_at import start_at_read
from tests.language.query.rewrite.fixture import Case, check_rule, read

CASES = (
    Case(
        "start_at_read",
        read("$a: Staff $a mentors $b $b memberOf $t", "$b.handle, $t.code, count($a) as n"),
        """\
        Project b.handle = b.handle, t.code = t.code, n = n
          Aggregate n = count(*) by b.handle = $b.handle, t.code = $t.code
            Expand $b -[MemberOf out]-> $t: Team
              Expand $a -[Mentors out]-> $b: Staff
                NodeScan $a: Staff""",
        """\
        Project b.handle = b.handle, t.code = t.code, n = n
          Aggregate n = count(*) by b.handle = $b.handle, t.code = $t.code
            Expand $b -[MemberOf out]-> $t: Team
              Expand $b -[Mentors in]-> $a: Staff
                NodeScan $b: Staff""",
    ),
    Case(
        "start_at_read leaves alone a scan that has conditions",
        read("$a: Staff $a.level > 1 $a mentors $b", "$b.handle, count($a) as n"),
        """\
        Project b.handle = b.handle, n = n
          Aggregate n = count(*) by b.handle = $b.handle
            Expand $a -[Mentors out]-> $b: Staff
              NodeScan $a: Staff where $a.level > 1""",
        """\
        Project b.handle = b.handle, n = n
          Aggregate n = count(*) by b.handle = $b.handle
            Expand $a -[Mentors out]-> $b: Staff
              NodeScan $a: Staff where $a.level > 1""",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_before_and_after(case: Case) -> None:
    check_rule(start_at_read, case)
