"""The `spark.*` settings of a session: our defaults, then settings files, then single values; later settings win."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from omnigraph.errors import BadRequest

LOCAL = "local[*]"
#: Settings for every session, which can be changed at any time.
SQL_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Off by default; a data source with filter pushdown fails without it.
    "spark.sql.python.filterPushdown.enabled": "true",
    # An error of a data source shows only its message, without the Python traceback.
    "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true",
}


def is_local(master: str) -> bool:
    """Whether tasks run on this machine, in the driver's own JVM."""
    return master.startswith("local") and not master.startswith("local-cluster")


def is_local_cluster(master: str) -> bool:
    """Whether this machine simulates a cluster: the JVM starts workers, which start executors, all on this machine."""
    return master.startswith("local-cluster")


def default_settings(master: str, sockets: Path) -> dict[str, str]:
    """The defaults: no UI, no log, UTC, this process's Python in the workers."""
    settings = {
        "spark.master": master,
        "spark.app.name": "omnigraph",
        "spark.submit.deployMode": "client",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.memory": "1g",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.pyspark.python": worker_python(master),
        **SQL_SETTINGS,
    }
    if is_local(master):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "4",
            # Each job is about 45 ms faster than over TCP.
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.python.unix.domain.socket.dir": str(sockets),
        }
    else:
        # Lance would warn about every table that does not exist yet in the log of each executor.
        settings["spark.executorEnv.LANCE_LOG"] = "error"
    if is_local_cluster(master):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


def worker_python(master: str) -> str:
    """The Python program of the workers: PYSPARK_PYTHON on a cluster if it is set, else this process's Python."""
    named = None if is_local(master) else os.environ.get("PYSPARK_PYTHON")
    return named or sys.executable


def read_settings(given: Iterable[str]) -> dict[str, str]:
    """The settings from the values of `--spark-conf`: each is `key=value` or the path of a file of settings."""
    settings: dict[str, str] = {}
    for item in given:
        key, equals, value = item.partition("=")
        if equals and "/" not in key:
            settings |= checked_settings({key.strip(): value.strip()})
        else:
            settings |= _read_file(Path(item))
    return settings


def checked_settings(settings: Mapping[str, object]) -> dict[str, str]:
    """The settings as texts; raises BadRequest for a name that does not begin with `spark.`."""
    for key in settings:
        if not key.startswith("spark."):
            raise BadRequest(f"'{key}' is no Spark setting: their names begin with `spark.`")
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in settings.items()}


def _read_file(path: Path) -> dict[str, str]:
    """The settings of a file in the format of `spark-defaults.conf`: a name, blanks or `=`, a value; `#` begins a comment."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadRequest(f"cannot read Spark settings from '{path}': {reason}; give key=value or a file") from error
    settings = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        parts = text.split("=", 1) if "=" in text.split(maxsplit=1)[0] else text.split(maxsplit=1)
        if len(parts) != 2:
            raise BadRequest(f"{path}:{number}: '{text}' is no setting; write a name and a value")
        settings[parts[0].strip()] = parts[1].strip().removeprefix("=").strip()
    return checked_settings(settings)
