"""Records of running jobs: their shape on disk, their lease, and what stays of them when a job ends or dies."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from omnigraph import failpoints
from omnigraph.commit.staging_jobs import (
    FOLDER,
    StagingJob,
    list_jobs,
    ownerless_scratch,
    parse_job,
    read_job,
    remove_job,
    scratch_folder,
    staging_job,
    take_back_when_over,
)
from omnigraph.errors import OmnigraphError
from omnigraph.ids import new_ulid
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables.location import Location

GOLDEN = Path(__file__).parent / "golden" / "staging_job.json"
JOB = StagingJob(
    job_id="01J00000000000000000000001",
    kind="load",
    branch="main",
    process="host:1:01J00000000000000000000002",
    started_at=1_790_000_000_000_000,
    expires_at=1_790_000_900_000_000,
    tables=(
        Location("nodes/0000000000000001-00000000000000a1"),
        Location("edges/0000000000000002-00000000000000a2", "01J00000000000000000000003"),
    ),
)


def test_the_shape_on_disk() -> None:
    golden = GOLDEN.read_bytes().rstrip(b"\n")
    assert JOB.to_json() == golden
    assert parse_job(golden, JOB.job_id) == JOB


def test_a_job_has_a_record_while_it_runs(store: ObjectStore) -> None:
    job_id = new_ulid()
    with staging_job(store, job_id, "load", "main", JOB.tables[:1]) as running:
        assert list_jobs(store) == [running.job]
        assert not running.job.is_expired()
        running.add(*JOB.tables[1:])
        assert [job.tables for job in list_jobs(store)] == [JOB.tables]
        store.put(f"{scratch_folder(job_id)}/keys/0", b"x")
    assert list_jobs(store) == []
    assert store.list(FOLDER) == []


def test_a_job_that_fails_leaves_no_record(store: ObjectStore) -> None:
    with pytest.raises(RuntimeError), staging_job(store, new_ulid(), "load", "main", ()):
        raise RuntimeError
    assert store.list(FOLDER) == []


def test_a_lease_is_renewed_while_the_job_lasts(store: ObjectStore) -> None:
    with staging_job(store, new_ulid(), "load", "main", (), lease_seconds=0.06) as running:
        first = renewed = running.job
        while renewed.expires_at == first.expires_at:
            time.sleep(0.01)
            renewed = read_job(store, first.job_id) or first
        assert renewed == replace(first, expires_at=renewed.expires_at)


def test_the_record_of_a_dead_job_expires(store: ObjectStore) -> None:
    store.put(JOB.path, JOB.to_json())
    (found,) = list_jobs(store)
    assert not found.is_expired(JOB.expires_at)
    assert found.is_expired(JOB.expires_at + 1)
    remove_job(store, JOB.job_id)
    assert list_jobs(store) == []


def test_what_a_task_puts_when_its_job_is_over_is_taken_back(store: ObjectStore) -> None:
    with staging_job(store, new_ulid(), "load", "main", ()) as running:
        job_id = running.job.job_id
        store.put(f"{scratch_folder(job_id)}/keys/0", b"x")
        take_back_when_over(store, job_id)
        assert store.exists(scratch_folder(job_id))
    store.put(f"{scratch_folder(job_id)}/keys/1", b"x")
    take_back_when_over(store, job_id)
    assert store.list(FOLDER) == []


@pytest.mark.parametrize("step", ["delete", "delete_prefix"])
def test_what_is_put_while_a_job_ends_is_seen_by_the_job_or_by_the_task(
    store: ObjectStore, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever step of the removal a task puts and looks before."""
    store.put(JOB.path, JOB.to_json())
    undisturbed = getattr(store, step)

    def meanwhile(path: str) -> None:
        monkeypatch.undo()
        store.put(f"{scratch_folder(JOB.job_id)}/keys/0", b"x")
        take_back_when_over(store, JOB.job_id)
        undisturbed(path)

    monkeypatch.setattr(store, step, meanwhile)
    remove_job(store, JOB.job_id)
    assert store.list(FOLDER) == []


def test_scratch_without_a_record_is_known_when_it_is_old(store: ObjectStore) -> None:
    dead = new_ulid()
    store.put(f"{scratch_folder(dead)}/keys/0", b"x")
    store.put(f"{scratch_folder(JOB.job_id)}/keys/0", b"x")
    store.put(JOB.path, JOB.to_json())
    now = datetime.now(UTC)
    assert ownerless_scratch(store, now - timedelta(hours=1)) == []
    assert ownerless_scratch(store, now + timedelta(hours=1)) == [dead]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"{", id="no JSON"),
        pytest.param(b"{}", id="nothing in it"),
        pytest.param(GOLDEN.read_bytes().replace(b'"format": 1', b'"format": 2'), id="a newer format"),
        pytest.param(GOLDEN.read_bytes().replace(b'"expires_at": 1790000900000000', b'"expires_at": "x"'), id="kinds"),
    ],
)
def test_what_can_not_be_read_is_never_taken_for_nothing(store: ObjectStore, data: bytes) -> None:
    store.put(JOB.path, data)
    with pytest.raises(OmnigraphError, match=f"{JOB.path} can not be read"):
        list_jobs(store)


@pytest.mark.parametrize("name", ["staging.job_written", "staging.job_removed"])
def test_a_failure_around_the_record(store: ObjectStore, name: str) -> None:
    """A failure while it is written is the job's; one while it is removed is only a warning."""
    with failpoints.armed(name):
        if name == "staging.job_written":
            with pytest.raises(failpoints.FailpointError), staging_job(store, new_ulid(), "load", "main", ()):
                pytest.fail("the job went on")
        else:
            with staging_job(store, new_ulid(), "load", "main", ()):
                pass
    assert failpoints.was_hit(name)
    assert store.list(FOLDER) == []
