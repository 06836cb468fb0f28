"""Errors over HTTP: their statuses and bodies, and the way back to the same error."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph import errors
from omnigraph.merge.result import Conflict
from omnigraph.wire.failures import CODES, INTERNAL_MESSAGE, error_body, rebuild_error, status_of

CASES: list[tuple[errors.OmnigraphError, int, str | None, dict[str, Any]]] = [
    (errors.BadRequest("m"), 400, "bad_request", {}),
    (errors.ParseError("m", line=1, column=2, expected=("a",)), 400, "bad_request", {}),
    (errors.TypecheckError("m", code="T4"), 400, "bad_request", {}),
    (errors.EvaluationError("m", line=3, column=7, source_line="x"), 400, "bad_request", {}),
    (errors.ValidationError("m", kind="range", type_key="node:P", property="a"), 400, "bad_request", {}),
    (errors.LoadRejected("m", errors=[("body", 3, "x")], total=1), 400, "bad_request", {}),
    (errors.ChangeCursorRejected("m", reason="tampered"), 400, "bad_request", {}),
    (errors.Unauthorized("m"), 401, "unauthorized", {}),
    (errors.Denied("m", action="read", actor="a"), 403, "forbidden", {}),
    (errors.BranchNotFound("m", branch="b"), 404, "not_found", {}),
    (errors.EntityNotFound("m", type_key="node:P", entity_id="x"), 404, "not_found", {}),
    (errors.AlreadyExists("m", name="b"), 409, "conflict", {}),
    (errors.ManifestContention("m"), 409, "conflict", {}),
    (errors.SchemaChanged("m", expected="a", actual="b"), 409, "conflict", {}),
    (
        errors.KeyConflict("m", type_key="node:P", entity_id="x"),
        409,
        "conflict",
        {"key_conflict": {"entity_kind": "node", "type_name": "P", "entity_id": "x"}},
    ),
    (
        errors.ExpectedVersionMismatch("m", table_key="edge:K", expected=3, actual=None),
        409,
        "conflict",
        {
            "manifest_conflict": {"table_key": "edge:K", "expected": 3},
            "published_dataset_version_conflict": {
                "entity_kind": "edge",
                "type_name": "K",
                "expected_published_dataset_version": 3,
            },
        },
    ),
    (
        errors.ReadSetChanged("m", table_key="graph_head:main"),
        409,
        "conflict",
        {"read_set_conflict": {"member": "graph_head:main"}},
    ),
    (
        errors.MergeConflicts(
            "m",
            conflicts=[
                Conflict("DeleteVsUpdate", "node:P", "x", "why"),
                Conflict("UniqueViolation", "node:P", None, "w"),
            ],
        ),
        409,
        "conflict",
        {
            "merge_conflicts": [
                {
                    "entity_kind": "node",
                    "type_name": "P",
                    "entity_id": "x",
                    "kind": "delete_vs_update",
                    "message": "why",
                },
                {"entity_kind": "node", "type_name": "P", "kind": "unique_violation", "message": "w"},
            ]
        },
    ),
    (
        errors.ChangeSchemaBoundary("m", commit="c", type_name=None),
        409,
        "conflict",
        {"change_diff_refusal": {"reason": "schema_boundary", "graph_commit_id": "c"}},
    ),
    (
        errors.ChangeFeedGap("m", cursor=None, first_unreadable_commit="c"),
        410,
        None,
        {"change_feed_gap": {"first_unreadable_commit_id": "c"}},
    ),
    (errors.HistoricalVersionReclaimed("m", version="v"), 410, None, {}),
    (
        errors.PreconditionFailed("m", branch="main", expected="a", actual=None),
        412,
        None,
        {"precondition_failure": {"expected": "a"}},
    ),
    (
        errors.ResourceLimit("m", resource="r", limit=1, actual=2),
        413,
        "bad_request",
        {"resource_limit": {"resource": "r", "limit": 1, "actual": 2}},
    ),
    (
        errors.BlobRangeNotSatisfiable("m", start=1, end=2, length=1),
        416,
        "bad_request",
        {"blob_range": {"start": 1, "end": 2, "length": 1}},
    ),
    (
        errors.ExternalBlobSource("m", uri="https://u:p@h/x", reason="gone"),
        424,
        None,
        {"external_blob_source": {"uri": "https://***@h/x", "reason": "gone"}},
    ),
    (errors.TooManyRequests("m", seconds=60), 429, "too_many_requests", {}),
    (errors.RecoveryRequired("m", operation_id="o"), 503, None, {"recovery_required": {"operation_id": "o"}}),
    (errors.CommitStateUnknown("m", commit_id="c"), 503, None, {"commit_state_unknown": {"graph_commit_id": "c"}}),
    (errors.StorageError("m", kind="transient"), 503, None, {}),
    (errors.DeadlineExceeded("m", seconds=2.5), 504, None, {"deadline_exceeded": {"seconds": 2.5}}),
    (errors.StorageError("m", kind="permanent", path="/secret"), 500, "internal", {}),
    (errors.SchemaContractError("m", reason="r"), 500, "internal", {}),
]


@pytest.mark.parametrize(("error", "status", "code", "details"), CASES, ids=lambda value: type(value).__name__)
def test_an_error_as_status_and_body(
    error: errors.OmnigraphError, status: int, code: str | None, details: dict[str, Any]
) -> None:
    assert status_of(error) == status
    expected = {"error": "m"} | ({} if code is None else {"code": code}) | details
    assert error_body(error, status) == expected


@pytest.mark.parametrize("error", [case[0] for case in CASES], ids=lambda error: type(error).__name__)
def test_the_way_back(error: errors.OmnigraphError) -> None:
    status = status_of(error)
    again = rebuild_error(status, error_body(error, status, whole=True))
    assert type(again) is type(error)
    hidden = {"path", "uri", "file"}
    assert {name: value for name, value in vars(again).items() if name not in hidden} == {
        name: value for name, value in vars(error).items() if name not in hidden
    }
    assert str(again) == str(error)


@pytest.mark.parametrize(("error", "status", "code", "details"), CASES, ids=lambda value: type(value).__name__)
def test_the_way_back_from_the_contract_alone(
    error: errors.OmnigraphError, status: int, code: str | None, details: dict[str, Any]
) -> None:
    """A body without the library's form still gives an error of the right family."""
    again = rebuild_error(status, error_body(error, status))
    assert str(again) == "m"
    if details and status not in (416, 424, 504) and "change_diff_refusal" not in details:
        known = "merge_conflicts" not in details and "commit_state_unknown" not in details
        assert not known or type(again) is type(error)
    assert status not in (400, 404, 409, 410) or isinstance(again, errors.OmnigraphError)


def test_what_is_no_error_of_ours_tells_nothing() -> None:
    assert error_body(ValueError("/secret"), 500) == {"error": INTERNAL_MESSAGE, "code": "internal"}
    assert status_of(ValueError()) == 500


def test_codes_are_those_of_the_contract() -> None:
    assert set(CODES.values()) == {
        "unauthorized",
        "forbidden",
        "bad_request",
        "not_found",
        "method_not_allowed",
        "conflict",
        "too_many_requests",
        "internal",
    }
