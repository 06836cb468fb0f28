"""The fingerprint of a mutation's request: stored in graphs, so it must stay what it is."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest

import omnigraph as og
from omnigraph.commit.updates import RecordReceipt
from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.ir import Assign, MutationPlan, Statement
from omnigraph.language.query.params import bind_params
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.types import PropType, Scalar
from omnigraph.mutation import fingerprint as module
from omnigraph.mutation.fingerprint import fingerprint, stable_text

GOLDEN = json.loads((Path(__file__).parent / "golden" / "fingerprints.json").read_text())


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return compile_schema(GOLDEN["schema"])


def asked(catalog: Catalog, case: dict[str, Any]) -> tuple[MutationPlan, dict[str, Any]]:
    compiled = compile_query(case["query"], None, catalog)
    assert isinstance(compiled.rewritten, MutationPlan)
    return compiled.rewritten, bind_params(compiled.query.params, case["params"], undeclared="refuse")


@pytest.mark.parametrize("case", GOLDEN["requests"], ids=[case["name"] for case in GOLDEN["requests"]])
def test_golden(catalog: Catalog, case: dict[str, Any]) -> None:
    """When this fails, stored fingerprints are no longer recognised: change the written form, not the file."""
    plan, params = asked(catalog, case)
    assert fingerprint(plan, params, "main", case["if_commit"]) == case["fingerprint"]


def test_every_statement_has_a_written_form() -> None:
    known = set(module._WRITTEN)
    assert set(get_args(Statement)) <= known
    for one, (_, written) in module._WRITTEN.items():
        assert is_dataclass(one)
        assert {field.name for field in fields(one)} >= set(written)


def test_a_field_that_comes_later_counts_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True, slots=True)
    class Wider(Assign):
        unit: str | None = None

    monkeypatch.setattr(module, "_WRITTEN", {**module._WRITTEN, Wider: module._WRITTEN[Assign]})
    kind = PropType(Scalar.I32)
    values: tuple[Any, ...] = ("level", None, kind)
    assert stable_text(Wider(*values)) == stable_text(Assign(*values))
    assert stable_text(replace(Wider(*values), unit="m")) != stable_text(Assign(*values))


def test_a_receipt_of_an_older_release_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older release stored the hash of the plan's `repr`."""
    graph = og.init(tmp_path / "g", "node Staff { handle: String @key level: I32? }")
    put = "query put($h: String, $n: I32) { insert Staff { handle: $h, level: $n } }"
    stored: list[str] = []
    true_receipt = RecordReceipt.__init__

    def record(self: RecordReceipt, key: str, request: str, receipt: Any) -> None:
        compiled = compile_query(put, None, graph.contract().catalog)
        params = sorted((name, repr(value)) for name, value in (("h", "eve"), ("n", 22)))
        before = hashlib.sha256(orjson.dumps([repr(compiled.rewritten), params, "main", None])).hexdigest()
        stored.append(before)
        true_receipt(self, key, before, receipt)

    with monkeypatch.context() as older:
        older.setattr(RecordReceipt, "__init__", record)
        first = graph.mutate(put, params={"h": "eve", "n": 22}, idempotency_key="k")
    assert stored
    assert graph.mutate(put, params={"h": "eve", "n": 22}, idempotency_key="k") == first
    with pytest.raises(og.errors.BadRequest, match="another request"):
        graph.mutate(put, params={"h": "eve", "n": 23}, idempotency_key="k")
