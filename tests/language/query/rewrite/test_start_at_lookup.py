"""Rule start_at_lookup: where a component starts."""

from __future__ import annotations

import pytest

from omnigraph.language.query.rewrite.start_at import start_at_lookup
from tests.language.query.rewrite.fixture import Case, check_rule, read

CASES = (
    Case(
        "start_at_lookup",
        read('$s: Staff { level: 3 } $s mentors{1,2} $m $s memberOf $t $t: Team { code: "core" } $s.level = $m.level'),
        """\
        Project one = 1
          Expand $s -[MemberOf out]-> $t: Team key("core")
            Filter $s.level = $m.level
              Expand $s -[Mentors out {1,2}]-> $m: Staff
                NodeScan $s: Staff where $s.level = 3""",
        """\
        Project one = 1
          Filter $s.level = $m.level
            Expand $s -[Mentors out {1,2}]-> $m: Staff
              Expand $t -[MemberOf in]-> $s: Staff where $s.level = 3
                NodeScan $t: Team key("core")""",
    ),
    Case(
        "start_at_lookup in a cycle",
        read("$a: Staff $a mentors $b $b mentors $c $c <mentors> $a $c: Staff { handle: $h }"),
        """\
        Project one = 1
          Close $c -[Mentors both]-> $a: Staff
            Expand $b -[Mentors out]-> $c: Staff key($h)
              Expand $a -[Mentors out]-> $b: Staff
                NodeScan $a: Staff""",
        """\
        Project one = 1
          Close $c -[Mentors both]-> $a: Staff
            Expand $b -[Mentors in]-> $a: Staff
              Expand $c -[Mentors in]-> $b: Staff
                NodeScan $c: Staff key($h)""",
    ),
    Case(
        "start_at_lookup leaves alone a scan that is a lookup",
        read('$s: Staff { handle: $h } $s memberOf $t $t: Team { code: "core" }'),
        """\
        Project one = 1
          Expand $s -[MemberOf out]-> $t: Team key("core")
            NodeScan $s: Staff key($h)""",
        """\
        Project one = 1
          Expand $s -[MemberOf out]-> $t: Team key("core")
            NodeScan $s: Staff key($h)""",
    ),
    Case(
        "start_at_lookup leaves alone what stands below a fused rank, but looks inside",
        read('$s: Staff $s memberOf $t $t: Team { code: "x" } rrf(nearest($s.emb, $v), bm25($s.handle, "a")) > 0.01'),
        """\
        Project one = 1
          Filter rrf(nearest_l2($s.emb, $v), bm25($s.handle, "a"), 60) > 0.01
            Expand $s -[MemberOf out]-> $t: Team key("x")
              NodeScan $s: Staff""",
        """\
        Project one = 1
          Filter rrf(nearest_l2($s.emb, $v), bm25($s.handle, "a"), 60) > 0.01
            Expand $t -[MemberOf in]-> $s: Staff
              NodeScan $t: Team key("x")""",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_before_and_after(case: Case) -> None:
    check_rule(start_at_lookup, case)
