"""Rule prune_columns: only what is used is read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph.language.query import ir
from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.rewrite.prune_columns import prune_columns
from omnigraph.language.types import Scalar
from tests.language.query.rewrite.fixture import CATALOG, Case, check_rule, read

CASES = (
    Case(
        "prune_columns",
        read(
            "$s: Staff { level: 3 } $s $e:mentors $m $m memberOf $t $t.size < $m.level "
            "not { $x: Staff $x.level = $t.size $x memberOf $t }",
            "$s.handle, $e.began",
            "order { $t.code } limit 3",
        ),
        """\
        Project s.handle = $s.handle, e.began = $e.began
          Order $t.code asc nulls first ties $s.id, $m.id, $t.id, $e.id limit 3
            AntiJoin on $t
              Filter $t.size < $m.level
                Expand $m -[MemberOf out]-> $t: Team
                  Expand $s -[$e: Mentors out]-> $m: Staff
                    NodeScan $s: Staff where $s.level = 3
              Filter $x.level = $t.size
                Expand $t -[MemberOf in]-> $x: Staff
                  Outer $t""",
        """\
        Project s.handle = $s.handle, e.began = $e.began
          Order $t.code asc nulls first ties $s.id, $m.id, $t.id, $e.id limit 3
            AntiJoin on $t
              Filter $t.size < $m.level
                Expand $m -[MemberOf out]-> $t: Team reading (code, id, size)
                  Expand $s -[$e: Mentors out reading (began, id)]-> $m: Staff reading (id, level)
                    NodeScan $s: Staff where $s.level = 3 reading (handle, id)
              Filter $x.level = $t.size
                Expand $t -[MemberOf in]-> $x: Staff reading (level)
                  Outer $t""",
    ),
    Case(
        "prune_columns: what is only counted is not read",
        read("$s: Staff $s mentors $m $t: Team", "$s.level, count($m) as n"),
        """\
        Project s.level = s.level, n = n
          Aggregate n = count(*) by s.level = $s.level weighted
            CountRows
              CountPaths
                | $s -[Mentors out]-> $m: Staff
                NodeScan $s: Staff
              NodeScan $t: Team""",
        """\
        Project s.level = s.level, n = n
          Aggregate n = count(*) by s.level = $s.level weighted
            CountRows
              CountPaths
                | $s -[Mentors out]-> $m: Staff reading ()
                NodeScan $s: Staff reading (id, level)
              NodeScan $t: Team reading ()""",
    ),
    Case(
        "prune_columns: counted paths and closed cycles need ids",
        read("$s: Staff $s mentors $m $m mentors $s $s $e:mentors $x", "count($s) as n"),
        """\
        Project n = n
          Aggregate n = count(*) weighted
            CountPaths
              | $s -[$e: Mentors out]-> $x: Staff
              Close $m -[Mentors out]-> $s: Staff
                Expand $s -[Mentors out]-> $m: Staff
                  NodeScan $s: Staff""",
        """\
        Project n = n
          Aggregate n = count(*) weighted
            CountPaths
              | $s -[$e: Mentors out reading ()]-> $x: Staff reading ()
              Close $m -[Mentors out]-> $s: Staff
                Expand $s -[Mentors out]-> $m: Staff reading (id)
                  NodeScan $s: Staff reading (id)""",
    ),
    Case(
        "prune_columns: a ranked scan hands up its distance, not its vector",
        read("$s: Staff", "$s.handle, nearest($s.emb, $v) as d", "order { nearest($s.emb, $v) } limit 3"),
        """\
        Project s.handle = $s.handle, d = nearest_l2($s.emb, $v)
          Order nearest_l2($s.emb, $v) asc nulls last ties $s.id limit 3
            RankedScan $s: Staff by nearest_l2($s.emb, $v) limit 3""",
        """\
        Project s.handle = $s.handle, d = nearest_l2($s.emb, $v)
          Order nearest_l2($s.emb, $v) asc nulls last ties $s.id limit 3
            RankedScan $s: Staff reading (handle, id) by nearest_l2($s.emb, $v) limit 3""",
    ),
    Case(
        "prune_columns of blocks and names",
        read(
            "$s: Staff optional { $s memberOf $t } } with { $s, $t.size as size } match { $s mentors $m",
            "$s.level, $m.handle, $size",
        ),
        """\
        Project s.level = $s.level, m.handle = $m.handle, size = $size
          Expand $s -[Mentors out]-> $m: Staff
            Fetch $s: Staff
              With $s, $size
                Project s.id = $s.id, =size.#value = $t.size
                  OptionalJoin on $s
                    NodeScan $s: Staff
                    Expand $s -[MemberOf out]-> $t: Team
                      Outer $s""",
        """\
        Project s.level = $s.level, m.handle = $m.handle, size = $size
          Expand $s -[Mentors out]-> $m: Staff reading (handle)
            Fetch $s: Staff reading (level)
              With $s, $size
                Project s.id = $s.id, =size.#value = $t.size
                  OptionalJoin on $s
                    NodeScan $s: Staff reading (id)
                    Expand $s -[MemberOf out]-> $t: Team reading (size)
                      Outer $s""",
    ),
)


def test_a_value_keeps_its_type_where_only_blocks_read_it() -> None:
    """What is read of a value is one column of its type, whichever of the operators above asks for it."""
    for name in ("a", "b", "best", "when", "first", "began", "d", "oldest"):
        text = read(
            f"$s $e: mentors $x }} with {{ $s, min($e.began) as {name} }} match {{ $n: Staff|Team",
            f"$s.handle, count {{ $s $f: mentors $y ($f.began > ${name} or $f.began is null) }} as m, "
            "exists { $s memberOf $t ($t.size > 1) } as one",
        )
        plan = compile_query(text, None, CATALOG).rewritten
        assert not isinstance(plan, ir.MutationPlan)
        (union,) = (found for found in everything_in(plan) if isinstance(found, ir.Union))
        assert union.columns is not None
        (kind,) = (column.type for column in union.columns if column.variable == f"={name}")
        assert kind.scalar is Scalar.DATE


def everything_in(plan: ir.Plan) -> Iterator[ir.Plan]:
    yield plan
    for child in ir.children(plan):
        yield from everything_in(child)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_before_and_after(case: Case) -> None:
    check_rule(prune_columns, case)
