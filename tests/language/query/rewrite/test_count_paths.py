"""Rule count_paths: traversals that are only counted."""

from __future__ import annotations

import pytest

from omnigraph.language.query.rewrite.count_paths import count_paths
from tests.language.query.rewrite.fixture import Case, check_rule, read

CASES = (
    Case(
        "count_paths",
        read("$s: Staff $s mentors $m", "$s.handle, count($m) as n"),
        """\
        Project s.handle = s.handle, n = n
          Aggregate n = count(*) by s.handle = $s.handle
            Expand $s -[Mentors out]-> $m: Staff
              NodeScan $s: Staff""",
        """\
        Project s.handle = s.handle, n = n
          Aggregate n = count(*) by s.handle = $s.handle weighted
            CountPaths
              | $s -[Mentors out]-> $m: Staff
              NodeScan $s: Staff""",
    ),
    Case(
        "count_paths of chains and branches",
        read(
            "$s: Staff $s mentors $a $a $e:mentors $b $b: Staff { level: 3 } $a memberOf $t "
            "$s mentors{1,2} $c $s memberOf $u",
            "$u.size, count($s.level) as n, count($b) as m",
        ),
        """\
        Project u.size = u.size, n = n, m = m
          Aggregate n = count($s.level), m = count(*) by u.size = $u.size
            Expand $s -[MemberOf out]-> $u: Team
              Expand $s -[Mentors out {1,2}]-> $c: Staff
                Expand $a -[MemberOf out]-> $t: Team
                  Expand $a -[$e: Mentors out]-> $b: Staff where $b.level = 3
                    Expand $s -[Mentors out]-> $a: Staff
                      NodeScan $s: Staff""",
        """\
        Project u.size = u.size, n = n, m = m
          Aggregate n = count($s.level), m = count(*) by u.size = $u.size weighted
            CountPaths
              | $s -[Mentors out]-> $a: Staff
              |   $a -[$e: Mentors out]-> $b: Staff where $b.level = 3
              |   $a -[MemberOf out]-> $t: Team
              | $s -[Mentors out {1,2}]-> $c: Staff
              Expand $s -[MemberOf out]-> $u: Team
                NodeScan $s: Staff""",
    ),
    Case(
        "count_paths asks only whether a negation leads anywhere",
        read("$s: Staff not { $s memberOf $_ }"),
        """\
        Project one = 1
          AntiJoin on $s
            NodeScan $s: Staff
            Expand $s -[MemberOf out]-> $_#1: Team
              Outer $s""",
        """\
        Project one = 1
          AntiJoin on $s
            NodeScan $s: Staff
            CountPaths
              | $s -[MemberOf out]-> $_#1: Team
              Outer $s""",
    ),
    Case(
        "count_paths keeps what is read, compared or closed",
        read(
            "$s: Staff $s mentors $a $a mentors $b $b mentors $s $s $e:mentors $c $c memberOf $t $t.size = $s.level",
            "count($e.began) as n",
        ),
        """\
        Project n = n
          Aggregate n = count($e.began)
            Filter $t.size = $s.level
              Expand $c -[MemberOf out]-> $t: Team
                Expand $s -[$e: Mentors out]-> $c: Staff
                  Close $b -[Mentors out]-> $s: Staff
                    Expand $a -[Mentors out]-> $b: Staff
                      Expand $s -[Mentors out]-> $a: Staff
                        NodeScan $s: Staff""",
        """\
        Project n = n
          Aggregate n = count($e.began)
            Filter $t.size = $s.level
              Expand $c -[MemberOf out]-> $t: Team
                Expand $s -[$e: Mentors out]-> $c: Staff
                  Close $b -[Mentors out]-> $s: Staff
                    Expand $a -[Mentors out]-> $b: Staff
                      Expand $s -[Mentors out]-> $a: Staff
                        NodeScan $s: Staff""",
    ),
    Case(
        "count_paths multiplies what a product would enumerate",
        read("$s: Staff $t: Team $s mentors $m $x: Spot", "$t.code, count($m) as n"),
        """\
        Project t.code = t.code, n = n
          Aggregate n = count(*) by t.code = $t.code
            CrossJoin
              CrossJoin
                Expand $s -[Mentors out]-> $m: Staff
                  NodeScan $s: Staff
                NodeScan $t: Team
              NodeScan $x: Spot""",
        """\
        Project t.code = t.code, n = n
          Aggregate n = count(*) by t.code = $t.code weighted
            CountRows
              CountRows
                NodeScan $t: Team
                CountPaths
                  | $s -[Mentors out]-> $m: Staff
                  NodeScan $s: Staff
              NodeScan $x: Spot""",
    ),
    Case(
        "count_paths keeps a product whose sides are compared",
        read("$s: Staff $t: Team $s.level = $t.size", "count($s) as n"),
        """\
        Project n = n
          Aggregate n = count(*)
            Filter $s.level = $t.size
              CrossJoin
                NodeScan $s: Staff
                NodeScan $t: Team""",
        """\
        Project n = n
          Aggregate n = count(*)
            Filter $s.level = $t.size
              CrossJoin
                NodeScan $s: Staff
                NodeScan $t: Team""",
    ),
    Case(
        "count_paths asks a negation for one row of what only has to be there",
        read("$s: Staff not { $s memberOf $_ $t: Team }"),
        """\
        Project one = 1
          AntiJoin on $s
            NodeScan $s: Staff
            CrossJoin
              Expand $s -[MemberOf out]-> $_#1: Team
                Outer $s
              NodeScan $t: Team""",
        """\
        Project one = 1
          AntiJoin on $s
            NodeScan $s: Staff
            CountRows
              CountPaths
                | $s -[MemberOf out]-> $_#1: Team
                Outer $s
              Limit 1
                NodeScan $t: Team""",
    ),
    Case(
        "count_paths leaves other aggregates alone",
        read("$s: Staff $s mentors $m", "count($m) as n, sum($s.level) as t"),
        """\
        Project n = n, t = t
          Aggregate n = count(*), t = sum($s.level)
            Expand $s -[Mentors out]-> $m: Staff
              NodeScan $s: Staff""",
        """\
        Project n = n, t = t
          Aggregate n = count(*), t = sum($s.level)
            Expand $s -[Mentors out]-> $m: Staff
              NodeScan $s: Staff""",
    ),
    Case(
        "count_paths takes the count of a block from degrees",
        read("$s: Staff count { $s mentors $m } > 2"),
        """\
        Project one = 1
          Filter $1 > 2
            Attach $1 = count(*) on $s
              NodeScan $s: Staff
              Expand $s -[Mentors out]-> $m: Staff
                Outer $s""",
        """\
        Project one = 1
          Filter $1 > 2
            Attach $1 = count(*) on $s weighted
              NodeScan $s: Staff
              CountPaths
                | $s -[Mentors out]-> $m: Staff
                Outer $s""",
    ),
    Case(
        "count_paths enumerates steps of no hop",
        read("$s: Staff count { $s mentors{0,2} $m } > 2"),
        """\
        Project one = 1
          Filter $1 > 2
            Attach $1 = count(*) on $s
              NodeScan $s: Staff
              Expand $s -[Mentors out {0,2}]-> $m: Staff
                Outer $s""",
        """\
        Project one = 1
          Filter $1 > 2
            Attach $1 = count(*) on $s
              NodeScan $s: Staff
              Expand $s -[Mentors out {0,2}]-> $m: Staff
                Outer $s""",
    ),
    Case(
        "count_paths asks only whether a block has a match",
        read("$s: Staff exists { $s mentors $m }"),
        """\
        Project one = 1
          SemiJoin on $s
            NodeScan $s: Staff
            Expand $s -[Mentors out]-> $m: Staff
              Outer $s""",
        """\
        Project one = 1
          SemiJoin on $s
            NodeScan $s: Staff
            CountPaths
              | $s -[Mentors out]-> $m: Staff
              Outer $s""",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_before_and_after(case: Case) -> None:
    check_rule(count_paths, case)
