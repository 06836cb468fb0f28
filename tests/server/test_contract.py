"""Every row of the wire contract has tests on the wire: this table says which, and fails when one of them is gone.

Rows are those of the operations that existing clients know; the columns are what is held there: the answer with its exact shape,
then each status that the contract gives the row, with its error body.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent

#: By the number of the row: the operation, and by status the tests that hold it, as `file:test`.
ROWS: dict[int, tuple[str, dict[int, str]]] = {
    1: ("GET //healthz", {200: "routing:healthz_is_open"}),
    2: (
        "GET //openapi.json",
        {200: "openapi:every_row_of_the_contract_is_described openapi:security_is_told_where_tokens_are_needed"},
    ),
    3: (
        "GET //graphs",
        {200: "routing:graphs_lists_ids_and_uris", 403: "routing:open_mode", 405: "routing:a_wrong_method_is_405"},
    ),
    4: (
        "GET /snapshot",
        {200: "reads:snapshot reads:a_forked_table_names_its_branch", 404: "contract_gaps:branches_that_are_not_there"},
    ),
    5: (
        "GET /blob",
        {
            200: "blobs:the_whole_value blobs:a_value_of_several_chunks blobs:at_a_branch_and_a_snapshot",
            206: "blobs:one_range",
            302: "blobs:an_external_value_is_pointed_at",
            304: "blobs:if_none_match",
            400: "blobs:errors blobs:a_selector_is_whole",
            404: "blobs:errors",
            412: "blobs:if_match",
            416: "blobs:unsatisfiable_ranges",
        },
    ),
    6: ("HEAD /blob", {200: "blobs:head", 304: "blobs:if_none_match", 412: "blobs:if_match"}),
    7: (
        "POST /query",
        {
            200: "reads:query reads:query_of_a_snapshot reads:values_on_the_wire",
            400: "reads:query_errors reads:parameter_errors",
            404: "reads:query_errors",
        },
    ),
    8: ("POST /read", {200: "reads:read_is_the_older_form"}),
    9: (
        "POST /mutate",
        {
            200: "writes:mutate writes:cascades_are_counted writes:no_effect_is_no_commit",
            400: "writes:mutate_errors writes:a_condition_on_a_plain_route_is_refused",
            404: "writes:mutate_errors",
            409: "writes:an_existing_key_is_a_conflict writes:a_lost_race_is_told_with_the_versions",
            413: "limits:bodies",
            424: "contract_gaps:a_reference_that_can_not_be_read",
            429: "limits:admission_on_the_wire",
            503: "contract_gaps:a_write_that_waits_for_recovery",
        },
    ),
    10: (
        "POST /mutate/if-graph-commit",
        {200: "writes:if_graph_commit", 400: "writes:a_condition_is_one_raw_id", 412: "writes:if_graph_commit"},
    ),
    11: ("POST /change", {200: "writes:the_older_names"}),
    12: ("GET /queries", {200: "stored:the_catalogue"}),
    13: (
        "POST /queries/{name}",
        {
            200: "stored:a_read_is_called_by_name stored:a_mutation_is_called_by_name",
            400: "stored:errors stored:a_snapshot_on_a_mutation",
            403: "policy:a_policed_server",
            404: "stored:errors policy:a_policed_server",
        },
    ),
    14: (
        "POST /queries/{name}/if-graph-commit",
        {200: "stored:if_graph_commit", 400: "stored:if_graph_commit", 412: "stored:if_graph_commit"},
    ),
    15: ("GET /schema", {200: "reads:schema"}),
    16: (
        "POST /schema/apply",
        {
            200: "writes:schema_apply",
            403: "cluster:schema_apply_is_always_a_conflict",
            409: "cluster:schema_apply_is_always_a_conflict",
        },
    ),
    17: (
        "POST /load",
        {
            200: "loads:load loads:a_load_that_creates_its_branch loads:the_permissive_reading",
            400: "loads:load_errors",
            404: "contract_gaps:branches_that_are_not_there",
            409: "loads:append_of_an_existing_id",
            413: "limits:bodies",
        },
    ),
    18: (
        "POST /load/ndjson",
        {
            200: "loads:load_lines loads:a_large_body_goes_through_a_file",
            400: "loads:the_strict_grammar",
            404: "contract_gaps:branches_that_are_not_there",
            415: "loads:only_lines_are_streamed",
        },
    ),
    19: ("POST /ingest", {200: "loads:ingest_is_the_older_name"}),
    20: ("GET /branches", {200: "reads:branches_are_sorted"}),
    21: (
        "POST /branches",
        {
            200: "writes:create_branch",
            400: "writes:create_branch",
            404: "writes:create_branch",
            409: "writes:create_branch",
        },
    ),
    22: (
        "DELETE /branches/{branch}",
        {
            200: "writes:delete_branch",
            400: "writes:delete_branch",
            404: "writes:delete_branch",
            409: "writes:delete_branch",
        },
    ),
    23: (
        "POST /branches/merge",
        {
            200: "writes:merge writes:a_refused_delete_is_no_error",
            400: "writes:merge_errors",
            404: "writes:merge_errors",
            409: "writes:merge_conflicts",
        },
    ),
    24: ("GET /commits", {200: "reads:commits", 404: "contract_gaps:branches_that_are_not_there"}),
    25: ("GET /commits/{id}", {200: "reads:commit", 404: "reads:commit"}),
    26: (
        "GET /commits/{id}/changes",
        {
            200: "changes:commit_changes changes:the_order_and_shape_of_changes changes:pages_of_a_commit",
            400: "changes:errors_of_commit_changes",
            404: "changes:errors_of_commit_changes",
            409: "changes:a_schema_boundary",
            413: "changes:errors_of_commit_changes",
        },
    ),
    27: (
        "GET /changes",
        {
            200: "changes:the_feed",
            400: "changes:errors_of_the_feed changes:a_cursor_of_another_scope",
            404: "changes:errors_of_the_feed",
            410: "changes:a_gap",
        },
    ),
    28: (
        "POST /changes/baseline",
        {200: "changes:baseline changes:a_filtered_baseline", 404: "contract_gaps:branches_that_are_not_there"},
    ),
    29: (
        "POST /export",
        {
            200: "changes:export changes:chunks_are_small",
            400: "changes:errors_of_export",
            404: "changes:errors_of_export",
            413: "changes:one_export_of_a_graph_at_a_time",
            415: "changes:errors_of_export",
        },
    ),
}


@cache
def named_in(file: str) -> set[str]:
    tree = ast.parse((HERE / f"test_{file}.py").read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS)
def test_every_row_has_its_tests(row: int) -> None:
    for named in ROWS[row][1].values():
        for one in named.split():
            file, _, test = one.partition(":")
            assert f"test_{test}" in named_in(file), one


def test_all_rows_are_there() -> None:
    assert sorted(ROWS) == list(range(1, 30))
