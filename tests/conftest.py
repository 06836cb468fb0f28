"""Fixtures for the whole suite: a real S3-speaking server, and a fresh place for a graph on every kind of store."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.root import Root
from tests.s3 import S3Server, running_server

PROJECT = Path(__file__).resolve().parents[1]


def pytest_configure(config: pytest.Config) -> None:
    # Where PYTHONDONTWRITEBYTECODE is set, as in many containers, each of a thousand processes would compile all that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # Spark's workers find the tasks of tests from wherever the test stood that started the session.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))
    config.addinivalue_line("markers", "row(*ids): rows of the behaviour catalogue; they become part of the test's id")


def pytest_collection_finish() -> None:
    # The tests themselves are a million objects that stay; the garbage collector need not look through them again and again.
    gc.collect()
    gc.freeze()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Put the ids of `@pytest.mark.row("BR-02")` into the test's id, so that `-k BR-02` finds it."""
    ids = [str(row) for mark in metafunc.definition.iter_markers("row") for row in mark.args]
    if ids:
        metafunc.fixturenames.append("row")
        metafunc.parametrize("row", [ids], ids=[" ".join(ids)])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many states of the crash matrix were covered: killed for real, recovered and found right."""
    passed = terminalreporter.stats.get("passed", [])
    states = sum("test_crash_matrix.py::test_death" in report.nodeid for report in passed)
    if states:
        terminalreporter.write_line(f"crash matrix: {states} states covered")


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One server for all tests of this process, started when the first one asks."""
    with running_server() as server:
        yield server


@pytest.fixture
def s3_root(s3_server: S3Server) -> Root:
    """A fresh prefix in a fresh bucket."""
    return s3_server.new_root()


@pytest.fixture(params=["local", "s3", "memory"])
def store_root(request: pytest.FixtureRequest, tmp_path: Path) -> Root:
    """A fresh place on each kind of store."""
    if request.param == "s3":
        root: Root = request.getfixturevalue("s3_root")
        return root
    return Root.parse(tmp_path / "graph" if request.param == "local" else f"memory://{tmp_path.name}")


@pytest.fixture(params=["local", "s3"])
def shared_root(request: pytest.FixtureRequest, tmp_path: Path) -> Root:
    """A fresh place on each kind of store that several processes can share."""
    if request.param == "s3":
        root: Root = request.getfixturevalue("s3_root")
        return root
    return Root.parse(tmp_path / "graph")


@pytest.fixture
def store(store_root: Root) -> ObjectStore:
    """An empty object store of each kind."""
    return open_store(store_root)
