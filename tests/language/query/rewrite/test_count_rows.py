"""Rule count_rows: counting what is never null."""

from __future__ import annotations

import pytest

from omnigraph.language.query.rewrite.count_paths import count_rows
from tests.language.query.rewrite.fixture import Case, check_rule, read

CASES = (
    Case(
        "count_rows",
        read(
            "$s: Staff $s memberOf $t",
            "count($s) as a, count($s.handle) as b, count($s.level) as c, sum($t.size) as d, count($n) as e",
        ),
        """\
        Project a = a, b = b, c = c, d = d, e = e
          Aggregate a = count($s.id), b = count($s.handle), c = count($s.level), d = sum($t.size), e = count($n)
            Expand $s -[MemberOf out]-> $t: Team
              NodeScan $s: Staff""",
        """\
        Project a = a, b = b, c = c, d = d, e = e
          Aggregate a = count(*), b = count(*), c = count($s.level), d = sum($t.size), e = count($n)
            Expand $s -[MemberOf out]-> $t: Team
              NodeScan $s: Staff""",
    ),
    Case(
        "count_rows of a block",
        read("$s: Staff", "count($m) { $s mentors $m } as n"),
        """\
        Project n = $1
          Attach $1 = count($m.id) on $s
            NodeScan $s: Staff
            Expand $s -[Mentors out]-> $m: Staff
              Outer $s""",
        """\
        Project n = $1
          Attach $1 = count(*) on $s
            NodeScan $s: Staff
            Expand $s -[Mentors out]-> $m: Staff
              Outer $s""",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_before_and_after(case: Case) -> None:
    check_rule(count_rows, case)
