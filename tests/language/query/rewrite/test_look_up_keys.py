"""Rule look_up_keys: equality on the whole key."""

from __future__ import annotations

import pytest

from omnigraph.language.query.rewrite.look_up_keys import look_up_keys
from tests.language.query.rewrite.fixture import Case, check_rule, read

CASES = (
    Case(
        "look_up_keys",
        read(
            '$s: Staff { handle: $h, level: 3 } $s mentors $m $m: Staff { id: "x" } $p: Spot { y: 2, x: $n } $p.z > 1'
        ),
        """\
        Project one = 1
          CrossJoin
            Expand $s -[Mentors out]-> $m: Staff where $m.id = "x"
              NodeScan $s: Staff where $s.handle = $h and $s.level = 3
            NodeScan $p: Spot where $p.y = 2 and $p.x = $n and $p.z > 1""",
        """\
        Project one = 1
          CrossJoin
            Expand $s -[Mentors out]-> $m: Staff id("x")
              NodeScan $s: Staff key($h) where $s.level = 3
            NodeScan $p: Spot key($n, 2) where $p.z > 1""",
    ),
    Case(
        "look_up_keys written the other way round",
        read("$s: Staff $h = $s.handle"),
        """\
        Project one = 1
          NodeScan $s: Staff where $h = $s.handle""",
        """\
        Project one = 1
          NodeScan $s: Staff key($h)""",
    ),
    Case(
        "look_up_keys keeps a second value for the same key",
        read('$s: Staff { handle: "a" } $s.handle = "b"'),
        """\
        Project one = 1
          NodeScan $s: Staff where $s.handle = "a" and $s.handle = "b\"""",
        """\
        Project one = 1
          NodeScan $s: Staff key("a") where $s.handle = "b\"""",
    ),
    *(
        Case(
            f"look_up_keys leaves alone: {why}",
            read(clauses),
            f"Project one = 1\n  NodeScan {scan}",
            f"Project one = 1\n  NodeScan {scan}",
        )
        for why, clauses, scan in (
            ("half of a key", "$p: Spot { x: 1 }", "$p: Spot where $p.x = 1"),
            ("a float for an integer", "$p: Spot { x: 1, y: $d }", "$p: Spot where $p.x = 1 and $p.y = $d"),
            ("a float key", "$g: Gauge { reading: 0.1 }", "$g: Gauge where $g.reading = 0.1"),
            ("not equality", "$s: Staff $s.handle >= $h", "$s: Staff where $s.handle >= $h"),
            ("not a constant", "$s: Staff $s.handle = $s.id", "$s: Staff where $s.handle = $s.id"),
        )
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_before_and_after(case: Case) -> None:
    check_rule(look_up_keys, case)
