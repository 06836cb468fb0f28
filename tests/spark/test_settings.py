"""Settings of a session: what is the default, what wins, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import BadRequest
from omnigraph.spark.settings import default_settings, is_local, read_settings, worker_python


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local", True),
        ("local[*]", True),
        ("local[2,3]", True),
        ("local-cluster[2,1,1024]", False),
        ("spark://h:7077", False),
    ],
)
def test_what_is_local(master: str, local: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/elsewhere/python")
    assert is_local(master) == local
    settings = default_settings(master, Path("/s"))
    # A machine that plays a cluster has no other machine to reach it.
    assert ("spark.driver.bindAddress" in settings) == (local or master.startswith("local-cluster"))
    assert (worker_python(master) == "/elsewhere/python") == (not local)


def test_values_and_files_later_ones_win(tmp_path: Path) -> None:
    file = tmp_path / "spark.conf"
    file.write_text("# ours\n\nspark.a 1\nspark.b=2\nspark.c   =  3 = 4\nspark.d -Dx=y -Dz\n")
    read = read_settings(["spark.a=0", str(file), "spark.b=9"])
    assert read == {"spark.a": "1", "spark.b": "9", "spark.c": "3 = 4", "spark.d": "-Dx=y -Dz"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("executor.memory=1g", "'executor.memory' is no Spark setting"),
        ("nowhere.conf", "cannot read Spark settings from 'nowhere.conf'"),
        ("/no/where=x.conf", "cannot read Spark settings"),
    ],
)
def test_what_is_no_setting(given: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        read_settings([given])


def test_a_line_without_a_value_is_named(tmp_path: Path) -> None:
    file = tmp_path / "spark.conf"
    file.write_text("spark.a 1\nspark.b\n")
    with pytest.raises(BadRequest, match="spark.conf:2: 'spark.b' is no setting"):
        read_settings([str(file)])
