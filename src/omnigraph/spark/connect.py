"""A session of Spark Connect: a client of a Spark server that runs elsewhere, without RDDs, SparkContext or Java here."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from omnigraph.errors import BadRequest, SparkFailed
from omnigraph.spark.failures import reason_of
from omnigraph.spark.pyspark_private import default_connect_session, forget_connect_sessions, set_retries
from omnigraph.spark.settings import SQL_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEME = "sc://"
#: The modules that PySpark's Connect client imports, and the packages that contain them.
_NEEDED = {
    "pandas": "pandas",
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc.error_details_pb2": "googleapis-common-protos",
    "zstandard": "zstandard",
}
_ADDRESS = re.compile(r"sc://(?P<host>[^\s/;:]+|\[[0-9a-fA-F:]+\])(?::(?P<port>[0-9]{1,5}))?(?:/.*)?")
#: The retry policies of the client, for the first connection and for a connected server (about 20 seconds). The default policy
#: retries silently for ten minutes.
_FIRST_RETRIES: dict[str, Any] = {"max_retries": 3, "initial_backoff": 100, "backoff_multiplier": 2.0}
_RETRIES: dict[str, Any] = {"max_retries": 8, "initial_backoff": 100, "backoff_multiplier": 2.0, "max_backoff": 4000}
#: More rows than any session runs tasks at once.
_MANY = 1_000_000
#: A setting that every server has.
_ASKED = "spark.sql.session.timeZone"
_MODE = "SPARK_CONNECT_MODE_ENABLED"

_parallelism: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


@dataclass(frozen=True)
class ConnectSession:
    """A connection to a Spark Connect server. `is_own`: it was opened here, so it is closed here; others are only used."""

    sql: SparkSession
    is_own: bool = False

    @property
    def parallelism(self) -> int:
        """How many tasks run at once: the number of partitions that Spark gives a range by default."""
        known = _parallelism.get(self.sql)
        if known is None:
            numbers = self.sql.range(_MANY).selectExpr("spark_partition_id() as number")
            known = _parallelism[self.sql] = int(numbers.selectExpr("max(number)").collect()[0][0]) + 1
        return known

    def is_alive(self) -> bool:
        """Whether work can be sent. An own session asks its server, which may be gone or have been replaced."""
        if self.sql.is_stopped:  # type: ignore[attr-defined]
            return False
        if not self.is_own:
            return True
        with suppress(Exception):  # any error of the client means that the session can not be used
            # A setting is read rather than the version, which PySpark caches.
            return self.sql.conf.get(_ASKED) is not None
        return False

    def failed_on(self, tag: str) -> str | None:
        """Always None: a client can not ask for the host of a failed task; Spark's own errors may name it."""
        return None

    @property
    def identity(self) -> Any:
        return self.sql

    def send_python(self, archive: Path) -> None:
        self.sql.addArtifacts(str(archive), pyfile=True)

    def close(self) -> None:
        """Close the session."""
        if not self.sql.is_stopped:  # type: ignore[attr-defined]
            # The release is sent only to a server that answers; otherwise PySpark would wait for it.
            setattr(self.sql, "release_session_on_close", self.is_alive())  # noqa: B010 — only Connect has it
            self.sql.stop()
        os.environ.pop(_MODE, None)


def is_connect(session: object) -> bool:
    """Whether a session object is one of Spark Connect; never imports PySpark."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def active_connect() -> ConnectSession | None:
    """PySpark's current Spark Connect session of this thread or process; None when there is none."""
    found = default_connect_session()
    return None if found is None else ConnectSession(found)


def abandon_connect() -> None:
    """Forget the sessions of the parent process after a fork; their connections must not be used in this process."""
    if forget_connect_sessions():
        os.environ.pop(_MODE, None)


def connect_to(url: str, conf: Mapping[str, str]) -> ConnectSession:
    """Connect to a server; raises a one-line error that names what is missing on the client or the server."""
    found = _ADDRESS.fullmatch(url)
    if found is None:
        raise BadRequest(f"'{shown_address(url)}' is no address of Spark Connect; write sc://host:port")
    require_client()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
    where = shown_address(url)
    before = os.environ.get(_MODE)
    made: Any = None
    try:
        made = SparkSession.builder.remote(url).create()
        set_retries(made, _FIRST_RETRIES)
        refuse_other_version(made, where)
        set_retries(made, _RETRIES)
        for name, value in (SQL_SETTINGS | dict(conf)).items():
            _set(made, name, value)
    except BaseException as error:
        _undo(made, before)
        if isinstance(error, PySparkException | OSError):
            raise SparkFailed(
                f"can not reach the Spark Connect server at {where}: {reason_of(error)}; check the address, and that the "
                "server runs and lets this machine in",
                kind="connect",
                detail=str(error),
            ) from None
        raise
    return ConnectSession(made, is_own=True)


def refuse_other_version(session: Any, where: str = "the Spark Connect server") -> None:
    """Raise SparkFailed for a server of another minor version: tasks are pickled here and run by the server's PySpark."""
    import pyspark

    server = str(session.version)
    if server.split(".")[:2] != pyspark.__version__.split(".")[:2]:
        named = where if where.startswith("the ") else f"the Spark Connect server at {where}"
        raise SparkFailed(
            f"{named} runs Spark {server} and this process has PySpark {pyspark.__version__}; both must have the same "
            "first two numbers: take another server, or an OmniGraph for its version",
            kind="connect",
        )


def require_client() -> None:
    """Raise SparkFailed, with the command to install it, when a package that PySpark's Connect client needs is missing."""
    for module, package in _NEEDED.items():
        try:
            import_module(module)
        except ImportError:
            raise SparkFailed(
                f"Spark Connect needs {package} here: run `pip install 'omnigraph[connect]'`", kind="connect"
            ) from None


def shown_address(url: str) -> str:
    """An address without its parameters, which may contain a token."""
    return url.partition(";")[0].rstrip("/")


def _set(session: Any, name: str, value: str) -> None:
    from pyspark.errors import AnalysisException

    try:
        session.conf.set(name, value)
    except AnalysisException:
        raise BadRequest(
            f"'{name}' is a setting of the Spark Connect server, which runs already; set it where the server is started"
        ) from None


def _undo(made: Any, mode: str | None) -> None:
    if made is not None:
        made.release_session_on_close = False
        made.stop()
    if mode is None:
        os.environ.pop(_MODE, None)
