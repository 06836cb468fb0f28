"""A real Spark cluster of this machine, started from the PySpark wheel: a master and two workers.

The workers have addresses of their own. The second one has a temporary folder that no other process sees: a mount namespace
where the system allows one, else another folder.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from omnigraph.spark.gateway import JVM_OPTIONS, worker_environment
from omnigraph.spark.java import find_java

HOSTS = ("127.0.0.1", "127.0.0.2")
#: What the second worker's machine is called, where it can have a name of its own.
SECOND = "second-worker"
_EXECUTOR = "CoarseGrainedExecutorBackend"
#: For JVMs that end with the tests: the optimising compiler takes more time than it gives back.
SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass
class Cluster:
    """The processes of a cluster. `shared` is seen by all, `private` by all but the second worker."""

    folder: Path
    port: int
    isolated: tuple[str, ...]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"spark://{HOSTS[0]}:{self.port}"

    @property
    def shared(self) -> Path:
        return self.folder / "shared"

    @property
    def private(self) -> Path:
        return self.folder / "tmp"

    def start(self) -> None:
        self.shared.mkdir(parents=True)
        self.private.mkdir()
        master = ["org.apache.spark.deploy.master.Master", "--host", HOSTS[0], "--port", str(self.port)]
        self._launch("master", [*master, "--webui-port", "0"], HOSTS[0])
        # A master takes no worker before it leads; one that asks earlier is sent away and comes again seconds later.
        while "New state: ALIVE" not in self._log("master"):
            self._wait()
        for number in range(len(HOSTS)):
            self.start_worker(number)
        while self._registered() < len(HOSTS):
            self._wait()

    def start_worker(self, number: int) -> None:
        """Start a worker, anew when it was killed."""
        work = self.folder / f"work-{number}"
        command = ["org.apache.spark.deploy.worker.Worker", "--host", HOSTS[number], "--webui-port", "0"]
        command += ["--cores", "2", "--memory", "2g", "--work-dir", str(work), self.url]
        self._launch(f"worker-{number}", command, HOSTS[number], isolated=number == 1)

    def kill_worker(self, number: int) -> None:
        worker = self.processes[f"worker-{number}"]
        worker.kill()
        worker.wait()

    def mend(self) -> bool:
        """Start the workers anew that were killed; whether there were any."""
        killed = [number for number in range(len(HOSTS)) if self.processes[f"worker-{number}"].poll() is not None]
        for number in killed:
            registered = self._registered()
            self.start_worker(number)
            while self._registered() == registered:
                self._wait()
        return bool(killed)

    def executors(self, app: str) -> list[int]:
        """The processes of the executors of an application, or of all whose ids begin so."""
        found = [pid for pid, command in _processes() if _EXECUTOR in command and f"--app-id {app}" in command]
        # Another cluster of this machine may have given the same id.
        return [pid for pid in found if str(self.folder).encode() in _environment(pid)]

    def python_workers(self, app: str) -> list[int]:
        """The Python processes in which the tasks of an application run."""
        daemons = {pid for pid, command in _processes() if "pyspark.daemon" in command}
        executors = set(self.executors(app))
        own = {pid for pid in daemons if _parent(pid) in executors}
        return [pid for pid in daemons if _parent(pid) in own]

    def stop(self) -> None:
        for process in self.processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _launch(self, name: str, command: list[str], host: str, *, isolated: bool = False) -> None:
        java = find_java()
        home = self.folder / f"home-{name}"
        home.mkdir(exist_ok=True)
        jars = Path(pyspark.__file__).parent / "jars" / "*"
        temporary = self.private if not isolated or self.isolated else self.folder / "other-tmp"
        temporary.mkdir(exist_ok=True)
        environment = {
            **os.environ,
            **worker_environment(java, home),
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_HOSTNAME": host,
            "TMPDIR": str(temporary),
        }
        whole = [
            str(java.program),
            *JVM_OPTIONS,
            *SHORT_LIVED,
            "-Xmx256m",
            f"-Djava.io.tmpdir={temporary}",
            "-cp",
            str(jars),
            *command,
        ]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*(self.isolated if isolated else ()), *whole],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _registered(self) -> int:
        """How many times a worker has registered with the master."""
        return self._log("master").count("Registering worker")

    def _log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def _wait(self) -> None:
        for one, process in self.processes.items():
            assert process.poll() is None, f"{one} ended: {self._log(one)}"
        time.sleep(0.1)


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster for a block; its processes are gone afterwards, whatever became of them."""
    folder.mkdir(parents=True)
    with socket.socket() as free:
        free.bind((HOSTS[0], 0))
        port = free.getsockname()[1]
    cluster = Cluster(folder, port, _isolation(folder / "tmp"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _isolation(private: Path) -> tuple[str, ...]:
    """A command that runs another one on a machine of its own, as far as files below a folder and its name go."""
    script = f'hostname {SECOND} && mount -t tmpfs tmpfs {shlex.quote(str(private))} && exec "$@"'
    namespaces = ["unshare", "-m", "-u"] if os.getuid() == 0 else ["unshare", "-U", "-r", "-m", "-u"]
    command = (*namespaces, "sh", "-c", script, "sh")
    private.mkdir()
    try:
        tried = subprocess.run([*command, "true"], capture_output=True, check=False)
    except OSError:
        return ()
    finally:
        private.rmdir()
    return command if tried.returncode == 0 else ()


def _processes() -> list[tuple[int, str]]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                found.append((int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()))
    return found


def _environment(pid: int) -> bytes:
    with suppress(OSError):
        return Path("/proc", str(pid), "environ").read_bytes()
    return b""


def _parent(pid: int) -> int:
    with suppress(OSError):
        return int(Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[1])
    return 0
