"""The Spark session of a process: found or started on first use, shared by all threads, closed at exit."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from omnigraph.errors import BadRequest, SparkFailed
from omnigraph.spark.connect import (
    SCHEME,
    ConnectSession,
    abandon_connect,
    active_connect,
    connect_to,
    is_connect,
    refuse_other_version,
)
from omnigraph.spark.executors import host_of_failure
from omnigraph.spark.failures import spark_errors, start_failure
from omnigraph.spark.gateway import Gateway, private_folder, start_gateway
from omnigraph.spark.java import find_java
from omnigraph.spark.options import SparkOptions
from omnigraph.spark.pyspark_private import detach, is_stopped
from omnigraph.spark.settings import LOCAL, checked_settings, default_settings
from omnigraph.spark.shipping import ship_package
from omnigraph.storage.scratch import ScratchFolder

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

MASTER = "OMNIGRAPH_SPARK_MASTER"
REMOTE = "OMNIGRAPH_SPARK_REMOTE"


@dataclass(frozen=True)
class Session:
    """A classic Spark session. `gateway`: the JVM when it was started here, else None; a foreign session is never closed."""

    context: SparkContext
    gateway: Gateway | None = None
    #: The SparkSession given by the caller, if any.
    given: SparkSession | None = None

    @property
    def sql(self) -> SparkSession:
        """The SparkSession (SQL) of the context; starting it takes seconds, so it is made on first use."""
        from pyspark.sql import SparkSession

        return self.given or SparkSession.builder.getOrCreate()

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        return int(self.context.defaultParallelism)

    def is_alive(self) -> bool:
        """Whether jobs can be sent: the context is not stopped and its JVM is alive."""
        return (self.gateway is None or self.gateway.is_alive()) and not is_stopped(self.context)

    def failed_on(self, tag: str) -> str | None:
        """The host of the last failed task of the jobs with a tag; None when it is this machine or unknown."""
        return host_of_failure(self.context, tag)

    @property
    def identity(self) -> SparkContext:
        return self.context

    def send_python(self, archive: Path) -> None:
        self.context.addPyFile(str(archive))

    def close(self) -> None:
        """Disconnect, and end the JVM if it was started here."""
        _disconnect()
        if self.gateway is not None:
            self.gateway.close()


AnySession: TypeAlias = Session | ConnectSession

_lock = threading.RLock()
_own: tuple[int, AnySession] | None = None


def spark_session(
    given: Any = None,
    master: str | None = None,
    conf: Mapping[str, object] | None = None,
    options: SparkOptions | None = None,
) -> AnySession:
    """The session to use: the caller's, else a running one, else a new one for `master`, the environment's master, or local."""
    ships = False
    if options is not None:
        given, master, conf = options.given or given, options.master or master, {**options.conf, **(conf or {})}
        ships = options.ship_package
    found = _callers(given) if given is not None else _found_or_started(master, conf or {})
    if ships:
        ship_package(found)
    return found


def _found_or_started(master: str | None, conf: Mapping[str, object]) -> AnySession:
    with _lock:
        running = _running()
        if running is not None:
            return _callers(running.sql) if isinstance(running, ConnectSession) and not running.is_own else running
        _forget()
        remote = os.environ.get(REMOTE)
        if master is None and remote:
            if not remote.startswith(SCHEME):
                raise BadRequest(f"{REMOTE} is the address of a Spark Connect server, sc://host:port, not '{remote}'")
            master = remote
        wanted = master or os.environ.get(MASTER) or LOCAL
        settings = checked_settings(conf)
        return _connected(wanted, settings) if wanted.startswith(SCHEME) else _start(wanted, settings)


def is_running() -> bool:
    """Whether a session runs in this process; never starts one and never imports PySpark."""
    if "pyspark" not in sys.modules:
        return False
    with _lock:
        return _running() is not None


def stop_session() -> None:
    """Close the session that was started here, if there is one; the next use starts a new one."""
    with _lock:
        _forget()


def _callers(given: Any) -> AnySession:
    """The session for a caller's object: a SparkSession, a SparkContext, or a result of `spark_session`."""
    if isinstance(given, Session | ConnectSession):
        return given
    from pyspark import SparkContext

    if is_connect(given):
        session: AnySession = ConnectSession(given)
    elif isinstance(given, SparkContext):
        session = Session(given)
    else:
        context = getattr(given, "sparkContext", None)
        if not isinstance(context, SparkContext):
            raise BadRequest(f"`spark` is a SparkSession or a SparkContext, not a {type(given).__name__}")
        session = Session(context, given=given)
    if not session.is_alive():
        raise SparkFailed("the Spark session that was given has been stopped; give one that runs", kind="stopped")
    if isinstance(session, ConnectSession):
        with spark_errors(session, "a look at the server's version"):
            refuse_other_version(session.sql)
    return session


def _running() -> AnySession | None:
    own = None if _own is None or _own[0] != os.getpid() else _own[1]
    if own is not None and own.is_alive():
        return own
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext

    active = SparkContext._active_spark_context
    if _own is not None:
        # Our own session died, so the active context is its remains.
        return None
    connected = active_connect()
    if connected is not None:
        return connected
    return Session(active) if active is not None and not is_stopped(active) else None


def _connected(url: str, conf: dict[str, str]) -> ConnectSession:
    global _own
    session = connect_to(url, conf)
    _own = os.getpid(), session
    return session


def _start(master: str, conf: dict[str, str]) -> Session:
    global _own
    from pyspark import SparkConf, SparkContext

    scratch = private_folder()
    settings = default_settings(master, scratch.path) | conf
    gateway = None
    try:
        gateway = start_gateway(find_java(), settings, scratch)
        SparkContext._ensure_initialized(gateway=gateway.connection)
        with _own_interrupts():
            context = SparkContext(conf=SparkConf().setAll(list(settings.items())))
    except Exception as error:
        # Java's text of the error must be fetched before the JVM is closed.
        failure = error if isinstance(error, SparkFailed) else start_failure(error, settings)
        _close(gateway, scratch)
        raise failure from None
    except BaseException:
        _close(gateway, scratch)
        raise
    # PySpark takes it from this process's environment, which must not be changed here.
    context.pythonExec = settings["spark.pyspark.python"]
    # It would print a traceback when the JVM ends, even on an intended close.
    setattr(context._accumulatorServer, "handle_error", _nothing)  # noqa: B010 — mypy takes it for a method
    session = Session(context, gateway)
    _own = os.getpid(), session
    return session


def _forget() -> None:
    """Close the session that was started here, and clear PySpark's references to it."""
    global _own
    if _own is None:
        return
    owner, session = _own
    _own = None
    if owner != os.getpid():
        # In a forked child the JVM and its sockets belong to the parent and must not be closed.
        detach()
        abandon_connect()
        return
    session.close()


def _close(gateway: Gateway | None, scratch: ScratchFolder) -> None:
    _disconnect()
    if gateway is not None:
        gateway.close()
    else:
        scratch.remove()


def _disconnect() -> None:
    """Close PySpark's connection to the JVM."""
    connection = detach()
    if connection is not None:
        with suppress(Exception):  # py4j raises many kinds of errors when the JVM is gone; none matters here
            connection.shutdown()


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Restore this process's SIGINT handler: PySpark installs its own, which would outlive its context."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGINT, before)


def _nothing(*_: object) -> None:
    return None


atexit.register(stop_session)
