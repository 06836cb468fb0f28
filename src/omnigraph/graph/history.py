"""The verbs of history: commits, tags, differences, the changes of a commit, and the change feed of a branch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from omnigraph.commit.branch_refs import read_ref
from omnigraph.commit.history import history
from omnigraph.commit.model import COMMIT_KINDS, MAIN, Commit, ManifestState
from omnigraph.errors import BadRequest, BranchNotFound, CommitNotFound
from omnigraph.graph.handle import NOW, Handle
from omnigraph.graph.snapshot import Reference, Snapshot, named_state, read_past, resolve
from omnigraph.policy.actions import CHANGE, Need
from omnigraph.shown import Listing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from omnigraph.changes.baseline import Baseline, Sink
    from omnigraph.changes.commits import CommitChanges
    from omnigraph.changes.comparison import Comparison
    from omnigraph.changes.feed import FeedPage
    from omnigraph.changes.filter import Filter, Names
    from omnigraph.changes.model import ChangeSet
    from omnigraph.evolution.steps import Step

#: What can be compared: a branch, a tag, a commit, a snapshot, or a manifest version of this handle's branch.
ReadTarget = Commit | Reference
#: A point in time: a datetime, or microseconds since the epoch.
Moment = datetime | int
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class History(Handle):
    """What changed, and names for what was."""

    # --- commits ----------------------------------------------------------------------------------------------------

    def head(self, branch: str | None = None) -> Commit:
        """The newest commit of a branch; a fresh branch has its fork point."""
        name = self._named(branch)
        state = self._context.manifest.load(name)
        commit = state.newest or self._context.manifest.find_commit(name, state.head)
        if commit is None:
            raise CommitNotFound(f"commit '{state.head}' not found", commit=state.head)
        return commit

    def commit(self, commit_id: str) -> Commit:
        """A commit by its id, wherever it was made."""
        return self._context.manifest.commit_near(commit_id, self.branch)

    def commits(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        kind: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
    ) -> list[Commit]:
        """The history reachable from a branch's head, newest first, filtered by actor, kind and time."""
        if kind is not None and kind not in COMMIT_KINDS:
            raise BadRequest(f"'{kind}' is no kind of commit; the kinds are {', '.join(sorted(COMMIT_KINDS))}")
        earliest, latest = micros(since), micros(until)
        return Listing(
            commit
            for commit in history(self._context.manifest, self._named(branch))
            if (actor is None or commit.actor == actor)
            and (kind is None or commit.kind == kind)
            and (earliest is None or commit.created_at >= earliest)
            and (latest is None or commit.created_at <= latest)
        )

    # --- differences ------------------------------------------------------------------------------------------------

    def diff(
        self,
        before: ReadTarget,
        after: ReadTarget = None,
        *,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> ChangeSet:
        """What changed from one read target to another, this handle's branch unless given; on any branches. `schema` of the
        answer: the steps from the schema of one to that of the other.

        `kinds`: node, edge. `types`: names of types. `ops`: insert, update, delete.
        """
        from omnigraph.changes.diff import diff
        from omnigraph.changes.filter import read_filter

        first, second, wanted = self._target(before), self._target(after), read_filter(kinds, types, ops)
        return diff(self._context, first, second, wanted, self._schema_steps(first, second, wanted))

    def compare(
        self,
        before: ReadTarget,
        after: ReadTarget = None,
        *,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
        limit: int = 100,
        page_token: str | None = None,
    ) -> Comparison:
        """What changed from one read target to another: steps of the schema, counts of each type, then changes in pages of
        `limit`.

        With `limit` 0 there are only counts. A page token of an earlier answer gives the next page of the same two states,
        also when a branch has moved on meanwhile.
        """
        from omnigraph.changes.comparison import compare, read_token
        from omnigraph.changes.filter import read_filter

        wanted = read_filter(kinds, types, ops)
        token = None if page_token is None else read_token(page_token, wanted)
        first, second = (before, after) if token is None else (token.before, token.after)
        older, newer = self._target(first), self._target(second)
        steps = () if token is not None else self._schema_steps(older, newer, wanted)
        return compare(self._context, older, newer, wanted, limit, behind=token, schema=steps)

    def _schema_steps(self, before: ManifestState, after: ManifestState, wanted: Filter) -> tuple[Step, ...]:
        """The steps from the schema of one state to the schema of another."""
        if before.schema_hash == after.schema_hash:
            return ()
        from omnigraph.evolution.differences import schema_differences

        return schema_differences(self._watch.of(before).ir, self._watch.of(after).ir, wanted)

    def commit_changes(
        self,
        commit_id: str,
        *,
        limit: int | None = None,
        page_token: str | None = None,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> CommitChanges:
        """What one commit did against its first parent: all of it, or with `limit` or `page_token` a page."""
        from omnigraph.changes.commits import commit_changes
        from omnigraph.changes.filter import read_filter

        commit = self._context.manifest.commit_near(commit_id, self.branch)
        identities = self._watch.identities()
        return commit_changes(self._context, identities, commit, read_filter(kinds, types, ops), limit, page_token)

    # --- the feed ---------------------------------------------------------------------------------------------------

    def changes(
        self,
        branch: str | None = None,
        *,
        cursor: str | None = None,
        start: str | None = None,
        page_token: str | None = None,
        limit: int | None = None,
        max_commits: int | None = None,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> FeedPage:
        """The next page of a branch's change feed.

        From a `cursor` of an earlier poll, from a `start` ("now" unless given, "beginning", "after:" and a commit id or what else
        names a snapshot, such as "after:main~3"), or on from the page that gave `page_token`. Follow `next_page_token` until
        there is none; then keep the cursor.
        """
        from omnigraph.changes.feed import Poll, poll
        from omnigraph.changes.filter import read_filter

        wanted = read_filter(kinds, types, ops)
        asked = Poll(self._named(branch), wanted, cursor, self._start(branch, start), page_token, limit, max_commits)
        return poll(self._context, self._watch.identities(), asked)

    def baseline(
        self,
        branch: str | None = None,
        out: Sink | None = None,
        *,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> Baseline[Snapshot]:
        """All that a branch holds now, written to `out` as export lines, and the cursor of the changes behind it.

        `out`: a path, an `s3://` URI, an open binary file, or a function that takes bytes. When it fails there is no cursor.
        Without one, read `snapshot` of the answer, with `export_chunks` for example.
        """
        from omnigraph.changes.baseline import baseline
        from omnigraph.changes.filter import read_filter

        contract, shown = self._view(branch, None, NOW)
        wanted = read_filter(kinds, types, ops)
        identities = self._watch.identities()
        return baseline(self._context, identities, contract.catalog, shown, shown.state, wanted, out)

    def spark_changes(
        self,
        branch: str | None = None,
        *,
        cursor: str | None = None,
        start: str | None = None,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
        max_commits_per_trigger: int | None = None,
    ) -> DataFrame:
        """The change feed of a branch as a Spark structured stream: one row per change, images as JSON texts.

        Spark's checkpoint keeps how far a query has come; `cursor` or `start` say where a new one begins.
        `max_commits_per_trigger`: a micro-batch has at most so many commits; all there are unless given.
        """
        from omnigraph.changes.filter import read_filter
        from omnigraph.changes.stream import Stream, stream_frame
        from omnigraph.changes.track import track_of
        from omnigraph.spark.session import spark_session

        if cursor is not None and start is not None:
            raise BadRequest("give one of cursor and start, not both")
        most = max_commits_per_trigger
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise BadRequest(f"max_commits_per_trigger is a number from 1 on, not {most!r}")
        identities, wanted = self._watch.identities(), read_filter(kinds, types, ops)
        track = track_of(self._context, identities, self._named(branch), wanted)
        seen = track.start(start) if cursor is None else track.seen(cursor)
        # Invalid arguments are refused here, rather than by a query that fails later.
        track.between(seen, track.head)
        stream = Stream(self._context.root, identities, track.state.branch, wanted, track.cursor(seen), most)
        return stream_frame(spark_session(options=self._spark), stream)

    def _start(self, branch: str | None, start: str | None) -> str | None:
        """The start of a feed with a time or ancestor replaced by a commit id; the feed itself refuses other wrong texts."""
        prefix, colon, named = start.partition(":") if isinstance(start, str) else ("", "", "")
        past = read_past(named) if prefix == "after" and colon else None
        if past is None:
            return start
        return f"after:{resolve(self._context.manifest, self._named(branch), named).head}"

    def _target(self, target: ReadTarget) -> ManifestState:
        """The state of a read target; a name that is a branch means the branch."""
        if isinstance(target, Snapshot):
            return target.state
        if isinstance(target, Commit):
            target = target.id
        if isinstance(target, str) and (target == MAIN or read_ref(self._context.store, target) is not None):
            return self._context.manifest.load(target)
        found = named_state(self._context.manifest, self.branch, target)
        if found is None:
            raise BranchNotFound(
                f"branch '{target}' not found, and no tag, commit or manifest version is called so", branch=str(target)
            )
        return found

    # --- tags -------------------------------------------------------------------------------------------------------

    def tag(
        self,
        name: str,
        commit: ReadTarget = None,
        *,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> str:
        """Name a commit, the head of this handle's branch unless given; returns its id. Cleanup keeps what is tagged.

        `idempotency_key`: a repeat of the call returns the id of the commit that the first call has named.
        """
        from omnigraph.commit.exactly_once import once
        from omnigraph.commit.tags import set_tag

        self._allow_write(actor, Need(CHANGE, MAIN))
        head = self._target(commit).head
        # The head of a branch may have moved before a repeated call, so the text as given identifies the request.
        given = self.branch if commit is None else commit if isinstance(commit, str) else head
        asked = once(idempotency_key, "tag", name=name, commit=given)
        return set_tag(self._context, name, head, actor or self.actor, asked)

    def tags(self) -> dict[str, str]:
        """The ids of the tagged commits by tag name, in name order."""
        from omnigraph.commit.tags import tagged_commits

        return dict(tagged_commits(self._context))

    def delete_tag(self, name: str, *, actor: str | None = None, idempotency_key: str | None = None) -> None:
        """Forget a tag. The commit stays, until cleanup may take it. A tag is no commit, so nothing keeps `actor`.

        `idempotency_key`: a repeat of the call forgets nothing, also when there is another tag of this name by then.
        """
        from omnigraph.commit.exactly_once import once
        from omnigraph.commit.tags import drop_tag

        self._allow_write(actor, Need(CHANGE, MAIN))
        drop_tag(self._context, name, once(idempotency_key, "delete_tag", name=name))


def micros(moment: Moment | None) -> int | None:
    """A point in time as microseconds since 1970; a datetime without a zone means UTC."""
    if moment is None or (isinstance(moment, int) and not isinstance(moment, bool)):
        return moment
    if not isinstance(moment, datetime):
        raise BadRequest(f"a point in time is a datetime, or microseconds since the epoch, not {moment!r}")
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)
