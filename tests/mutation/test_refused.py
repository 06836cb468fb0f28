"""A value that is computed and that its property can not hold: an error with its place, the reason and the first row."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.errors import EvaluationError

SCHEMA = """node P { name: String @key age: I32? big: I64? wide: F64? half: F32? nums: [I32]? }
edge Likes: P -> P { weight: U32? }"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("refused") / "g", SCHEMA)
    graph.mutate(
        """query put() {
          insert P { name: "a", age: 2, big: 2, wide: 0.5 }
          insert P { name: "b", age: 1500000001, big: 5000000000, wide: 1e300 }
          insert Likes { from: "a", to: "b", weight: 3 }
        }"""
    )
    return graph


@pytest.mark.parametrize(
    ("source", "written", "reason"),
    [
        (
            "update P set { age: age * 2 } where true",
            "age * 2",
            "P.age (I32?): 3000000002 is outside the range of I32, first for 'b'",
        ),
        (
            "update P set { age: age / 2 } where true",
            "age / 2",
            "P.age (I32?): 750000000.5 is not a whole number, I32 holds only those, first for 'b'",
        ),
        ("update P set { age: big } where true", "big", "5000000000 is outside the range of I32, first for 'b'"),
        ("update P set { half: wide } where true", "wide", "a number is outside the range of F32, first for 'b'"),
        ("update P set { nums: [age, big] } where true", "[age, big]", "5000000000 is outside the range of I32"),
        ("match { $p: P } update $p set { age: $p.big }", "$p.big", "P.age (I32?): 5000000000 is outside the range"),
        (
            'insert P { name: "c", age: 2147483647 + 1 }',
            "2147483647 + 1",
            "P.age (I32?): 2147483648 is outside the range",
        ),
        ('upsert P { name: "c", age: 5 / 2 }', "5 / 2", "P.age (I32?): 2.5 is not a whole number"),
        ('update P set { age: to_float("inf") } where true', 'to_float("inf")', "inf is not a whole number"),
        ('insert P { name: "c", age: to_float("nan") }', 'to_float("nan")', "nan is not a whole number"),
        ('match { $p: P } insert P { name: $p.name + "2", age: $p.big }', "$p.big", "5000000000 is outside the range"),
        ("update Likes set { weight: weight - 4 } where true", "weight - 4", "Likes.weight (U32?): -1 is outside"),
    ],
)
def test_the_place_and_the_reason(graph: og.Graph, source: str, written: str, reason: str) -> None:
    before = graph.head()
    with pytest.raises(EvaluationError) as refused:
        graph.mutate(f"// the first line\n{source}")
    error = refused.value
    assert reason in error.message
    assert error.message.endswith(f"in `{written}`")
    assert (error.line, error.column) == (2, source.index(written) + 1)
    assert str(error).splitlines()[-1].index("^") == len("  2 | ") + source.index(written)
    assert graph.head() == before


def test_a_file_a_later_statement_and_a_parameter(graph: og.Graph, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("queries") / "w.gq"
    path.write_text(
        'query w($n: I64) {\n  update P set { age: 1 } where name = "a"\n  insert P { name: "c", age: $n }\n}\n'
    )
    with pytest.raises(EvaluationError, match="outside the range of I32 in `\\$n`") as refused:
        graph.mutate(path, params={"n": 2**40})
    assert (refused.value.file, refused.value.line, refused.value.column) == (str(path), 3, 30)


def test_what_fits_is_rounded_to_the_width_of_its_column(graph: og.Graph) -> None:
    with graph.transaction() as writing:
        writing.mutate('update P set { half: wide / 5, age: big * 1.0 } where name = "a"')
        found = writing.query('match { $p: P { name: "a" } } return { $p.half, $p.age }')
        assert found.to_dicts() == [{"p.half": pytest.approx(0.1), "p.age": 2}]
        writing.rollback()
