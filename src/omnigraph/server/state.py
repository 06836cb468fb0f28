"""The state shared by all requests of a process: graphs, tokens, rules, pools, slots and metrics."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

from omnigraph.cluster.applied import read_applied
from omnigraph.errors import BadRequest, OmnigraphError
from omnigraph.graph.handle import cache_sizes
from omnigraph.server.admission import Admission, ExportSlots, FailedTries
from omnigraph.server.graphs import ServedGraphs, open_cluster, open_graphs
from omnigraph.server.jobs import Jobs
from omnigraph.server.metrics import Metrics
from omnigraph.server.pool import Pool
from omnigraph.server.settings import Settings
from omnigraph.server.shares import Shares
from omnigraph.server.studio import OneTimeKey
from omnigraph.server.tokens import Tokens, one_token, read_tokens
from omnigraph.server.tracing import Tracing, open_tracing
from omnigraph.storage.scratch import ScratchFolder, make_scratch

_log = logging.getLogger("omnigraph.server")


@dataclass
class ServerState:
    """The shared state of one server process."""

    settings: Settings
    graphs: ServedGraphs
    tokens: Tokens
    scratch: ScratchFolder
    #: Whether the server is stopping; endless answers then end.
    is_stopping: bool = False
    readers: Pool = field(init=False)
    writers: Pool = field(init=False)
    admission: Admission = field(init=False)
    exports: ExportSlots = field(init=False)
    #: The data shared with the other worker processes; None when there is one process.
    shares: Shares | None = field(init=False)
    failed_tries: FailedTries = field(init=False)
    metrics: Metrics = field(init=False)
    jobs: Jobs = field(init=False)
    #: None unless the environment asks for traces.
    tracing: Tracing | None = field(init=False)
    studio_key: OneTimeKey = field(init=False)
    #: Jobs that run in this process; shutdown waits for them.
    running_jobs: set[asyncio.Task[None]] = field(default_factory=set)
    #: One reload at a time, so that a slow reload does not replace a newer revision by an older one.
    _reloading: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        limits = self.settings.limits
        self.readers = Pool("reader", limits.read_threads, limits.queue_seconds)
        self.writers = Pool("writer", limits.write_threads, limits.queue_seconds)
        shared = self.settings.shared_folder
        self.shares = None if shared is None else Shares(Path(shared))
        self.admission = Admission(limits, self.shares)
        self.exports = ExportSlots(limits, self.shares)
        self.failed_tries = FailedTries(limits)
        self.metrics = Metrics(self.readers, self.writers, self._cached)
        self.tracing = open_tracing()
        self.studio_key = OneTimeKey(self.settings.studio_key)
        folder = self.scratch.path if shared is None else Path(shared)
        self.jobs = Jobs(folder, limits.job_result_bytes)

    @property
    def spool(self) -> Path:
        """The folder for bodies that are being received."""
        return self.scratch.path

    def _cached(self) -> dict[str, tuple[int, int]]:
        """The number of cached values of each graph, and their bytes."""
        return {served.graph_id: cache_sizes(served.graph) for served in self.graphs.listed()}

    def reload(self) -> None:
        """Reload the tokens and, for a cluster, a newer applied revision. Unreadable parts stay as they were."""
        self._reload_tokens()
        if self.settings.cluster is not None:
            task = asyncio.ensure_future(self._reload_cluster(self.settings.cluster))
            self.running_jobs.add(task)
            task.add_done_callback(self.running_jobs.discard)

    async def serve_newest(self) -> None:
        """Serve the newest applied revision of the cluster, and signal the other processes of this server."""
        if self.settings.cluster is None:
            return
        await self._reload_cluster(self.settings.cluster)
        if self.settings.supervisor is not None and self.settings.supervisor == os.getppid():
            os.kill(self.settings.supervisor, signal.SIGHUP)

    async def _reload_cluster(self, address: str) -> None:
        """Serve the applied revision of a cluster if it changed. Running requests keep their graphs."""
        async with self._reloading:
            try:
                cluster = await asyncio.to_thread(read_applied, address)
                if cluster.revision == self.graphs.revision:
                    _log.info("revision %s of the cluster is served already", cluster.revision)
                    return
                opened = await asyncio.to_thread(open_cluster, self.settings, cluster)
            except OmnigraphError as error:
                _log.error("the cluster was not reloaded: %s", error.message)
                return
            before, self.graphs = self.graphs, opened
            _log.info("revision %s of the cluster is served", cluster.revision)
            before.retire()

    def _reload_tokens(self) -> None:
        try:
            self.tokens = tokens_of(self.settings)
        except BadRequest as error:
            _log.error("the tokens were not reloaded: %s", error.message)
        else:
            _log.info("the tokens were reloaded")

    def close(self) -> None:
        """Close pools, graphs and traces, and remove temporary files."""
        self.metrics.close()
        if self.tracing is not None:
            self.tracing.close()
        self.readers.close()
        self.writers.close()
        self.graphs.close()
        if self.shares is not None:
            self.shares.close()
        self.scratch.remove()


def tokens_of(settings: Settings) -> Tokens:
    """The tokens of a server: the one-time token of this run, or the tokens of the environment."""
    if settings.rights == "open":
        return Tokens()
    if settings.one_time_token is not None:
        return one_token(settings.one_time_token)
    return read_tokens(os.environ)


def open_state(settings: Settings) -> ServerState:
    """Open the graphs and read the tokens."""
    tokens = tokens_of(settings)
    return ServerState(settings, open_graphs(settings), tokens, make_scratch("server"))
