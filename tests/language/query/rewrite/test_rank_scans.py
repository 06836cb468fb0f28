"""Rule rank_scans: the nearest, asked of the scan."""

from __future__ import annotations

import pytest

from omnigraph.language.query.rewrite.rank_scans import rank_scans
from tests.language.query.rewrite.fixture import Case, check_rule, read

CASES = (
    Case(
        "rank_scans",
        read(
            '$s: Staff { level: 3 } search($s.handle, "x")',
            "$s.handle",
            "order { nearest($s.emb, $v), $s.level desc } limit 3",
        ),
        """\
        Project s.handle = $s.handle
          Order nearest_l2($s.emb, $v) asc nulls last, $s.level desc nulls last ties $s.id limit 3
            NodeScan $s: Staff where $s.level = 3 and search($s.handle, "x")""",
        """\
        Project s.handle = $s.handle
          Order nearest_l2($s.emb, $v) asc nulls last, $s.level desc nulls last ties $s.id limit 3
            RankedScan $s: Staff where $s.level = 3 and search($s.handle, "x") by nearest_l2($s.emb, $v) limit 3""",
    ),
    Case(
        "rank_scans below a traversal",
        read("$s: Staff $s mentors $m $m.level = 3", "$s.handle", "order { nearest($s.emb, $v) } limit 3"),
        """\
        Project s.handle = $s.handle
          Order nearest_l2($s.emb, $v) asc nulls last ties $s.id, $m.id limit 3
            Expand $s -[Mentors out]-> $m: Staff where $m.level = 3
              NodeScan $s: Staff""",
        """\
        Project s.handle = $s.handle
          Order nearest_l2($s.emb, $v) asc nulls last ties $s.id, $m.id limit 3
            Expand $s -[Mentors out]-> $m: Staff where $m.level = 3
              RankedScan $s: Staff by nearest_l2($s.emb, $v) limit 3""",
    ),
    Case(
        "rank_scans by score",
        read("$s: Staff", "$s.handle", 'order { bm25($s.handle, "x") } limit 3'),
        """\
        Project s.handle = $s.handle
          Order bm25($s.handle, "x") desc nulls last ties $s.id limit 3
            NodeScan $s: Staff""",
        """\
        Project s.handle = $s.handle
          Order bm25($s.handle, "x") desc nulls last ties $s.id limit 3
            RankedScan $s: Staff by bm25($s.handle, "x") limit 3""",
    ),
    Case(
        "rank_scans by score below a traversal",
        read("$s: Staff $s mentors $m", "$s.handle", 'order { bm25($s.handle, "x") } limit 3'),
        """\
        Project s.handle = $s.handle
          Order bm25($s.handle, "x") desc nulls last ties $s.id, $m.id limit 3
            Expand $s -[Mentors out]-> $m: Staff
              NodeScan $s: Staff""",
        """\
        Project s.handle = $s.handle
          Order bm25($s.handle, "x") desc nulls last ties $s.id, $m.id limit 3
            Expand $s -[Mentors out]-> $m: Staff
              RankedScan $s: Staff by bm25($s.handle, "x") limit 3""",
    ),
    Case(
        "rank_scans by two ranks",
        read(
            "$s: Staff $s mentors $m", "$s.handle", 'order { rrf(nearest($s.emb, $v), bm25($s.handle, "x")) } limit 3'
        ),
        """\
        Project s.handle = $s.handle
          Order rrf(nearest_l2($s.emb, $v), bm25($s.handle, "x"), 60) desc nulls last ties $s.id, $m.id limit 3
            Expand $s -[Mentors out]-> $m: Staff
              NodeScan $s: Staff""",
        """\
        Project s.handle = $s.handle
          Order rrf(nearest_l2($s.emb, $v), bm25($s.handle, "x"), 60) desc nulls last ties $s.id, $m.id limit 3
            Expand $s -[Mentors out]-> $m: Staff
              FusedScan $s: Staff by rrf(nearest_l2($s.emb, $v), bm25($s.handle, "x"), 60) limit 3""",
    ),
    *(
        Case(
            f"rank_scans leaves alone: {why}",
            read(clauses, returns, tail),
            plan,
            plan,
        )
        for why, clauses, returns, tail, plan in (
            (
                "the far end of a traversal is ranked",
                "$s: Staff $s mentors $m",
                "$s.handle",
                "order { nearest($m.emb, $v) } limit 3",
                "Project s.handle = $s.handle\n"
                "  Order nearest_l2($m.emb, $v) asc nulls last ties $s.id, $m.id limit 3\n"
                "    Expand $s -[Mentors out]-> $m: Staff\n"
                "      NodeScan $s: Staff",
            ),
            (
                "a score among fewer texts would be another",
                "$s: Staff",
                'bm25($s.handle, "x") as b',
                "order { nearest($s.emb, $v) } limit 3",
                'Project b = bm25($s.handle, "x")\n'
                "  Order nearest_l2($s.emb, $v) asc nulls last ties $s.id limit 3\n"
                "    NodeScan $s: Staff",
            ),
            (
                "a fused rank that is shown",
                "$s: Staff",
                'rrf(nearest($s.emb, $v), bm25($s.handle, "x")) as r',
                "order { r desc } limit 3",
                'Project r = rrf(nearest_l2($s.emb, $v), bm25($s.handle, "x"), 60)\n'
                '  Order rrf(nearest_l2($s.emb, $v), bm25($s.handle, "x"), 60) desc nulls last ties $s.id limit 3\n'
                "    NodeScan $s: Staff",
            ),
            (
                "ranks of two variables",
                "$s: Staff $s mentors $m",
                "$s.handle",
                'order { rrf(nearest($s.emb, $v), bm25($m.handle, "x")) } limit 3',
                "Project s.handle = $s.handle\n"
                '  Order rrf(nearest_l2($s.emb, $v), bm25($m.handle, "x"), 60) desc nulls last ties $s.id, $m.id limit 3\n'
                "    Expand $s -[Mentors out]-> $m: Staff\n"
                "      NodeScan $s: Staff",
            ),
            (
                "the distance is not the first key",
                "$s: Staff",
                "$s.handle",
                "order { $s.level, nearest($s.emb, $v) } limit 3",
                "Project s.handle = $s.handle\n"
                "  Order $s.level asc nulls first, nearest_l2($s.emb, $v) asc nulls last ties $s.id limit 3\n"
                "    NodeScan $s: Staff",
            ),
            (
                "the farthest first",
                "$s: Staff",
                "nearest($s.emb, $v) as d",
                "order { d desc } limit 3",
                "Project d = nearest_l2($s.emb, $v)\n"
                "  Order nearest_l2($s.emb, $v) desc nulls last ties $s.id limit 3\n"
                "    NodeScan $s: Staff",
            ),
            (
                "nodes without a vector first",
                "$s: Staff",
                "nearest($s.emb, $v) as d",
                "order { d } limit 3",
                "Project d = nearest_l2($s.emb, $v)\n"
                "  Order nearest_l2($s.emb, $v) asc nulls first ties $s.id limit 3\n"
                "    NodeScan $s: Staff",
            ),
            (
                "no limit",
                "$s: Staff",
                "nearest($s.emb, $v) as d",
                "order { d }",
                "Project d = nearest_l2($s.emb, $v)\n"
                "  Order nearest_l2($s.emb, $v) asc nulls first ties $s.id\n"
                "    NodeScan $s: Staff",
            ),
        )
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_before_and_after(case: Case) -> None:
    check_rule(rank_scans, case)
