"""The files of versions: our idea of their names is Lance's, and looking for the next one gives the right answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.storage.tables.commit import fork
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import stage_append
from omnigraph.storage.tables.version_files import is_newest_on_disk, version_file, version_of, versions_path
from tests.storage.tables.people import HOME, commit, foreign_append, head, people, seed


def place(tables: Tables, location: Location, version: int) -> Path:
    return tables.root.local_path(version_file(location, version))


@pytest.fixture
def location(tables: Tables, request: pytest.FixtureRequest) -> Location:
    """A table with some versions: its main line, or a fork of it."""
    newest = seed(tables).version
    return HOME if request.param == "main" else fork(tables, HOME, newest, "01J0000000000000000000FORK")


both_lines = pytest.mark.parametrize("location", ["main", "fork"], indirect=True)


@both_lines
def test_lance_names_its_versions_as_we_do(tables: Tables, location: Location) -> None:
    folder = tables.root.local_path(versions_path(location))
    listed = {version_of(str(file)): file for file in folder.iterdir()}
    versions = {version["version"] for version in tables.open_dataset(location).versions()}
    own = {version for version in versions if place(tables, location, version).exists()}
    assert own == set(listed) - {None}
    assert max(own) == tables.head_version(location)
    assert all(listed[version] == place(tables, location, version) for version in own)


@pytest.mark.parametrize("name", ["latest_version_hint.json", "x.manifest", ".manifest", "18446744073709551614"])
def test_other_files_are_no_versions(name: str) -> None:
    assert version_of(f"nodes/t/_versions/{name}") is None


@both_lines
def test_a_newest_version_is_told_from_an_older_one(tables: Tables, location: Location) -> None:
    before = tables.head_version(location)
    assert before is not None
    assert is_newest_on_disk(tables.root, location, before)
    commit(tables, stage_append(head(tables, location), people([30])))
    assert not is_newest_on_disk(tables.root, location, before)
    assert is_newest_on_disk(tables.root, location, before + 1)
    assert not is_newest_on_disk(tables.root, location, before + 2)


def test_a_version_that_was_removed_is_not_taken_for_the_newest(tables: Tables) -> None:
    behind = seed(tables).version
    for number in (91, 92):
        foreign_append(tables, number=number)
    for version in range(1, behind + 2):
        place(tables, HOME, version).unlink(missing_ok=True)
    assert not is_newest_on_disk(tables.root, HOME, behind)
    assert tables.head_version(HOME, likely=behind) == behind + 2


@pytest.mark.parametrize("guess", [-1, 0, 1])
def test_a_wrong_guess_does_not_change_the_answer(backend: Tables, guess: int) -> None:
    newest = seed(backend).version
    assert backend.head_version(HOME, likely=newest + guess) == newest


def test_no_table_has_no_newest_version(backend: Tables) -> None:
    assert backend.head_version(HOME, likely=1) is None
