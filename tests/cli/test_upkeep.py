"""`omnigraph optimize`, `repair`, `cleanup` and `stats`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.graph.lifecycle import connect
from tests.cli.calling import call
from tests.commit.healthy import tree
from tests.mutation.org_graph import SCHEMA, WRITES
from tests.s3 import S3Server

Capsys = pytest.CaptureFixture[str]
COMMANDS = ["optimize", "repair", "cleanup", "stats"]


@pytest.fixture
def busy(org: Path) -> og.Graph:
    """The graph with a few more commits."""
    graph = og.open("org.omni")
    for level in range(3):
        graph.mutate(WRITES, "put", {"h": "fay", "n": level})
    return graph


def drift(graph: og.Graph, *, rows: bool) -> None:
    context = connect(graph.uri)
    dataset = context.tables.open_dataset(context.manifest.load().by_key["node:Staff"].location)
    if rows:
        dataset.delete("handle = 'ada'")
    else:
        dataset.create_scalar_index("level", "BTREE", name="by_hand")


# --- optimize ---------------------------------------------------------------------------------------------------------


def test_optimize(capsys: Capsys, busy: og.Graph) -> None:
    outcome = call(capsys, "optimize", "org.omni")
    assert (outcome.code, outcome.err) == (0, "omnigraph optimize → org.omni (direct, local)\n")
    assert outcome.out.splitlines() == [
        "optimize org.omni — 4 datasets",
        "  node type 'Staff'  frags 2 → 1 ✓",
        "  node type 'Team'  frags 1 → 1 ✓",
        "  edge type 'MemberOf'  frags 1 → 1 ✓",
        "  edge type 'Mentors'  frags 1 → 1 ✓",
    ]
    assert call(capsys, "optimize", "org.omni").out.splitlines()[1] == "  node type 'Staff'  no-op"


def test_optimize_dry_run(capsys: Capsys, busy: og.Graph) -> None:
    files = tree(connect(busy.uri))
    outcome = call(capsys, "optimize", "org.omni", "--dry-run")
    assert (outcome.code, outcome.err) == (0, "nothing was changed; leave --dry-run out to do it\n")
    assert outcome.out.splitlines()[:3] == [
        "optimize org.omni — 4 datasets",
        "  node type 'Staff'  would build 3 indexes, compact frags 2 → 1",
        "  node type 'Team'  would build 3 indexes",
    ]
    shown = json.loads(call(capsys, "optimize", "org.omni", "--dry-run", "--json").out)
    assert (shown["dry_run"], shown["commit"]) == (True, None)
    staff = shown["datasets"][0]
    assert (staff["committed"], staff["fragments_removed"], staff["fragments_added"]) == (False, 2, 1)
    assert (len(staff["built_indexes"]), staff["folded_indexes"]) == (3, [])
    assert tree(connect(busy.uri)) == files
    busy.optimize()
    busy.mutate(WRITES, "put", {"h": "gil", "n": 1})
    assert "bring 3 indexes up to date" in call(capsys, "optimize", "org.omni", "--dry-run").out
    drift(busy, rows=True)
    assert "would be skipped (drift" in call(capsys, "optimize", "org.omni", "--dry-run").out


def test_optimize_dry_run_settles_nothing(capsys: Capsys, busy: og.Graph) -> None:
    with failpoints.armed("recovery.sidecar_delete"):
        busy.mutate(WRITES, "put", {"h": "gil", "n": 1})
    files = tree(connect(busy.uri))
    assert call(capsys, "optimize", "org.omni", "--dry-run").code == 0
    assert tree(connect(busy.uri)) == files


@pytest.mark.parametrize("command", ["optimize", "ensure-indices"])
def test_progress(capsys: Capsys, busy: og.Graph, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr("omnigraph.cli.progress.time.monotonic", lambda: next(clock))
    told = call(capsys, command, "org.omni").err
    assert "index" in told
    assert "100%" in told
    assert call(capsys, command, "org.omni", "--quiet").err == ""


def test_optimize_json(capsys: Capsys, busy: og.Graph) -> None:
    shown = json.loads(call(capsys, "optimize", "org.omni", "--json", "--quiet").out)
    assert (shown["uri"], shown["commit"]) == ("org.omni", busy.head().id)
    version = busy.snapshot().entry("node:Staff").version
    assert shown["datasets"][0] == {
        "type_key": "node:Staff",
        "fragments_removed": 2,
        "fragments_added": 1,
        "committed": True,
        "skipped": None,
        "published_dataset_version": version,
        "lance_head_version": version,
        "pending_indexes": [],
    }


def test_optimize_names_what_it_skips_and_what_waits(capsys: Capsys, busy: og.Graph) -> None:
    drift(busy, rows=True)
    og.init("new.omni", SCHEMA)
    assert "  node type 'Staff'  skipped (drift: " in call(capsys, "optimize", "org.omni").out
    lines = call(capsys, "optimize", "new.omni").out.splitlines()
    assert lines[1:3] == ["  node type 'Staff'  no-op", "    ↳ index pending on property 'id': the table is empty"]


# --- repair -----------------------------------------------------------------------------------------------------------


def test_repair_without_drift(capsys: Capsys, busy: og.Graph) -> None:
    outcome = call(capsys, "repair", "org.omni")
    assert (outcome.code, outcome.out) == (0, "repair org.omni — 4 datasets, 0 drifted\n")


def test_repair_maintenance(capsys: Capsys, busy: og.Graph) -> None:
    drift(busy, rows=False)
    pin = busy.snapshot().entry("node:Staff").version
    files = tree(connect(busy.uri))
    outcome = call(capsys, "repair", "org.omni")
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "repair org.omni — 4 datasets, 1 drifted",
        f"  node type 'Staff'  published {pin}, storage {pin + 1} by CreateIndex: verified_maintenance, preview",
    ]
    assert "--confirm" in outcome.err
    assert tree(connect(busy.uri)) == files
    shown = json.loads(call(capsys, "repair", "org.omni", "--confirm", "--json").out)
    assert (shown["uri"], shown["confirm"], shown["force"]) == ("org.omni", True, False)
    assert shown["graph_manifest_version"] == busy.snapshot().version
    assert shown["datasets"][0] == {
        "type_key": "node:Staff",
        "branch": "main",
        "published_dataset_version": pin,
        "lance_head_version": pin + 1,
        "classification": "verified_maintenance",
        "action": "healed",
        "operations": ["CreateIndex"],
        "error": None,
    }


def test_repair_refuses_changed_rows(capsys: Capsys, busy: og.Graph) -> None:
    drift(busy, rows=True)
    assert call(capsys, "repair", "org.omni").code == 0
    outcome = call(capsys, "repair", "org.omni", "--confirm")
    assert outcome.code == 1
    assert outcome.out.endswith("suspicious, refused\n")
    assert (
        json.loads(call(capsys, "repair", "org.omni", "--confirm", "--json").out)["datasets"][0]["action"] == "refused"
    )
    assert call(capsys, "repair", "org.omni", "--confirm", "--force").code == 0
    assert busy.entity("node", "Staff", "ada") is None


def test_repair_force_needs_confirm(capsys: Capsys, busy: og.Graph) -> None:
    outcome = call(capsys, "repair", "org.omni", "--force")
    assert outcome.code == 2
    assert "--confirm" in outcome.err


def test_repair_while_something_is_pending(capsys: Capsys, busy: og.Graph) -> None:
    connect(busy.uri).store.put("__recovery/01ARZ3NDEKTSV4RRFFQ69G5FAV.json", b"{")
    outcome = call(capsys, "repair", "org.omni")
    assert outcome.code == 1
    assert "is not valid JSON" in outcome.err


# --- cleanup ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "shown"), [(None, "7d"), ("36h", "36h"), ("90s", "90s")], ids=["unset", "hours", "seconds"]
)
def test_cleanup_names_what_stays_for_the_feed(
    capsys: Capsys, busy: og.Graph, monkeypatch: pytest.MonkeyPatch, setting: str | None, shown: str
) -> None:
    monkeypatch.delenv("OMNIGRAPH_FEED_RETENTION", raising=False)
    if setting is not None:
        monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", setting)
    told = call(capsys, "cleanup", "org.omni", "--keep", "2", "--quiet").err
    window = f"all commits of the last {shown} (OMNIGRAPH_FEED_RETENTION)"
    assert told == f"would keep the newest 2 commits of each branch, and {window}; pass --confirm to do it\n"


def test_cleanup(capsys: Capsys, busy: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "0s")
    files = tree(connect(busy.uri))
    outcome = call(capsys, "cleanup", "org.omni", "--keep", "1")
    assert outcome.code == 0
    assert outcome.err.splitlines() == [
        "omnigraph cleanup → org.omni (direct, local)",
        "would keep the newest 1 commit of each branch; pass --confirm to do it",
    ]
    assert outcome.out.splitlines()[0].endswith(" to remove")
    assert any(line.startswith("  node type 'Staff'  4 old versions, ") for line in outcome.out.splitlines())
    assert tree(connect(busy.uri)) == files
    shown = json.loads(call(capsys, "cleanup", "org.omni", "--keep", "1", "--confirm", "--json", "--quiet").out)
    assert (shown["uri"], shown["keep_versions"], shown["older_than_secs"]) == ("org.omni", 1, None)
    staff = next(dataset for dataset in shown["datasets"] if dataset["type_key"] == "node:Staff")
    assert (staff["old_versions_removed"], staff["error"]) == (4, None)
    assert staff["bytes_removed"] > 0
    assert len(tree(connect(busy.uri))) < len(files)
    assert call(capsys, "cleanup", "org.omni", "--keep", "1", "--confirm").out == "cleanup org.omni — 0 B removed\n"


def test_cleanup_says_what_kept_commits(capsys: Capsys, busy: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "1h")
    count = len(busy.commits())
    busy.tag("release", busy.commits()[1].id)
    kept = [("feed", count - 1), ("tag", 1)]
    shown = json.loads(call(capsys, "cleanup", "org.omni", "--keep", "1", "--json", "--quiet").out)
    assert shown["kept"] == [{"reason": reason, "branch": "main", "commits": commits} for reason, commits in kept]
    assert call(capsys, "cleanup", "org.omni", "--keep", "1", "--confirm", "--quiet").out.splitlines() == [
        "cleanup org.omni — 0 B removed",
        f"  keeps {count - 1} more commits of branch 'main' for the change feed (OMNIGRAPH_FEED_RETENTION)",
        "  keeps 1 more commit of branch 'main' for tags",
    ]


@pytest.mark.parametrize(
    ("age", "seconds"), [("7d", 604_800), ("24h", 86_400), ("90m", 5400), ("30s", 30), ("2w", 1_209_600)]
)
def test_cleanup_by_age(capsys: Capsys, busy: og.Graph, age: str, seconds: int) -> None:
    shown = json.loads(call(capsys, "cleanup", "org.omni", "--older-than", age, "--json").out)
    assert (shown["older_than_secs"], shown["datasets"]) == (seconds, [])


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ((), 2, "--keep"),
        (("--confirm",), 2, "--keep"),
        (("--keep", "0"), 2, "--keep"),
        (("--older-than", "soon"), 1, "no length of time"),
    ],
    ids=str,
)
def test_cleanup_without_a_policy(
    capsys: Capsys, busy: og.Graph, flags: tuple[str, ...], code: int, message: str
) -> None:
    files = tree(connect(busy.uri))
    outcome = call(capsys, "cleanup", "org.omni", *flags)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err
    assert tree(connect(busy.uri)) == files


def test_cleanup_elsewhere_needs_a_yes(capsys: Capsys, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    root = s3_server.new_root()
    for name, value in root.storage_options.items():
        monkeypatch.setenv(name.upper(), value)
    og.init(root.uri, SCHEMA)
    flags = ("cleanup", root.uri, "--keep", "1")
    assert call(capsys, *flags).code == 0
    outcome = call(capsys, *flags, "--confirm")
    assert outcome.code == 1
    assert outcome.err.startswith(f"Error: refusing destructive `cleanup` against non-local target {root.uri}")
    assert call(capsys, *flags, "--confirm", "--yes").code == 0


# --- stats ------------------------------------------------------------------------------------------------------------


def test_stats(capsys: Capsys, busy: og.Graph) -> None:
    busy.ensure_indices(types=["node:Staff"])
    busy.mutate(WRITES, "put", {"h": "gil", "n": 1})
    outcome = call(capsys, "stats", "org.omni")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("stats org.omni — branch main, ")
    assert lines[1] == "  config  merge.level = entity"
    assert lines[2].startswith("  node type 'Staff'  6 rows, 3 fragments, ")
    assert "    index BTREE on 'handle': all but 1 row" in lines
    assert "    ↳ optimize would compact 3 fragments" in lines
    shown = json.loads(call(capsys, "stats", "org.omni", "--json").out)
    assert (shown["uri"], shown["branch"], shown["commit"]) == ("org.omni", "main", busy.head().id)
    assert shown["tables"][0]["rows"] == 6
    assert shown["config"] == {"merge.level": "entity"}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_graph(capsys: Capsys, org: Path, command: str) -> None:
    flags = ("--keep", "1") if command == "cleanup" else ()
    outcome = call(capsys, command, "no.omni", *flags)
    assert (outcome.code, outcome.out) == (1, "")
    assert "there is no graph at" in outcome.err


@pytest.mark.parametrize("command", COMMANDS)
def test_they_work_on_storage(capsys: Capsys, org: Path, command: str) -> None:
    outcome = call(capsys, command, "--as", "me")
    assert outcome.code == 2
    assert f"`{command}` is a direct (storage-native) command" in outcome.err
