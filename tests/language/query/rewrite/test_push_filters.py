"""Rule push_filters: a filter moves to where its variables are bound."""

from __future__ import annotations

import pytest

from omnigraph.language.query.rewrite.push_filters import push_filters
from tests.language.query.rewrite.fixture import Case, check_rule, read

CASES = (
    Case(
        "push_filters",
        read(
            "$s: Staff $s $e:mentors $m $t: Team $m.level > 3 $s.level < $m.level $t.size = $s.level $n > 3 "
            '$e.id > "e" $s.id > "a"'
        ),
        """\
        Project one = 1
          Filter $m.level > 3 and $s.level < $m.level and $t.size = $s.level and $n > 3 and $e.id > "e" and $s.id > "a"
            CrossJoin
              Expand $s -[$e: Mentors out]-> $m: Staff
                NodeScan $s: Staff
              NodeScan $t: Team""",
        """\
        Project one = 1
          Filter $t.size = $s.level
            CrossJoin
              Filter $s.level < $m.level
                Expand $s -[$e: Mentors out where $e.id > "e"]-> $m: Staff where $m.level > 3
                  Filter $n > 3
                    NodeScan $s: Staff where $s.id > "a"
              NodeScan $t: Team""",
    ),
    Case(
        "push_filters beside another filter",
        read("$s: Staff $s $e:mentors $m $s.level < $m.level $e.id != $m.id $m.id != $s.id"),
        """\
        Project one = 1
          Filter $s.level < $m.level and $e.id != $m.id and $m.id != $s.id
            Expand $s -[$e: Mentors out]-> $m: Staff
              NodeScan $s: Staff""",
        """\
        Project one = 1
          Filter $s.level < $m.level and $m.id != $s.id and $e.id != $m.id
            Expand $s -[$e: Mentors out]-> $m: Staff
              NodeScan $s: Staff""",
    ),
    Case(
        "push_filters leaves what may fail above the traversal",
        read("$s: Staff $s $e:mentors $m $m.level > 3 and 9 / $m.level > 1 length($e.id) + 1 > 3"),
        """\
        Project one = 1
          Filter $m.level > 3 and (9 / $m.level) > 1 and (length($e.id) + 1) > 3
            Expand $s -[$e: Mentors out]-> $m: Staff
              NodeScan $s: Staff""",
        """\
        Project one = 1
          Filter (9 / $m.level) > 1
            Filter (length($e.id) + 1) > 3
              Expand $s -[$e: Mentors out]-> $m: Staff where $m.level > 3
                NodeScan $s: Staff""",
    ),
    Case(
        "push_filters in a negation",
        read("$s: Staff not { $s mentors $m $m.level > 3 $s.level = 1 }"),
        """\
        Project one = 1
          AntiJoin on $s
            NodeScan $s: Staff
            Filter $m.level > 3 and $s.level = 1
              Expand $s -[Mentors out]-> $m: Staff
                Outer $s""",
        """\
        Project one = 1
          AntiJoin on $s
            NodeScan $s: Staff
            Expand $s -[Mentors out]-> $m: Staff where $m.level > 3
              Filter $s.level = 1
                Outer $s""",
    ),
    Case(
        "push_filters below a fused rank",
        read('$s: Staff rrf(nearest($s.emb, $v), bm25($s.handle, "a")) > 0.01 $s.level > 3'),
        """\
        Project one = 1
          Filter rrf(nearest_l2($s.emb, $v), bm25($s.handle, "a"), 60) > 0.01 and $s.level > 3
            NodeScan $s: Staff""",
        """\
        Project one = 1
          Filter rrf(nearest_l2($s.emb, $v), bm25($s.handle, "a"), 60) > 0.01
            NodeScan $s: Staff where $s.level > 3""",
    ),
    Case(
        "push_filters goes below an optional block that it does not speak about",
        read("$s: Staff optional { $s mentors $m $m.level = 1 } $s.level = 3 $m.level is null"),
        """\
        Project one = 1
          Filter $s.level = 3 and $m.level is null
            OptionalJoin on $s
              NodeScan $s: Staff
              Filter $m.level = 1
                Expand $s -[Mentors out]-> $m: Staff
                  Outer $s""",
        """\
        Project one = 1
          Filter $m.level is null
            OptionalJoin on $s
              NodeScan $s: Staff where $s.level = 3
              Expand $s -[Mentors out]-> $m: Staff where $m.level = 1
                Outer $s""",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_before_and_after(case: Case) -> None:
    check_rule(push_filters, case)
