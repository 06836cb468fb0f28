"""Rule push_negations: a negation moves below what it does not speak about."""

from __future__ import annotations

import pytest

from omnigraph.language.query.rewrite.push_filters import push_negations
from tests.language.query.rewrite.fixture import Case, check_rule, read

CASES = (
    Case(
        "push_negations",
        read(
            "$s: Staff { level: 3 } $s mentors $m $t: Team $s.level = $m.level "
            "not { $s memberOf $_ } not { $t.size = 1 } not { $m memberOf $t }"
        ),
        """\
        Project one = 1
          AntiJoin on $m, $t
            AntiJoin on $t
              AntiJoin on $s
                CrossJoin
                  Filter $s.level = $m.level
                    Expand $s -[Mentors out]-> $m: Staff
                      NodeScan $s: Staff where $s.level = 3
                  NodeScan $t: Team
                Expand $s -[MemberOf out]-> $_#1: Team
                  Outer $s
              Filter $t.size = 1
                Outer $t
            Close $m -[MemberOf out]-> $t: Team
              Outer $m, $t""",
        """\
        Project one = 1
          AntiJoin on $m, $t
            CrossJoin
              Filter $s.level = $m.level
                Expand $s -[Mentors out]-> $m: Staff
                  AntiJoin on $s
                    NodeScan $s: Staff where $s.level = 3
                    Expand $s -[MemberOf out]-> $_#1: Team
                      Outer $s
              AntiJoin on $t
                NodeScan $t: Team
                Filter $t.size = 1
                  Outer $t
            Close $m -[MemberOf out]-> $t: Team
              Outer $m, $t""",
    ),
    Case(
        "push_negations stays above a filter",
        read("$s: Staff $s mentors $m $s.level = $m.level not { $m memberOf $_ }"),
        """\
        Project one = 1
          AntiJoin on $m
            Filter $s.level = $m.level
              Expand $s -[Mentors out]-> $m: Staff
                NodeScan $s: Staff
            Expand $m -[MemberOf out]-> $_#1: Team
              Outer $m""",
        """\
        Project one = 1
          AntiJoin on $m
            Filter $s.level = $m.level
              Expand $s -[Mentors out]-> $m: Staff
                NodeScan $s: Staff
            Expand $m -[MemberOf out]-> $_#1: Team
              Outer $m""",
    ),
    Case(
        "push_negations moves a block that must match",
        read("$s: Staff $s mentors $m exists { $s memberOf $_ }"),
        """\
        Project one = 1
          SemiJoin on $s
            Expand $s -[Mentors out]-> $m: Staff
              NodeScan $s: Staff
            Expand $s -[MemberOf out]-> $_#1: Team
              Outer $s""",
        """\
        Project one = 1
          Expand $s -[Mentors out]-> $m: Staff
            SemiJoin on $s
              NodeScan $s: Staff
              Expand $s -[MemberOf out]-> $_#1: Team
                Outer $s""",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_before_and_after(case: Case) -> None:
    check_rule(push_negations, case)
