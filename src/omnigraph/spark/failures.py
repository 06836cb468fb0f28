"""Errors of Spark as one-line errors of ours; Java's own text is kept in their `detail`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from omnigraph.errors import OmnigraphError, SparkFailed

_CRASHED = ("Python worker exited unexpectedly", "Python worker failed to connect", "ExecutorLostFailure")
#: Packages whose names differ from their modules.
_PACKAGES = {"lance": "pylance", "re2": "google-re2", "ulid": "python-ulid", "yaml": "pyyaml"}
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(?P<module>[\w.]+)'")
_NO_PYTHON = re.compile(r'Cannot run program "(?P<program>[^"]+)"')
_OTHER_PYTHON = re.compile(
    r"Python in worker has different version: (?P<worker>[\d.]+) than that in driver: (?P<driver>[\d.]+)"
)
#: The host and executor of a task in Spark's messages; the executor is "driver" when tasks run in this process's JVM.
_PLACE = re.compile(r"\(TID \d+\) \((?P<host>\S+) executor (?P<executor>\S+)\)")
_LOST = (
    "SparkContext was shut down",
    "SparkContext has been shutdown",
    "stopped SparkContext",
    "Error while sending or receiving",
    "Answer from Java side is empty",
    "An error occurred while trying to connect to the Java server",
    "Connection refused",
    "Connection reset",
    "OutOfMemoryError",
    "NullPointerException",
)
#: Texts in errors of the Connect client when its server is gone, or was replaced by another one.
_SERVER_LOST = (
    "StatusCode.UNAVAILABLE",
    "failed to connect to all addresses",
    "INVALID_HANDLE.SESSION_",
    "INVALID_HANDLE.OPERATION_",
    "RETRIES_EXCEEDED",
    "Socket closed",
    "Stream removed",
    "Cannot invoke RPC",
)
_REASON = re.compile(
    r"^(?:Caused by: |Exception in thread \S+ )?(?:[\w.$]+\.)?(?P<kind>\w+(?:Exception|Error)): (?P<reason>.+)$",
    re.MULTILINE,
)


class Running(Protocol):
    """The methods of a session that are needed to explain an error."""

    def is_alive(self) -> bool: ...

    def failed_on(self, tag: str) -> str | None: ...


@contextmanager
def spark_errors(session: Running, what: str, tag: str | None = None) -> Iterator[None]:
    """Turn errors of Spark in the block into SparkFailed; `tag`: the tag of its jobs, to find the host of a failed task."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        host = None if tag is None else session.failed_on(tag)
        raise job_failure(error, what, host) from error
    except Exception as error:
        # A session that was stopped meanwhile has lost its JVM and fails with other kinds of errors.
        if isinstance(error, OmnigraphError) or session.is_alive():
            raise
        raise job_failure(ConnectionError(str(error)), what) from error


def job_failure(error: BaseException, what: str, failed_on: str | None = None) -> SparkFailed:
    """The error for a job that did not finish; it names the worker when the fault is there.
    `failed_on`: the host of the failed task if the caller knows it, since a Python error in a task does not name it.
    """
    text = _text(error)
    host = _worker_host(text) or failed_on
    lacks = _lacking(text, host)
    if lacks is not None:
        return SparkFailed(lacks, kind="worker", detail=text)
    if any(sign in text for sign in _SERVER_LOST):
        return SparkFailed(
            f"the Spark Connect server was lost while it ran {what}; nothing was published, try again when it runs",
            kind="lost",
            detail=text,
        )
    if any(sign in text for sign in _CRASHED):
        return SparkFailed(
            f"a Spark worker process died{_on(host)} while it ran {what} (killed, or out of memory); nothing was published, "
            "try again",
            kind="worker",
            detail=text,
        )
    if any(sign in text for sign in _LOST) or isinstance(error, ConnectionError):
        memory = " (out of memory: raise spark.driver.memory)" if "OutOfMemoryError" in text else ""
        return SparkFailed(
            f"Spark's Java process was lost while it ran {what}{memory}; nothing was published, the next try starts it anew",
            kind="lost",
            detail=text,
        )
    return SparkFailed(f"Spark failed{_on(host)} while it ran {what}: {_reason(text)}", kind="task", detail=text)


def _worker_host(text: str) -> str | None:
    """The host of the last task failure; None when it is this machine or Spark does not say."""
    places = [found for found in _PLACE.finditer(text) if found["executor"] != "driver"]
    return places[-1]["host"] if places else None


def _on(host: str | None) -> str:
    return "" if host is None else f" on the worker {host}"


def _lacking(text: str, host: str | None) -> str | None:
    """A message on what the workers lack to run tasks, and what to do; None when the failure has another cause."""
    where = f"the Spark worker {host}" if host else "a Spark worker"
    if found := _OTHER_PYTHON.search(text):
        return (
            f"{where} runs Python {found['worker']} and this process {found['driver']}; "
            "set PYSPARK_PYTHON to a Python of the same version there"
        )
    if found := _NO_PYTHON.search(text):
        return f"{where} can not start '{found['program']}'; install it there, or set PYSPARK_PYTHON to a Python that is there"
    if found := _NO_MODULE.search(text):
        module = found["module"].partition(".")[0]
        own = module in ("omnigraph", "pyspark_omnigraph")
        package = "omnigraph" if own else _PACKAGES.get(module, module)
        return (
            f"the Python of {where} has no module '{found['module']}'; run `pip install {package}` on the workers, "
            f"{'send it along with --spark-ship-package (ship_package=True), ' if own else ''}"
            "or set PYSPARK_PYTHON to a Python that has it"
        )
    return None


def start_failure(error: Exception | str, settings: Mapping[str, str]) -> SparkFailed:
    """The error for a session that did not start, from an exception or from the log of its JVM."""
    text = error if isinstance(error, str) else _text(error)
    if "BindException" in text or "Address already in use" in text:
        ports = ", ".join(f"{key}={value}" for key, value in settings.items() if key.endswith("port"))
        return SparkFailed(
            f"Spark cannot start: a port it was told to use is taken ({ports or 'see spark.driver.port'}); "
            "free it or leave the setting out",
            kind="start",
            detail=text,
        )
    where = settings["spark.master"]
    return SparkFailed(f"Spark cannot start with master '{where}': {_reason(text)}", kind="start", detail=text)


def reason_of(error: BaseException) -> str:
    """The reason of an error in one line: the innermost cause that Java names."""
    return _reason(_text(error))


def _text(error: BaseException) -> str:
    """The text of an error; py4j asks the JVM for it, which may be gone."""
    try:
        return str(error)
    except Exception as silent:
        return f"{type(silent).__name__}: Connection refused"


def _reason(text: str) -> str:
    """The innermost cause that Java names, or the first line."""
    causes = [found for found in _REASON.finditer(text) if found["kind"] != "Py4JJavaError"]
    if causes:
        return f"{causes[-1]['kind']}: {causes[-1]['reason'].strip()}"
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("WARNING")]
    return "; ".join(lines[:2]) if lines else "no reason given"
