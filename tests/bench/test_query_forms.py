"""The ten forms of `make bench-query` on a small social graph: our answers are DuckDB's, in every traversal mode."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import omnigraph as og
from bench.query_forms import FORMS, Form, check_equal
from bench.social import Social, load_social, make_social

duckdb = pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def social() -> Social:
    return make_social(persons=3000, follows=60_000)


@pytest.fixture(scope="module")
def graph(social: Social, tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    return load_social(social, tmp_path_factory.mktemp("social") / "g")


@pytest.fixture(scope="module")
def peer(social: Social) -> Any:
    connection = duckdb.connect(config={"threads": 1})
    for name, table in {**social.nodes, **social.edges}.items():
        connection.register("arrow_table", table)
        connection.execute(f"create table {name} as select * from arrow_table")
    return connection


@pytest.mark.parametrize("mode", ["indexed", "csr", "auto"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_answers_are_those_of_duckdb(
    graph: og.Graph, peer: Any, form: Form, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
    engines = {
        "ours": lambda asked: graph.query(asked.gq, params=dict(asked.params)).to_arrow(),
        "DuckDB": lambda asked: peer.sql(asked.sql, params=dict(asked.params)).to_arrow_table(),
    }
    check_equal(_smaller(form), engines)


def _smaller(form: Form) -> Form:
    """The form with what a small graph has: fewer followers, a city where somebody lives, keys of its persons."""
    for larger, smaller in (("> 1000", "> 150"), ("c10", "c17")):
        form = replace(form, gq=form.gq.replace(larger, smaller), sql=form.sql.replace(larger, smaller))
    keys = {"keys": [f"p{number}" for number in range(0, 6000, 2)]} if "keys" in form.params else {}
    return replace(form, params={**form.params, **keys})
