"""The settings of a graph: stored once for everybody, whatever dies, races or is copied."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit import config as settings
from omnigraph.commit.config import CONFIG, Setting
from omnigraph.errors import BadRequest, FormatTooNew, StorageError
from tests import warm
from tests.mutation.org_graph import org_graph
from tests.s3 import S3Server

LEVEL = "merge.level"
DEFAULT = {LEVEL: "entity"}
CHANGED = {LEVEL: "property"}


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "g")


def stored(graph: og.Graph) -> Any:
    return json.loads((Path(graph.uri) / CONFIG).read_bytes())


def test_a_setting_is_stored_with_the_graph(graph: og.Graph) -> None:
    heads = graph.commits()
    assert graph.config() == graph.at("main").config() == DEFAULT
    assert not (Path(graph.uri) / CONFIG).exists()
    assert graph.set_config(LEVEL, "property", actor="ada") == CHANGED
    assert og.open(graph.uri, mode="ro").config() == graph.config() == CHANGED
    assert stored(graph) == {"format": 1, "settings": {LEVEL: {"value": "property", "actor": "ada"}}}
    assert graph.commits() == heads, "a setting is no commit"
    assert graph.set_config(LEVEL, None) == DEFAULT
    assert stored(graph) == {"format": 1, "settings": {}}


def test_statistics_show_the_settings(graph: og.Graph) -> None:
    assert graph.stats().config == DEFAULT
    graph.set_config(LEVEL, "property")
    assert graph.stats().to_dict()["config"] == CHANGED


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("merge.levl", "property", "there is no setting 'merge.levl'; did you mean `merge.level`?"),
        ("zzz", None, "there is no setting 'zzz'; the settings are merge.level"),
        (None, "property", "there is no setting 'None'; the settings are merge.level"),
        (LEVEL, "propery", "merge.level is entity or property, not 'propery'; did you mean `property`?"),
        (LEVEL, 7, "merge.level is entity or property, not '7'"),
    ],
)
def test_what_no_setting_has_is_refused(graph: og.Graph, name: Any, value: Any, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        graph.set_config(name, value)
    assert refused.value.message == message
    assert not (Path(graph.uri) / CONFIG).exists()


def test_a_handle_that_only_reads_changes_no_setting(graph: og.Graph) -> None:
    with pytest.raises(BadRequest, match="read-only"):
        og.open(graph.uri, mode="ro").set_config(LEVEL, "property")


def test_settings_of_a_newer_release_are_kept(graph: og.Graph) -> None:
    newer = {"other.setting": {"value": "x", "actor": "ben"}}
    (Path(graph.uri) / CONFIG).write_text(json.dumps({"format": 1, "settings": newer}))
    assert graph.config() == DEFAULT
    graph.set_config(LEVEL, "property")
    assert stored(graph)["settings"] == {**newer, LEVEL: {"value": "property"}}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("{", StorageError, "does not hold settings"),
        ('{"format": 1}', StorageError, "does not hold settings"),
        ('{"format": 1, "settings": {"merge.level": "property"}}', StorageError, "does not hold settings"),
        ('{"format": 1, "settings": {"merge.level": {"value": "row"}}}', StorageError, "merge.level is 'row'"),
        ('{"format": 2, "settings": {}}', FormatTooNew, "reads up to 1"),
    ],
)
def test_a_file_that_says_nothing_is_loud(graph: og.Graph, text: str, error: type[Exception], message: str) -> None:
    (Path(graph.uri) / CONFIG).write_text(text)
    graph.create_branch("feature")
    with pytest.raises(error, match=message):
        graph.merge("feature")
    assert graph.merge("feature", property_level=False).level == "entity", "who says the level needs no setting"
    (damage,) = graph.verify().damages
    assert damage.path == CONFIG
    (Path(graph.uri) / CONFIG).unlink()
    assert graph.set_config(LEVEL, "property") == CHANGED
    assert graph.verify(deep=True).ok


# --- whatever happens -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["entity", None], ids=["replaced", "created"])
@pytest.mark.parametrize(("point", "after"), [("config.before_put", DEFAULT), ("config.after_put", CHANGED)])
def test_a_process_that_dies(graph: og.Graph, before: str | None, point: str, after: dict[str, str]) -> None:
    if before is not None:
        graph.set_config(LEVEL, before)
    program = f"import omnigraph; omnigraph.open({graph.uri!r}).set_config({LEVEL!r}, 'property')"
    environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": f"{point}=kill"}
    child = warm.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    assert og.open(graph.uri, mode="ro").config() == after
    assert graph.verify(deep=True).ok
    assert graph.set_config(LEVEL, "property") == CHANGED
    assert graph.verify(deep=True).ok


@pytest.fixture
def two_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = tuple(map(str, range(100)))
    monkeypatch.setattr(settings, "SETTINGS", {"a": Setting(numbers, ""), "b": Setting(numbers, "")})


def test_writers_do_not_lose_the_settings_of_others(graph: og.Graph, two_settings: None) -> None:
    def write(name: str) -> None:
        own = og.open(graph.uri)
        for number in range(1, 20):
            assert own.set_config(name, str(number))[name] == str(number)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, "ab"))
    assert graph.config() == {"a": "19", "b": "19"}


def test_a_writer_that_lost_its_lock_loses_nothing(graph: og.Graph, two_settings: None) -> None:
    """The file is compared before it is replaced: what another process has put there meanwhile stays."""
    other = og.open(graph.uri)
    passed: list[bool] = []

    def meanwhile() -> None:
        if not passed:
            passed.append(True)
            path = Path(other.uri) / CONFIG
            path.write_text('{"format": 1, "settings": {"b": {"value": "7"}}}')

    with failpoints.armed("config.before_put", meanwhile):
        assert graph.set_config("a", "5") == {"a": "5", "b": "7"}


def test_a_store_that_fails_after_the_put(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    store = graph._context.store
    create = type(store).create

    def failing(self: Any, path: str, data: bytes) -> str:
        create(self, path, data)
        raise StorageError("the connection was lost", kind="unknown", path=path)

    monkeypatch.setattr(type(store), "create", failing)
    assert graph.set_config(LEVEL, "property") == CHANGED


# --- wherever it goes -------------------------------------------------------------------------------------------------


def test_settings_move_with_the_graph(graph: og.Graph, tmp_path: Path) -> None:
    graph.create_branch("feature")
    graph.set_config(LEVEL, "property")
    shutil.copytree(graph.uri, tmp_path / "copy")
    copy = og.open(tmp_path / "copy")
    assert copy.config() == CHANGED
    copy.set_config(LEVEL, None)
    assert (copy.config(), graph.config()) == (DEFAULT, CHANGED)
    assert copy.merge("feature").level == "entity"


def test_settings_are_backed_up_and_restored(graph: og.Graph, tmp_path: Path) -> None:
    start = graph.head().id
    graph.backup(tmp_path / "backup")
    graph.set_config(LEVEL, "property")
    graph.backup(tmp_path / "backup")
    kept = og.open(tmp_path / "backup", mode="ro")
    assert kept.config() == CHANGED
    with pytest.raises(BadRequest, match="read-only"):
        og.open(tmp_path / "backup").set_config(LEVEL, None)
    og.restore(tmp_path / "backup", tmp_path / "again", at=start)
    again = og.open(tmp_path / "again")
    assert again.config() == CHANGED
    assert again.set_config(LEVEL, None) == DEFAULT
    assert again.verify(deep=True).ok


def test_cleanup_and_optimize_leave_settings_alone(graph: og.Graph) -> None:
    graph.set_config(LEVEL, "property")
    graph.optimize()
    graph.cleanup(keep=1)
    assert graph.config() == CHANGED
    assert graph.verify(deep=True).ok


def test_settings_on_s3(s3_server: S3Server) -> None:
    """A graph that was restored there has a log of digests that names the file, and it may change all the same."""
    options = s3_server.options
    first, backup, second = (s3_server.new_root().uri for _ in range(3))
    graph = og.init(first, "node P { name: String @key }", storage_options=options)
    assert graph.set_config(LEVEL, "property") == CHANGED
    graph.backup(backup, storage_options=options)
    og.restore(backup, second, storage_options=options)
    again = og.open(second, storage_options=options)
    assert again.config() == CHANGED
    assert again.set_config(LEVEL, None) == DEFAULT
    assert again.verify(deep=True).ok
