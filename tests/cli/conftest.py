"""What the tests of commands start from: an operator without a configuration, and a folder with a small graph."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.mutation.org_graph import LOAD, SCHEMA, WRITES, org_graph


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the configuration; empty until a test writes one."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("OMNIGRAPH_HOME", str(folder))
    monkeypatch.delenv("OMNIGRAPH_PROFILE", raising=False)
    monkeypatch.delenv("OMNIGRAPH_BEARER_TOKEN", raising=False)
    return folder


@pytest.fixture(scope="session")
def org_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph that holds FX-ORG, made once; a graph without branches may be copied."""
    folder = tmp_path_factory.mktemp("template") / "org.omni"
    org_graph(folder)
    return folder


@pytest.fixture
def org(org_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the graph `org.omni`, its schema `s.pg`, its writes `w.gq` and `load.gq`; the test stands in it."""
    shutil.copytree(org_template, tmp_path / "org.omni")
    (tmp_path / "s.pg").write_text(SCHEMA)
    (tmp_path / "w.gq").write_text(WRITES)
    (tmp_path / "load.gq").write_text(LOAD)
    monkeypatch.chdir(tmp_path)
    return tmp_path
