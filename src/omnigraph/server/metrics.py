"""Prometheus metrics: requests and latencies by route, running and waiting requests, commits, and engine counters."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from omnigraph.server.pool import Pool
from omnigraph.watching import RECOVERY, RETRY, SPARK_JOB, watch_events

#: The environment variable with the folder in which the processes of a server keep their numbers (of prometheus_client).
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The metrics of one process; `text` sums up the metrics of all processes."""

    def __init__(
        self, readers: Pool, writers: Pool, cached: Callable[[], Mapping[str, tuple[int, int]]] = dict
    ) -> None:
        """`cached`: how many values the caches of each graph hold, and their bytes."""
        self._registry = CollectorRegistry()
        self._cached = cached
        self._stop_counting = watch_events(self._happened)
        labels = ("operation", "status")
        self._requests = Counter(
            "omnigraph_requests", "Requests by operation and status.", labels, registry=self._registry
        )
        self._seconds = Histogram(
            "omnigraph_request_seconds",
            "Seconds until the answer was sent, by operation.",
            ("operation",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._in_flight = Gauge(
            "omnigraph_requests_in_flight",
            "Requests under way.",
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        self._commits = Counter(
            "omnigraph_commits", "Commits that were acknowledged, by graph.", ("graph",), registry=self._registry
        )
        self._conflicts = Counter(
            "omnigraph_conflicts",
            "Writes that were refused with 409 or 412, by graph.",
            ("graph",),
            registry=self._registry,
        )
        self._running = Gauge(
            "omnigraph_pool_running",
            "Threads at work, by pool.",
            ("pool",),
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        self._waiting = Gauge(
            "omnigraph_pool_waiting",
            "Requests that wait for a thread, by pool.",
            ("pool",),
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        # Updated on every change, since another process may answer the request for metrics.
        for pool in (readers, writers):
            pool.changed = partial(self._look_at, pool)
            pool.changed()

        self._events = {
            event: Counter(f"omnigraph_{name}", about, registry=self._registry)
            for event, name, about in (
                (RETRY, "retries", "Attempts to publish a commit after the first one."),
                (RECOVERY, "recoveries", "Half-done writes that were finished or undone."),
                (SPARK_JOB, "spark_jobs", "Jobs that were given to Spark."),
            )
        }
        self._cache_entries, self._cache_bytes = (
            Gauge(
                f"omnigraph_cache_{what}",
                f"{what.capitalize()} in the caches of a graph.",
                ("graph",),
                registry=self._registry,
                multiprocess_mode="livesum",
            )
            for what in ("entries", "bytes")
        )

    def _look_at(self, pool: Pool) -> None:
        self._running.labels(pool.name).set(pool.running)
        self._waiting.labels(pool.name).set(pool.waiting)

    def _happened(self, event: str) -> None:
        self._events[event].inc()

    def close(self) -> None:
        """Count no more events of this process."""
        self._stop_counting()

    def began(self) -> None:
        """A request has come in."""
        self._in_flight.inc()

    def ended(self, operation: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._in_flight.dec()
        self._requests.labels(operation, str(status)).inc()
        self._seconds.labels(operation).observe(seconds)

    def committed(self, graph_id: str) -> None:
        """A commit was made."""
        self._commits.labels(graph_id).inc()

    def refused(self, graph_id: str) -> None:
        """A write lost to another one."""
        self._conflicts.labels(graph_id).inc()

    def text(self) -> bytes:
        """All numbers in Prometheus' text format."""
        for graph_id, (entries, size) in self._cached().items():
            self._cache_entries.labels(graph_id).set(entries)
            self._cache_bytes.labels(graph_id).set(size)
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
