"""Random mutations that wait for a branch together, against a plain model that carries them out one after the other."""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.errors import ValidationError
from omnigraph.graph.lifecycle import connect
from tests.commit.healthy import assert_healthy
from tests.mutation.model import SCHEMA, Content, Refused, Statement, carry_out
from tests.mutation.test_stateful import POPULATION, STATEMENTS, shown
from tests.mutation.waiting import publish_together

ROUNDS = st.lists(st.lists(STATEMENTS, min_size=2, max_size=6), min_size=1, max_size=3)


def _source(statements: list[Statement]) -> str:
    return f"query q() {{ {' '.join(statement.text() for statement in statements)} }}"


def _agree(rounds: list[list[list[Statement]]], branch: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="together-"))
    try:
        graph = og.init(folder / "g", SCHEMA)
        graph.mutate(_source(POPULATION))
        content = carry_out(Content(), POPULATION).content
        if branch != "main":
            graph.create_branch(branch)
        known: list[tuple[str, Content]] = []
        for mutations in rounds:
            told = publish_together(
                graph, [partial(graph.mutate, _source(one), branch=branch) for one in mutations], branch
            )
            head = graph.commits(branch)
            commits = []
            for statements, result in zip(mutations, told, strict=True):
                try:
                    outcome = carry_out(content, statements)
                except Refused:
                    assert isinstance(result, ValidationError), result
                    continue
                assert isinstance(result, og.MutationResult), result
                assert (result.affected_nodes, result.affected_edges) == (outcome.nodes, outcome.edges)
                assert (result.commit is not None) == outcome.changed
                content = outcome.content
                if result.commit is not None:
                    commits.append(result.commit)
                    known.append((result.commit.id, content))
            # In the order of arrival, and nothing else.
            assert head[: len(commits)] == commits[::-1]
            assert shown(graph, branch) == content
        for commit, state in known:
            assert shown(graph, branch, commit) == state
        assert_healthy(connect(graph.uri))
    finally:
        shutil.rmtree(folder)


def _run(examples: int, branch: str) -> None:
    quiet = list(HealthCheck)
    options = settings(max_examples=examples, deadline=None, suppress_health_check=quiet, print_blob=True)

    @options
    @given(rounds=ROUNDS)
    def agree(rounds: list[list[list[Statement]]]) -> None:
        _agree(rounds, branch)

    agree()


@pytest.mark.parametrize("branch", ["main", "feature"])
def test_a_group_is_what_its_mutations_are_one_after_the_other(branch: str) -> None:
    _run(12, branch)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("branch", ["main", "feature"])
def test_a_group_is_what_its_mutations_are_for_long(branch: str) -> None:
    _run(1_000, branch)
