"""This package as an archive for executors that lack it. Its dependencies must be installed on the executors."""

from __future__ import annotations

import atexit
import threading
import zipfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet

from omnigraph.errors import SparkFailed
from omnigraph.spark.failures import Running, spark_errors
from omnigraph.storage.scratch import make_scratch

#: The package that tasks import, and the package by which PySpark finds the data source.
PACKAGES = ("omnigraph", "pyspark_omnigraph")
#: A fixed time for every file, so that the same files give the same archive.
_TIME = (1980, 1, 1, 0, 0, 0)

_lock = threading.Lock()
_shipped: WeakSet[Any] = WeakSet()


class Shippable(Running, Protocol):
    """A session that can send files to its executors."""

    @property
    def identity(self) -> Any:
        """PySpark's own session object."""

    def send_python(self, archive: Path) -> None:
        """Send an archive of Python packages to executors, and put it on their path."""


def ship_package(session: Shippable) -> None:
    """Send this package to the executors of a session, once per session; it takes precedence over an installed package."""
    with _lock:
        if session.identity in _shipped:
            return
        with spark_errors(session, "the sending of this package to the workers"):
            session.send_python(package_archive())
        _shipped.add(session.identity)


@cache
def package_archive() -> Path:
    """The archive, made once for this process; executors fetch it while the process runs."""
    scratch = make_scratch("package")
    atexit.register(scratch.remove)
    return write_archive(scratch.path / "omnigraph.zip")


def write_archive(path: Path) -> Path:
    """Write all modules of this package to an archive that Python can import from."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in PACKAGES:
            source = import_module(name).__file__
            folder = Path(source or "").parent
            if source is None or not folder.is_dir():
                raise SparkFailed(
                    f"the package {name} can not be sent to the workers, because it lies in no folder here; install it there",
                    kind="start",
                )
            for file in sorted(folder.rglob("*.py")):
                entry = zipfile.ZipInfo(str(Path(name, file.relative_to(folder))), _TIME)
                archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return path
