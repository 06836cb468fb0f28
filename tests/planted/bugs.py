"""Bugs that were planted once and that nothing caught, as data: where each is planted, and the test that must fail with it.

A bug is one replacement in one file of a copy of the source. `old` occurs exactly once there; when the code has moved on, the row
is brought up to date with it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SOURCE = PROJECT / "src"


@dataclass(frozen=True)
class Bug:
    """One planted bug.

    `test`: what pytest is given to run, or the arguments of `python -m tests.soak`. `finds`: a pattern of what the soak says.
    """

    name: str
    file: str
    old: str
    new: str
    test: str
    finds: str = ""

    def plant(self, target: Path) -> Path:
        """A copy of the source with the bug in it; returns the folder that is to come first on the path."""
        shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        path = target / "omnigraph" / self.file
        text = path.read_text()
        assert text.count(self.old) == 1, (
            f"{self.name}: its place in {self.file} is not there any more, or not the only one"
        )
        path.write_text(text.replace(self.old, self.new))
        return target


#: Each is found by a test of its own.
BUGS: tuple[Bug, ...] = (
    Bug(
        "an overwrite forgets the edge tables it looked at",
        "load/execute.py",
        "            elif self.request.mode == OVERWRITE and ends & written:\n                seen.add(edge.type_key)\n",
        "",
        "tests/load/test_commit.py::test_an_overwrite_next_to_an_edge_that_needs_what_goes",
    ),
    Bug(
        "drift is put right above foreign writes",
        "commit/drift.py",
        "    return made_by[-1:] == [UNDO] and None not in made_by\n",
        "    return made_by[-1:] == [UNDO]\n",
        "tests/commit/test_lock_ignored.py::test_drift_is_not_put_right_above_foreign_writes",
    ),
    Bug(
        "a rebased publish is trusted",
        "commit/publisher.py",
        "    if version != before.version + 1 or fragments[-1].metadata.physical_rows != len(publication.rows):\n",
        "    if fragments[-1].metadata.physical_rows != len(publication.rows):\n",
        "tests/commit/test_drafts.py::test_a_publish_that_lance_rebased_is_read_back",
    ),
    Bug(
        "a lease of another length is stolen early",
        "storage/lease.py",
        "self._watched[1] > (record.lease_seconds if record else self._seconds)",
        "self._watched[1] > self._seconds",
        "tests/storage/test_lease.py::test_a_lease_of_another_length_is_not_stolen_early",
    ),
    Bug(
        "rules are not checked when resolutions are given",
        "merge/plan.py",
        "    found += image_conflicts(catalog, changes, target)\n",
        "    if not options.resolutions:\n        found += image_conflicts(catalog, changes, target)\n",
        "tests/merge/test_options.py::test_a_resolution_of_one_entity_hides_no_broken_rule_of_another",
    ),
    Bug(
        "what a resolution brings is not looked for in tables that nobody changed",
        "merge/plan.py",
        "    if not resolutions:\n",
        "    if options is not None:\n",
        "tests/merge/test_options.py::test_an_end_that_a_resolution_gives_is_looked_for_in_a_table_that_nobody_changed",
    ),
    Bug(
        "of three merge bases the last one counts",
        "merge/difference.py",
        "        counts[(counts == 0) & alike(best, before, values) & ~alike(there, before, values)] = number\n",
        "        counts[alike(best, before, values) & ~alike(there, before, values)] = number\n",
        "tests/merge/test_history.py::test_of_three_bases_the_latest_that_touched_an_entity_counts",
    ),
    Bug(
        "a sum of integers wraps round",
        "query/shape/aggregate.py",
        "    return column.cast(pa.int64() if _largest_sum(column, scalar) < _EXACT else _WIDE)\n",
        "    return column.cast(pa.int64(), safe=False)\n",
        "tests/query/shape/test_edges_of_types.py::test_sums_of_integers_do_not_wrap_round",
    ),
    Bug(
        "a prefix ends in half of a surrogate pair",
        "query/scan/pushdown.py",
        "chr(_SURROGATES.stop if point in _SURROGATES else point)",
        "chr(point)",
        "tests/query/shape/test_edges_of_types.py::test_a_prefix_may_end_before_the_surrogates",
    ),
    Bug(
        "a null inside a vector passes",
        "validation/rows.py",
        "    return pc.invert(pc.fill_null(pc.is_finite(elements), False))\n",
        "    return pc.fill_null(pc.invert(pc.is_finite(elements)), False)\n",
        "tests/validation/test_rows.py::test_a_null_inside_a_vector_is_no_number",
    ),
    Bug(
        "a fork is compacted under an index that it inherits",
        "storage/tables/compaction.py",
        "    return frozenset(id_ for index in told for id_ in index.inherited_fragments)\n",
        "    return frozenset()\n",
        "tests/maintenance/test_optimize.py::test_a_fork_that_inherits_an_index_is_readable_when_it_is_compacted",
    ),
)

#: What the soak finds, whatever operation meets it: its sensitivity.
FOR_THE_SOAK = (
    Bug(
        "what a write has looked at is not required",
        "commit/protocol.py",
        "        needed += [read(entry) for entry in self.reads]\n",
        "",
        "--place local --seed 101",
        r"broke a rule: .*(dangles|mark|leads)|had to be refused",
    ),
    Bug(
        "half of a write is rolled forward",
        "commit/recovery.py",
        "    complete = decision is Decision.ROLL_FORWARD or (",
        "    complete = True or (",
        "--place local --seed 102",
        r"differs from the model|broke a rule|had to be refused",
    ),
    Bug(
        "cleanup forgets tags and merge bases",
        "maintenance/retention.py",
        "            if commit.branch in states and _has_state(context, commit):\n",
        "            if False:\n",
        "--place local --seed 103 --round 20",
        r"tag .* can not be read|HistoricalVersionReclaimed",
    ),
    Bug(
        "a deleted node leaves the edges that lead to it",
        "mutation/statements.py",
        '            for end, type_name in (("src", edge.from_type), ("dst", edge.to_type)):\n',
        '            for end, type_name in (("src", edge.from_type),):\n',
        "--place local --seed 104 --round 10",
        r"differs from the model",
    ),
    Bug(
        "an idempotency key is not recorded",
        "mutation/execute.py",
        "            updates=() if key is None else (self.receipt(key, result, self.lineage.id),),\n",
        "            updates=(),\n",
        "--place local --seed 105 --round 20",
        r"operations with two commits|was answered with several commits|made other commits",
    ),
)
