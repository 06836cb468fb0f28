"""A real Spark Connect server of this machine, started from the jars of the PySpark wheel on a free port of loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from omnigraph.spark.gateway import JVM_OPTIONS, worker_environment
from omnigraph.spark.java import find_java
from tests.cluster.standalone import SHORT_LIVED

_MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
_HOST = "127.0.0.1"


@dataclass(frozen=True)
class ConnectServer:
    """A running server. `events`: the folder of Spark's event logs."""

    process: subprocess.Popen[bytes]
    port: int
    folder: Path

    @property
    def url(self) -> str:
        return f"sc://{_HOST}:{self.port}"

    @property
    def events(self) -> Path:
        return self.folder / "events"

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")

    def kill(self) -> None:
        """End the server and its Python workers at once, as the system does when memory runs out."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def running_connect_server(
    folder: Path, master: str = "local[2]", conf: Mapping[str, str] | None = None, python: str = sys.executable
) -> Iterator[ConnectServer]:
    """A server for a block; it is gone afterwards, with all of its processes."""
    folder.mkdir(parents=True)
    events = folder / "events"
    events.mkdir()
    with socket.socket() as free:
        free.bind((_HOST, 0))
        port = free.getsockname()[1]
    settings = {
        "spark.master": master,
        "spark.app.name": "connect",
        "spark.ui.enabled": "false",
        "spark.driver.host": _HOST,
        "spark.driver.bindAddress": _HOST,
        "spark.connect.grpc.binding.address": _HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(events),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.pyspark.python": python,
        **(conf or {}),
    }
    java = find_java()
    home = folder / "home"
    home.mkdir()
    command = [
        str(java.program),
        *JVM_OPTIONS,
        *SHORT_LIVED,
        "-Xmx1g",
        f"-Djava.io.tmpdir={folder}",
        *(f"-D{key}={value}" for key, value in settings.items()),
        "-cp",
        str(Path(pyspark.__file__).parent / "jars" / "*"),
        _MAIN,
    ]
    environment = {**os.environ, **worker_environment(java, home), "SPARK_LOCAL_IP": _HOST, "PYSPARK_PYTHON": python}
    environment.pop("SPARK_CONNECT_MODE_ENABLED", None)
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=folder,
        )
    server = ConnectServer(process, port, folder)
    try:
        while not _listens(port):
            assert process.poll() is None, f"the server ended: {server.log()}"
            time.sleep(0.1)
        yield server
    finally:
        server.kill()


def _listens(port: int) -> bool:
    try:
        with socket.create_connection((_HOST, port), 1):
            return True
    except OSError:
        return False
