"""Requests that are made from the OpenAPI document: no 500, no status or shape that the document does not tell of."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi import checks

from omnigraph.server.settings import Limits
from tests.server.serving import TOKEN, serving, settings_of

EXAMPLES = 5_000 if os.environ.get("OMNIGRAPH_TEST_LONG") else 200
#: The operations are tried in so many tests, which run side by side.
PARTS = 6

load_all_checks()


@schemathesis.serializer("application/x-ndjson")
def lines(context: Any, value: Any) -> bytes:
    """A streamed body is sent as it is made."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


#: What these checks assume does not hold here: a body that fits its schema is still refused when its query does not
#: parse, and members of a body that nobody reads are ignored, as the contract has it.
EXCLUDED = [checks.positive_data_acceptance, checks.negative_data_rejection]


@pytest.fixture(scope="module")
def document(graph_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The document of a server that may be written to."""
    folder = tmp_path_factory.mktemp("fuzzed")
    shutil.copytree(graph_template, folder / "people.omni")
    # Wrong tokens are tried on purpose, and are not what is measured: they are answered at once.
    limits = Limits(free_failures=1_000_000_000)
    with serving(settings_of(folder / "people.omni", limits=limits)) as served:
        yield schemathesis.openapi.from_url(f"{served.url}/openapi.json")


#: What is followed has no end that a request could wait for.
ENDLESS = {"cluster_changes_stream"}
#: The bodies and statuses of this transport are those of its protocol, whose own clients try it in tests/mcp.
OTHER_PROTOCOL = {"cluster_mcp"}


@pytest.mark.parametrize("part", range(PARTS))
def test_the_document_is_true(document: Any, part: int) -> None:
    wrong: list[str] = []
    for found in list(document.get_all_operations())[part::PARTS]:
        operation = found.ok()
        name = operation.definition.raw["operationId"]
        if name in ENDLESS | OTHER_PROTOCOL:
            continue
        try:
            _try(operation)
        except Exception as error:
            wrong.append(f"{name}: {error}\n{getattr(error, 'exceptions', '')}")
    assert not wrong, "\n\n".join(wrong)


def _try(operation: Any) -> None:
    """Requests for one operation, most of them about the graph that is there."""

    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=not os.environ.get("OMNIGRAPH_TEST_LONG"),
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy())
    def asked(case: Any) -> None:
        if "graph_id" in (case.path_parameters or {}) and crc32(str(case.path_parameters).encode()) % 8:
            case.path_parameters["graph_id"] = "people"
        case.call_and_validate(
            headers={"Authorization": f"Bearer {TOKEN}"}, excluded_checks=EXCLUDED, allow_redirects=False
        )

    asked()
