"""Agents for the tests: one that only reads, shared; and fresh ones, over each transport."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.mcp.agents import Agent, on_stdio, over_http, queries_beside
from tests.server.serving import TOKEN, make_graph, serving, settings_of

TRANSPORTS = ("stdio", "stdio to a server", "http")
#: Makes an agent: the graph it works on is given back with it. `branch`, `read_only`: how it is confined.
Connect = Callable[..., AbstractContextManager[tuple[Agent, Path]]]


@pytest.fixture(scope="session")
def graph_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph, made once."""
    return make_graph(tmp_path_factory.mktemp("template"))


@contextmanager
def connected(
    transport: str, path: Path, branch: str | None, read_only: bool, max_bytes: int | None
) -> Iterator[Agent]:
    """An agent over a transport."""
    settings = settings_of(path)
    flags = [*(["--branch", branch] if branch else []), *(["--read-only"] if read_only else [])]
    flags += ["--max-bytes", str(max_bytes)] if max_bytes else []
    if transport == "stdio":
        with on_stdio(str(path), "--queries", str(queries_beside(path)), *flags) as agent:
            yield agent
        return
    with serving(settings) as served:
        if transport == "http":
            asked = {"branch": branch, "read_only": "true" if read_only else None, "max_bytes": max_bytes}
            query = "&".join(f"{name}={value}" for name, value in asked.items() if value is not None)
            with over_http(served.url, query=f"?{query}" if query else "") as agent:
                yield agent
        else:
            env = {"OMNIGRAPH_BEARER_TOKEN": TOKEN}
            with on_stdio("--server", served.url, "--graph", "people", *flags, env=env) as agent:
                yield agent


@pytest.fixture(scope="module", params=TRANSPORTS)
def reader(
    request: pytest.FixtureRequest, graph_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Agent]:
    """An agent of a graph that no test changes."""
    path = Path(shutil.copytree(graph_template, tmp_path_factory.mktemp("reading") / "people.omni"))
    with connected(request.param, path, None, False, None) as agent:
        yield agent


@pytest.fixture(params=TRANSPORTS)
def connect(request: pytest.FixtureRequest, graph_template: Path, tmp_path: Path) -> Connect:
    """Connect an agent to a copy of the graph."""
    path = Path(shutil.copytree(graph_template, tmp_path / "people.omni"))

    @contextmanager
    def made(
        branch: str | None = None, read_only: bool = False, max_bytes: int | None = None
    ) -> Iterator[tuple[Agent, Path]]:
        with connected(request.param, path, branch, read_only, max_bytes) as agent:
            yield agent, path

    return made
