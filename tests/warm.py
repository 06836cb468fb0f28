"""Child processes that need not import: `Popen` and `run` of subprocess for Python commands, forked from a process that has.

Most of the time of a process that writes once and is killed goes into imports: 0.8 s of processor time, of which Lance and
pandas take three quarters. Here one process per test process imports them, uses nothing of them, and forks for each command.
The child is a process of its own in every other respect: its process id, environment, folder, standard streams and death.
Not for tests of what a process imports or reads from the environment while it does, nor for those that limit its memory.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import runpy
import select
import socket
import subprocess
import sys
import tempfile
import threading
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_PROJECT = Path(__file__).resolve().parents[1]
_NUMBER = 8  # bytes of a length, a process id or a status on the wire
_READY = b"ready"
_IMPORTED = (
    "lance",
    "omnigraph.graph.graph",
    "omnigraph.evolution.apply",
    "omnigraph.load.execute",
    "omnigraph.maintenance.backup",
    "omnigraph.maintenance.index_building",
    "omnigraph.maintenance.reclaim",
    "omnigraph.merge.execute",
    "omnigraph.mutation.execute",
    "omnigraph.mutation.transaction",
)

_starting = threading.Lock()
_nursery: socket.socket | None = None


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen` of `[sys.executable, script | "-c", program | "-m", module, argument, …]`."""

    _told: socket.socket

    # The two methods in which subprocess touches the operating system; their names are the same in Python 3.11 to 3.14.
    def _execute_child(
        self,
        args: Sequence[str],
        executable: object,
        preexec_fn: object,
        close_fds: object,
        pass_fds: object,
        cwd: str | os.PathLike[str] | None,
        env: Mapping[str, str] | None,
        startupinfo: object,
        creationflags: object,
        shell: object,
        p2cread: int,
        p2cwrite: int,
        c2pread: int,
        c2pwrite: int,
        errread: int,
        errwrite: int,
        *_others: object,
    ) -> None:
        python, *words = map(str, args)
        assert python == sys.executable, f"only {sys.executable} starts warm, not {python}"
        assert not any([preexec_fn, pass_fds, shell]), "not for processes that start warm"
        order = {"words": words, "cwd": str(cwd or Path.cwd()), "env": dict(os.environ if env is None else env)}
        streams = [
            0 if p2cread == -1 else p2cread,
            1 if c2pwrite == -1 else c2pwrite,
            2 if errwrite == -1 else errwrite,
        ]
        self._told, theirs = socket.socketpair()
        with theirs, _starting:
            text, nursery = json.dumps(order).encode(), _running_nursery()
            socket.send_fds(nursery, [len(text).to_bytes(_NUMBER, "little")], [theirs.fileno(), *streams])
            nursery.sendall(text)
        self.pid = _number(self._told)
        self._child_created = True
        for theirs_only, ours in ((p2cread, p2cwrite), (c2pwrite, c2pread), (errwrite, errread)):
            if theirs_only != -1 and ours != -1:
                os.close(theirs_only)

    def _internal_poll(self, *_arguments: object, **_named: object) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self._end()
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                assert timeout is not None
                raise subprocess.TimeoutExpired(self.args, timeout)
            self._end()
        return self.returncode

    def _end(self) -> None:
        self.returncode = os.waitstatus_to_exitcode(_number(self._told))
        self._told.close()


def run(command: Sequence[Any], *, capture_output: bool = False, **options: Any) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` of such a command; `check` is always False."""
    assert not options.pop("check", False)
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Popen(command, **options) as child:
        out, err = child.communicate()
    return subprocess.CompletedProcess(command, child.returncode, out, err)


def _running_nursery() -> socket.socket:
    """The connection to the process that forks, which is started at the first call and ends with this process."""
    global _nursery
    if _nursery is None:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.warm", str(theirs.fileno())],
                cwd=_PROJECT,
                env={name: value for name, value in os.environ.items() if name != "OMNIGRAPH_FAILPOINTS"},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        assert ours.recv(len(_READY)) == _READY, "imports failed; run `python -m tests.warm 0 </dev/null` to see why"
        atexit.register(process.wait)
        atexit.register(ours.close)
        _nursery = ours
    return _nursery


def _number(connection: socket.socket) -> int:
    return int.from_bytes(_exactly(connection, _NUMBER), "little")


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        assert more, "the process that forks has ended"
        data += more
    return data


# --- in the process that forks ----------------------------------------------------------------------------------------


def _serve(orders: socket.socket) -> Callable[[], object] | None:
    """Fork for each order until the other side has gone; returns, in the child alone, what it has to do."""
    orders.sendall(_READY)
    while True:
        head, descriptors, _, _ = socket.recv_fds(orders, _NUMBER, 4)
        if not head:
            return None
        length = int.from_bytes(head + _exactly(orders, _NUMBER - len(head)), "little")
        order = json.loads(_exactly(orders, length))
        if os.fork() == 0:
            orders.close()
            told, *streams = descriptors
            return _attend(socket.socket(fileno=told), streams, order)
        for descriptor in descriptors:
            os.close(descriptor)
        _reap()


def _reap() -> None:
    """Forget the attendants that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _attend(told: socket.socket, streams: list[int], order: dict[str, Any]) -> Callable[[], object]:
    """Fork the child, tell its id and, when it has ended, its status; returns in the child alone."""
    child = os.fork()
    if child == 0:
        told.close()
        return lambda: _become(streams, order)
    for stream in streams:
        os.close(stream)
    try:
        told.sendall(child.to_bytes(_NUMBER, "little"))
        told.sendall(os.waitpid(child, 0)[1].to_bytes(_NUMBER, "little"))
    finally:
        os._exit(0)


def _become(streams: list[int], order: dict[str, Any]) -> object:
    """Go on as the interpreter would with this command line, environment and folder."""
    from omnigraph import failpoints

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(order["env"])
    now = bool(os.environ.get("PYTHONUNBUFFERED"))
    given, out, err = (io.FileIO(number, mode, closefd=False) for number, mode in enumerate(("r", "w", "w")))
    sys.stdin = io.TextIOWrapper(io.BufferedReader(given))
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(out), write_through=now)
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(err), errors="backslashreplace", line_buffering=True, write_through=now
    )
    os.chdir(order["cwd"])
    tempfile.tempdir = None
    warnings.resetwarnings()
    warnings.simplefilter("default")
    failpoints.arm_from_environment()
    kind, *arguments = order["words"]
    if kind == "-c":
        program, *arguments = arguments
        sys.argv = ["-c", *arguments]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        sys.path.insert(0, "")
        exec(compile(program, "<string>", "exec"), main.__dict__)
        return None
    if kind == "-m":
        module, *arguments = arguments
        sys.path.insert(0, order["cwd"])
        sys.argv = [module, *arguments]
        return runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.argv = [kind, *arguments]
    sys.path.insert(0, str(Path(kind).resolve().parent))
    return runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    # Lance and Python 3.12 warn of every fork. It is safe here: nothing was used yet, so no lock is held by another thread.
    warnings.simplefilter("ignore")
    work = _serve(socket.socket(fileno=int(sys.argv[1])))
    if work:
        work()
