"""What tests run in processes of their own: racing, dying, and working without the rights of root.

Every function here is called by name in a spawned process, so this module imports only what the children need.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from omnigraph import failpoints
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.storage.locks import BranchLocks
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root

_SPAWN = multiprocessing.get_context("spawn")


class Child:
    """A running child: `receive()` what it sends, `kill()` it, or wait for it to end."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        self._connection, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_run, args=(work, theirs, arguments), daemon=True)
        self._process.start()
        theirs.close()

    def receive(self) -> Any:
        """The next message; the error that ended the child, if one did."""
        message = self._connection.recv()
        if isinstance(message, BaseException):
            raise message
        return message

    def send(self, message: Any) -> None:
        self._connection.send(message)

    @property
    def process_id(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def join(self) -> int | None:
        self._process.join()
        return self._process.exitcode


@contextmanager
def children(count: int, work: Callable[..., None], *arguments: Any) -> Iterator[list[Child]]:
    """Several children that have started and are waiting for a message; ended after the block."""
    running = [Child(work, *arguments) for _ in range(count)]
    try:
        for child in running:
            assert child.receive() == "ready"
        yield running
    finally:
        for child in running:
            child.kill()


def call(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function in a child; its error is raised here."""
    child = Child(_answer, work, arguments)
    try:
        return child.receive()
    finally:
        child.kill()


def _run(work: Callable[..., None], connection: Connection, arguments: tuple[Any, ...]) -> None:
    try:
        work(connection, *arguments)
    except BaseException as error:
        connection.send(error)


def _answer(connection: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    connection.send(work(*arguments))


def _start_together(connection: Connection) -> None:
    connection.send("ready")
    connection.recv()


# --- racing -----------------------------------------------------------------------------------------------------------


def race_to_create(connection: Connection, root: Root, paths: list[str], threads: int) -> None:
    """Create every path from several threads and send how many each path were won here."""
    from concurrent.futures import ThreadPoolExecutor

    store = open_store(root)
    _start_together(connection)
    with ThreadPoolExecutor(threads) as pool:
        won = [sum(pool.map(lambda _, path=path: try_create(store, path), range(threads))) for path in paths]
    connection.send(won)


def try_create(store: Any, path: str) -> bool:
    """Whether this caller created the object."""
    try:
        store.create(path, os.urandom(8))
    except StorageError as error:
        if error.kind != "precondition":
            raise
        return False
    return True


def count_by_swapping(connection: Connection, root: Root, path: str, times: int) -> None:
    """Add to a counter with compare-and-swap."""
    store = open_store(root)
    _start_together(connection)
    for _ in range(times):
        add_by_swapping(store, path)
    connection.send("done")


def add_by_swapping(store: Any, path: str) -> None:
    """Add one to a counter, starting over when someone else was first."""
    while True:
        data, tag = store.get_tagged(path)
        try:
            store.swap(path, str(int(data) + 1).encode(), tag)
        except StorageError as error:
            if error.kind != "precondition":
                raise
        else:
            return


def count_under_lock(connection: Connection, root: Root, counter: Path, times: int, threads: int) -> None:
    """Add to a counter in a plain file, reading and writing it separately: only a lock makes that right."""
    from concurrent.futures import ThreadPoolExecutor

    def add(_: int) -> None:
        with BranchLocks(open_store(root), root).hold("feature/x") as held:
            value = int(counter.read_text())
            time.sleep(random.uniform(0, 0.002))
            assert held.still_held()
            counter.write_text(str(value + 1))

    _start_together(connection)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(add, range(times)))
    connection.send("done")


# --- dying ------------------------------------------------------------------------------------------------------------


def write_for_ever(connection: Connection, root: Root, path: str, size: int, verb: str) -> None:
    """Write whole objects of one repeated byte without end; `create` makes room for itself first."""
    store = open_store(root)
    _start_together(connection)
    for turn in range(1_000_000):
        data = bytes([turn % 256]) * size
        if verb == "swap":
            store.swap(path, data, store.get_tagged(path)[1])
        elif verb == "put":
            store.put(path, data)
        else:
            store.create(f"{path}-{turn}", data)


def hold_for_ever(connection: Connection, root: Root, branch: str, lease_seconds: float) -> None:
    """Take a branch's lock and keep it."""
    with BranchLocks(open_store(root), root, lease_seconds=lease_seconds).hold(branch):
        connection.send("held")
        signal.pause()


def hold_and_fork(connection: Connection, root: Root, branch: str) -> None:
    """Take a branch's lock, fork a child that lives on, and keep the lock; what the child sees of it is sent."""
    with BranchLocks(open_store(root), root).hold(branch) as held:
        if os.fork() == 0:
            held.release()  # not the child's to give
            connection.send((os.getpid(), held.still_held()))
            signal.pause()
        signal.pause()


def swap_until_failpoint(connection: Connection, root: Root, path: str) -> None:
    """Die in the middle of a swap."""
    store = open_store(root)
    tag = store.get_tagged(path)[1]
    _start_together(connection)
    with failpoints.armed("objects.swap_compared", "kill"):
        store.swap(path, b"new", tag)


# --- without rights ---------------------------------------------------------------------------------------------------


def outcome(root: Root, verb: str, *arguments: Any) -> tuple[str, str | None, str]:
    """The kind, path and message of the error that a call ends with, in a process without the rights of root."""
    drop_privileges()
    return _outcome(root, verb, *arguments)


def outcome_without_links(root: Root, verb: str, *arguments: Any) -> tuple[str, str | None, str]:
    """The same on a file system that has no hard links."""
    refuse_hard_links()
    return _outcome(root, verb, *arguments)


def _outcome(root: Root, verb: str, *arguments: Any) -> tuple[str, str | None, str]:
    try:
        result = getattr(open_store(root), verb)(*arguments)
    except StorageError as error:
        return error.kind, error.path, error.message
    except OmnigraphError as error:
        return type(error).__name__, None, error.message
    return "ok", None, repr(result)


def drop_privileges() -> None:
    """Give up what lets root ignore permissions, for this thread and those it starts."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    nothing = (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None, use_errno=True).capset(header, nothing) == 0, os.strerror(ctypes.get_errno())


def refuse_hard_links() -> None:
    """Let the kernel answer every hard link with EPERM, as on FAT and many network file systems."""
    import errno
    import platform
    import struct

    load, equal, give = 0x20, 0x15, 0x06  # BPF: load a word, jump if equal, return
    syscalls = {"x86_64": (86, 265), "aarch64": (37, 37)}[platform.machine()]
    program = b"".join(
        struct.pack("HBBI", *step)
        for step in [
            (load, 0, 0, 0),
            (equal, 1, 0, syscalls[0]),
            (equal, 0, 1, syscalls[1]),
            (give, 0, 0, 0x00050000 | errno.EPERM),
            (give, 0, 0, 0x7FFF0000),
        ]
    )
    buffer = ctypes.create_string_buffer(program, len(program))

    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]

    described = Filter(len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, by_filter = 38, 22, 2
    assert libc.prctl(no_new_privileges, 1, 0, 0, 0) == 0
    assert libc.prctl(set_seccomp, by_filter, ctypes.byref(described), 0, 0) == 0, os.strerror(ctypes.get_errno())
