"""The one Spark session of a process: found or started on first need, shared by all threads, closed at exit."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.errors import BadRequest, SparkFailed
from omnigraph.spark.failures import start_failure
from omnigraph.spark.gateway import Gateway, private_folder, start_gateway
from omnigraph.spark.java import find_java
from omnigraph.spark.options import SparkOptions
from omnigraph.spark.settings import LOCAL, checked_settings, default_settings
from omnigraph.storage.scratch import ScratchFolder

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

MASTER = "OMNIGRAPH_SPARK_MASTER"
REMOTE = "OMNIGRAPH_SPARK_REMOTE"
_CONNECT = "sc://"


@dataclass(frozen=True)
class Session:
    """A running Spark. `gateway` is the JVM when it was started here; somebody else's session is never closed."""

    context: SparkContext
    gateway: Gateway | None = None
    #: The SparkSession that a caller gave.
    given: SparkSession | None = None

    @property
    def sql(self) -> SparkSession:
        """Spark SQL on the same context; it takes seconds to start, so only what needs it asks."""
        from pyspark.sql import SparkSession

        return self.given or SparkSession.builder.getOrCreate()

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        return int(self.context.defaultParallelism)

    def is_alive(self) -> bool:
        """Whether a job can be sent: a context that was stopped or whose JVM died never comes back."""
        return (self.gateway is None or self.gateway.is_alive()) and _context_is_alive(self.context)


_lock = threading.RLock()
_own: tuple[int, Session] | None = None


def spark_session(
    given: Any = None,
    master: str | None = None,
    conf: Mapping[str, object] | None = None,
    options: SparkOptions | None = None,
) -> Session:
    """The session to use: the caller's, a running one, the one the environment or `master` names, else a local one."""
    if options is not None:
        given, master, conf = options.given or given, options.master or master, {**options.conf, **(conf or {})}
    if given is not None:
        return _callers(given)
    with _lock:
        running = _running()
        if running is not None:
            return running
        _forget()
        if os.environ.get(REMOTE):
            raise _no_connect(f"{REMOTE}={os.environ[REMOTE]}", f"unset {REMOTE} and set {MASTER}")
        wanted = master or os.environ.get(MASTER) or LOCAL
        if wanted.startswith(_CONNECT):
            raise _no_connect(f"the master '{wanted}'", f"set {MASTER} or --spark-master")
        return _start(wanted, checked_settings(conf or {}))


def is_running() -> bool:
    """Whether a session runs in this process; never starts one, and never imports PySpark to look."""
    if "pyspark" not in sys.modules:
        return False
    with _lock:
        return _running() is not None


def stop_session() -> None:
    """Close the session that was started here, if there is one; the next need starts another."""
    with _lock:
        _forget()


def _callers(given: Any) -> Session:
    """A session the caller made: a SparkSession, a SparkContext, or what `spark_session` returned."""
    if isinstance(given, Session):
        return given
    from pyspark import SparkContext

    if isinstance(given, SparkContext):
        return Session(given)
    if type(given).__module__.startswith("pyspark.sql.connect"):
        raise _no_connect("this session", "pass a classic SparkSession, or set its master")
    context = getattr(given, "sparkContext", None)
    if not isinstance(context, SparkContext):
        raise BadRequest(f"`spark` is a SparkSession or a SparkContext, not a {type(given).__name__}")
    return Session(context, given=given)


def _no_connect(what: str, instead: str) -> SparkFailed:
    """Why a Spark Connect server is of no use, whatever is installed: it takes queries, and no Python tasks."""
    return SparkFailed(
        f"{what} means Spark Connect, which runs queries and can not run this pipeline's Python tasks; {instead} to the "
        "cluster itself (spark://host:7077, yarn, k8s://…), whose workers need `pip install omnigraph`, or leave it out to "
        "run on this machine",
        kind="connect",
    )


def _running() -> Session | None:
    own = None if _own is None or _own[0] != os.getpid() else _own[1]
    if own is not None and own.is_alive():
        return own
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext

    active = SparkContext._active_spark_context
    # With a session of ours that died, the active context is its remains.
    return Session(active) if active is not None and _own is None and _context_is_alive(active) else None


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
        # Java's account of it has to be fetched while the JVM is there.
        failure = error if isinstance(error, SparkFailed) else start_failure(error, settings)
        _close(gateway, scratch)
        raise failure from None
    except BaseException:
        _close(gateway, scratch)
        raise
    # PySpark takes it from the environment of this process, which is the caller's to set.
    context.pythonExec = settings["spark.pyspark.python"]
    # It would print a traceback when the JVM goes away, also when that is what was asked for.
    setattr(context._accumulatorServer, "handle_error", _nothing)  # noqa: B010 — mypy takes it for a method
    session = Session(context, gateway)
    _own = os.getpid(), session
    return session


def _forget() -> None:
    """Let go of a session that was started here, and of whatever of it PySpark still holds."""
    global _own
    if _own is None:
        return
    owner, session = _own
    _own = None
    if owner != os.getpid():
        # A forked child: the JVM and the sockets to it belong to the parent, and are not to be closed here.
        _detach()
        return
    _disconnect()
    if session.gateway is not None:
        session.gateway.close()


def _close(gateway: Gateway | None, scratch: ScratchFolder) -> None:
    _disconnect()
    if gateway is not None:
        gateway.close()
    else:
        scratch.remove()


def _disconnect() -> None:
    """Close the connection to a JVM that PySpark still holds."""
    connection = _detach()
    if connection is not None:
        with suppress(Exception):  # py4j raises many kinds of errors for a peer that is gone, and none matters here
            connection.shutdown()


def _detach() -> Any:
    """PySpark keeps one context and one JVM in its classes, and would go on using a dead one; returns what it held."""
    from pyspark import SparkContext

    connection = SparkContext._gateway
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    if "pyspark.sql.session" in sys.modules:
        from pyspark.sql import SparkSession

        SparkSession._instantiatedSession = None
    return connection


def _context_is_alive(context: Any) -> bool:
    java_context = getattr(context, "_jsc", None)
    if java_context is None:
        return False
    try:
        return not java_context.sc().isStopped()
    except Exception:  # whatever py4j says: a context that can not be asked can not be used
        return False


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep this process's answer to Ctrl-C: PySpark puts its own in place, which outlives the context it asks."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGINT, before)


def _nothing(*_: object) -> None:
    return None


atexit.register(stop_session)
