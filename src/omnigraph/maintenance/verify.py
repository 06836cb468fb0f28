"""`verify`: checks that all data that branches, tags and retained commits need exists, is unchanged, and is consistent.

It writes nothing and takes no lock, so writers go on meanwhile. The digest log is read first, then the states, then the
listing: so recorded and named files existed before they were listed. If something seems to be missing and the graph has
moved meanwhile, everything is examined again.

1. Files: they exist with the size that a version names or that was recorded; `deep`: read whole, with the recorded digest.
2. Consistency: states, history, refs, forks, indexes, sidecars, schema files.
3. Rows of every branch and tag: the rules of their schema. Tables with damaged files are not read: decoding them is unsafe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from omnigraph.commit.branch_refs import MANIFEST_PATH
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import ManifestState, TableEntry
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.maintenance.drifted import Classification, look_for_drift
from omnigraph.maintenance.verify_control import check_control_files
from omnigraph.maintenance.verify_files import group_of, place_of, read_files, read_specs, total_bytes
from omnigraph.maintenance.verify_report import LISTED, Damage, DamageKind, VerifyReport, attempted
from omnigraph.maintenance.verify_rules import Judgement, JudgeSpec, judge_table
from omnigraph.maintenance.verify_states import (
    RESTORE,
    Inventory,
    Needed,
    NeededFile,
    Users,
    Version,
    Walked,
    find_needed,
    walk,
    without_purged,
)
from omnigraph.maintenance.workplace import Workplace
from omnigraph.spark.runner import Display
from omnigraph.storage.digests import Digest, Recorded, fold_log, read_log
from omnigraph.storage.objects import ObjectInfo
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.version_files import version_file
from omnigraph.validation.rows import Violation

#: How often everything is examined because the graph moved while something seemed to be missing.
LOOKS = 3
#: The assumed bytes per row, to decide whether reading is worth a Spark job.
_BYTES_PER_ROW = 256

REWRITE = "restore the file from a backup, or let `omnigraph verify --repair` go back to the newest undamaged version"
REBUILD = "no answer needs it: `omnigraph verify --repair` drops the index, `omnigraph ensure-indices` builds it again"
CHANGE_ROWS = "change or delete these rows"
HARMLESS = "nothing needs it; `omnigraph cleanup` removes it when it is old"
LOST_REF = "restore the file from a backup; without it cleanup would take the branch for one that was given up"

#: Classifications that are not reported as drift; dead indexes are reported for every state, not only for heads.
_NO_DRIFT = (Classification.NO_DRIFT, Classification.DEAD_INDEX)

#: Returns the schema that a state is checked against; raises errors that `attempted` turns into text.
CatalogOf = Callable[[ManifestState], Catalog]


@dataclass(frozen=True, slots=True)
class Found:
    """The result of one examination: the report, and the data that a repair starts from."""

    report: VerifyReport
    needed: Needed
    damaged: dict[str, Damage]
    unrecorded: dict[str, Digest]
    #: The needed versions with their files, and those among them whose rows can not be trusted.
    walked: dict[Version, Walked]
    spoilt: set[Version]
    files: dict[str, ObjectInfo]
    recorded: Recorded


def verify(
    context: CommitContext,
    catalog_of: CatalogOf,
    *,
    deep: bool = False,
    workplace: Workplace | None = None,
    schema_damages: Callable[[], list[Damage]] = list,
) -> Found:
    """Examine everything. `schema_damages`: checks the schema files."""
    place = workplace or Workplace(context.root)
    for _ in range(LOOKS - 1):
        run = _Verification(context, catalog_of, deep, place)
        found = run.look(schema_damages())
        if found.report.ok or not run.has_moved():
            return found
        context.manifest.tables.forget(Location(MANIFEST_PATH))
    return _Verification(context, catalog_of, deep, place).look(schema_damages())


def record(context: CommitContext, found: Found) -> VerifyReport:
    """Write the digests of files that had none and were read whole into the log, except damaged files."""
    added = {path: digest for path, digest in found.unrecorded.items() if path not in found.damaged}
    if added:
        fold_log(context.store, added=added)
    return replace(found.report, recorded=len(added), unrecorded=found.report.unrecorded - len(added))


class _Verification:
    """One examination of a graph."""

    def __init__(self, context: CommitContext, catalog_of: CatalogOf, deep: bool, workplace: Workplace) -> None:
        self._context = context
        self._catalog_of = catalog_of
        self._deep = deep
        self._workplace = workplace
        recorded = read_log(context.store)
        self._before = self._moment()
        self._needed = Needed()
        self._there = Inventory(recorded, {})
        self._damages: dict[str, Damage] = {}
        self._others: list[Damage] = []
        self._notes: list[str] = []
        self._bytes = 0
        self._digests: dict[str, Digest] = {}

    def _moment(self) -> object:
        """A value that changes with any commit, new branch, removed branch or cleanup."""
        infos = self._context.store.list(MANIFEST_PATH)
        return {info.path for info in infos if "/_versions/" in info.path or "/_refs/" in info.path}

    def has_moved(self) -> bool:
        return self._moment() != self._before

    def look(self, schema_damages: list[Damage]) -> Found:
        context = self._context
        recorded = self._there.recorded
        # Read the states first, so that what they name existed before it is listed.
        first = {info.path: info for info in context.store.list("")}
        self._needed = find_needed(context, Inventory(recorded, first))
        self._there = Inventory(recorded, {info.path: info for info in context.store.list("")})
        self._others += [*schema_damages, *self._needed.damages]
        walked = [walk(context, version) for version in without_purged(self._there, self._needed)]
        needed = self._needed_files(walked)
        self._check_recorded(needed)
        self._check_present(needed)
        if self._deep:
            self._read(needed)
        self._check_walked(walked)
        self._affected(walked)
        looked = check_control_files(context, self._there)
        self._others += looked.damages
        self._notes += looked.notes
        spoilt = self._spoilt(walked)
        self._check_drift(spoilt)
        self._check_rules(walked, spoilt)
        return self._found(needed, walked, spoilt)

    # --- files --------------------------------------------------------------------------------------------------------

    def _needed_files(self, walked: Iterable[Walked]) -> dict[str, NeededFile]:
        files: dict[str, NeededFile] = {}
        for version in walked:
            for file in version.files:
                files.setdefault(file.path, file)
        return files

    def _check_recorded(self, needed: dict[str, NeededFile]) -> None:
        """Check that every recorded file exists with its size. Unneeded files may be missing, except `_is_evidence`."""
        for path in self._there.recorded.digests:
            info = self._there.files.get(path)
            if info is None:
                if path in needed or group_of(path) in needed or self._is_evidence(path):
                    self._damage(path, DamageKind.MISSING, "is missing")
            elif not self._there.recorded.has_size(path, info.size):
                sizes = " or ".join(str(digest.size) for digest in self._there.recorded.digests[path])
                self._damage(path, DamageKind.SIZE, f"has {info.size} bytes; {sizes} were written")

    def _is_evidence(self, path: str) -> bool:
        """Whether a recorded file proves a loss if it is missing, even if no state names it."""
        place = place_of(path)
        if place.kind == "transaction":
            line, made = place.line, int(place.rest.partition("-")[0]) + 1
            assert line is not None
            return version_file(Location(line), made) in self._there.files
        if place.kind in ("version", "branch ref"):
            return path.startswith(f"{MANIFEST_PATH}/")
        return place.line is None

    def _check_present(self, needed: dict[str, NeededFile]) -> None:
        """Check that every file that a version names exists, with the size that the version gives."""
        folders: dict[str, int] = {}
        for path, info in self._there.files.items():
            group = group_of(path)
            if group is not None:
                folders[group] = folders.get(group, 0) + info.size
        for path, file in needed.items():
            if file.is_folder:
                found: int | None = folders.get(path)
            else:
                listed = self._there.files.get(path)
                found = None if listed is None else listed.size
            if found is None:
                self._damage(path, DamageKind.MISSING, "is missing")
            elif file.size not in (None, 0, found):
                self._damage(path, DamageKind.SIZE, f"has {found} bytes; {file.size} were written")

    def _read(self, needed: dict[str, NeededFile]) -> None:
        """Read every recorded file, and needed files that are not recorded."""
        recorded, files = self._there.recorded.digests, self._there.files
        wanted = [
            (path, info.size, recorded.get(path, ()))
            for path, info in files.items()
            if path not in self._damages and (path in recorded or path in needed or group_of(path) in needed)
        ]
        specs = read_specs(self._context.root, wanted)
        size = total_bytes(specs)
        count = self._workplace.counter("read", size)
        runner = self._workplace.runner(size // _BYTES_PER_ROW, len(specs))
        for result in runner.run(
            read_files, specs, display=Display(attrgetter("bytes"), count), stage="verify: read files"
        ):
            self._bytes += result.bytes
            self._digests |= result.digests
            for path, why in result.wrong.items():
                self._damage(path, DamageKind.CONTENT, why)

    def _damage(self, path: str, kind: DamageKind, what: str, remedy: str | None = None) -> None:
        if path in self._damages:
            return
        place = place_of(path)
        named = f"{place.kind} {path}"
        self._damages[path] = Damage(path, kind, f"{named} {what}", remedy or _remedy(path), self._key(path))

    def _key(self, path: str) -> str | None:
        return self._needed.keys.get("/".join(path.split("/")[:2]))

    # --- agreement ----------------------------------------------------------------------------------------------------

    def _check_walked(self, walked: Iterable[Walked]) -> None:
        for version in walked:
            path = version_file(version.location, version.version)
            if version.problem is not None:
                self._damage(path, DamageKind.UNREADABLE, f"can not be read: {version.problem}")
            for name in version.dead_indexes:
                key = f"{version.location.dataset_path} index {name}"
                message = f"index {name} of {version.location} is on a column that the table does not have"
                remedy = "`omnigraph repair --confirm` drops it"
                users = self._needed.versions[version.location, version.version]
                damage = Damage(version.location.path, DamageKind.DEAD_INDEX, message, remedy, self._key(path))
                merged = Users()
                merged.add(users)
                self._damages[key] = merged.on(damage)

    def _affected(self, walked: Iterable[Walked]) -> None:
        """Set for each damaged file which branches, tags and commits it affects."""
        users: dict[str, Users] = {}
        rows: dict[str, int | None] = {}
        groups = {group_of(path) or path: path for path in self._damages}
        for version in walked:
            for file in version.files:
                path = file.path if file.path in self._damages else groups.get(file.path)
                if path is not None:
                    users.setdefault(path, Users()).add(self._needed.versions[version.location, version.version])
                    rows[path] = file.rows if file.path == path else None
        for path, damage in self._damages.items():
            if path in users:
                self._damages[path] = replace(users[path].on(damage), rows=rows[path])
            elif damage.kind is not DamageKind.DEAD_INDEX and place_of(path).line is not None:
                self._damages[path] = self._unneeded(path, damage)

    def _unneeded(self, path: str, damage: Damage) -> Damage:
        place = place_of(path)
        if place.kind == "branch ref":
            name = place.rest.removeprefix("branches/").removesuffix(".json")
            return replace(damage, branches=(name,), remedy=LOST_REF)
        if place.kind == "version" and path.startswith(f"{MANIFEST_PATH}/"):
            return replace(damage, message=f"{damage.message}: commits that it held are lost", remedy=RESTORE)
        return replace(damage, remedy=HARMLESS)

    def _check_drift(self, spoilt: set[Version]) -> None:
        """Check that the heads of tables are their pins, unless a sidecar is pending."""
        if self._notes:
            return
        for state in self._needed.states_of_branches():
            for entry in state.tables.values():
                if (entry.location, entry.version) in spoilt or self._is_shared(state, entry):
                    continue
                drift = attempted(partial(look_for_drift, self._context, entry))
                if isinstance(drift, str) or drift.classification in _NO_DRIFT:
                    continue
                message = (
                    f"{entry.key} on branch '{state.branch}' is at version {drift.head}, published is {entry.version}"
                )
                damage = Damage(entry.path, DamageKind.DRIFT, message, "see `omnigraph repair`", entry.key)
                self._others.append(replace(damage, branches=(state.branch,)))

    def _is_shared(self, state: ManifestState, entry: TableEntry) -> bool:
        return attempted(partial(self._context.forks.is_shared, state, entry)) is not False

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _spoilt(self, walked: Iterable[Walked]) -> set[Version]:
        """The versions whose rows can not be trusted because one of their files is damaged. Indexes do not affect rows."""
        bad = {group_of(path) or path for path in self._damages if place_of(path).kind != "index"}
        return {
            (version.location, version.version)
            for version in walked
            if version.problem is not None or any(file.path in bad for file in version.files)
        }

    def _check_rules(self, walked: Sequence[Walked], spoilt: set[Version]) -> None:
        """Check the rows of every branch and tag, each version of a table once."""
        unknown = self._unknown_versions(walked)
        specs: dict[object, tuple[JudgeSpec, Users]] = {}
        for label, state in self._needed.states.items():
            kind, _, name = label.partition(" ")
            users = Users(branches={name}) if kind == "branch" else Users(tags={name})
            for spec in self._specs(state, users, unknown):
                versions = {(spec.location, spec.version), *(end for _, end in spec.ends)}
                if not versions & spoilt:
                    key = (spec.location, spec.version, spec.ends, state.schema_hash)
                    specs.setdefault(key, (spec, Users()))[1].add(users)
        judged = {(spec.location, spec.version) for spec, _ in specs.values()}
        for location, version in sorted(unknown - judged - spoilt, key=str):
            spec = JudgeSpec(self._context.root, None, location, version, None, decode=True)
            specs[location, version] = spec, self._needed.versions[location, version]
        rows = sum(spec.expected_rows or 0 for spec, _ in specs.values())
        runner = self._workplace.runner(rows, len(specs))
        count = self._workplace.counter("rows", rows)
        judging = [spec for spec, _ in specs.values()]
        results = runner.run(
            judge_table, judging, display=Display(attrgetter("rows"), count), stage="verify: judge rows"
        )
        for (spec, users), result in zip(specs.values(), results, strict=True):
            self._judged(spec, users, result)

    def _unknown_versions(self, walked: Sequence[Walked]) -> set[Version]:
        """With `deep`: versions that need a file without a recorded digest; these are decoded instead."""
        if not self._deep:
            return set()
        new = {group_of(path) or path for path in self._digests}
        found: set[Version] = set()
        seen: set[str] = set()
        # Newest first: it has most of the files that older versions need.
        for version in sorted(walked, key=lambda version: -version.version):
            files = {file.path for file in version.files if file.path in new} - seen
            if files:
                seen |= files
                found.add((version.location, version.version))
        return found

    def _specs(self, state: ManifestState, users: Users, unknown: set[Version]) -> Iterator[JudgeSpec]:
        catalog = attempted(partial(self._catalog_of, state))
        if isinstance(catalog, str):
            message = f"the rows of {state.snapshot_id} were not judged, its schema is not known: {catalog}"
            self._others.append(users.on(Damage("_schemas", DamageKind.UNREADABLE, message, RESTORE)))
            return
        entities: list[NodeType | EdgeType] = [*catalog.nodes.values(), *catalog.edges.values()]
        known = {(entity.id, entity.incarnation) for entity in entities}
        wrong = sorted(entry.key for identity, entry in state.tables.items() if identity not in known)
        wrong += sorted(entity.type_key for entity in entities if (entity.id, entity.incarnation) not in state.tables)
        if wrong:
            message = f"{state.snapshot_id} and its schema do not have the same types: {', '.join(wrong)}"
            self._others.append(users.on(Damage(MANIFEST_PATH, DamageKind.DISAGREES, message, RESTORE)))
        nodes = {name: state.tables.get((node.id, node.incarnation)) for name, node in catalog.nodes.items()}
        for entity in entities:
            entry = state.tables.get((entity.id, entity.incarnation))
            if entry is None:
                continue
            names = {"src": entity.from_type, "dst": entity.to_type} if isinstance(entity, EdgeType) else {}
            ends = {end: nodes.get(name) for end, name in names.items()}
            yield JudgeSpec(
                self._context.root,
                entity,
                entry.location,
                entry.version,
                entry.row_count,
                tuple((end, (node.location, node.version)) for end, node in ends.items() if node is not None),
                decode=(entry.location, entry.version) in unknown,
            )

    def _judged(self, spec: JudgeSpec, users: Users, result: Judgement) -> None:
        key = None if spec.entity is None else spec.entity.type_key
        if result.problem is not None:
            message = f"version {spec.version} of {spec.location} can not be read as it should: {result.problem}"
            self._others.append(users.on(Damage(spec.location.path, DamageKind.UNREADABLE, message, REWRITE, key)))
        broken: dict[str, list[Violation]] = {}
        for violation in result.violations:
            broken.setdefault(violation.kind, []).append(violation)
        for violations in broken.values():
            more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
            message = f"rows of {key} break the schema: {violations[0].message}{more}"
            entities = tuple(violation.entity_id for violation in violations if violation.entity_id is not None)[
                :LISTED
            ]
            damage = Damage(spec.location.path, DamageKind.RULE, message, CHANGE_ROWS, key, entities=entities)
            self._others.append(users.on(damage))

    def _found(self, needed: dict[str, NeededFile], walked: Sequence[Walked], spoilt: set[Version]) -> Found:
        files = {path for path in self._there.files if path in needed or group_of(path) in needed}
        missing = sorted(files - set(self._there.recorded.digests))
        report = VerifyReport(
            deep=self._deep,
            branches=len(self._needed.branches),
            tags=len(self._needed.tags),
            commits=len(self._needed.commits),
            files=len(files | (set(self._there.recorded.digests) & set(self._there.files))),
            bytes=self._bytes,
            unrecorded=len(missing),
            damages=(*sorted(self._damages.values(), key=lambda damage: damage.path), *self._others),
            notes=tuple(self._notes),
        )
        return Found(
            report,
            self._needed,
            self._damages,
            self._digests,
            {(version.location, version.version): version for version in walked},
            spoilt,
            self._there.files,
            self._there.recorded,
        )


def _remedy(path: str) -> str:
    """What can be done about a damaged file."""
    place = place_of(path)
    if place.kind == "index":
        return REBUILD
    if place.kind == "branch ref":
        return LOST_REF
    is_of_table = place.line is not None and not path.startswith(MANIFEST_PATH)
    return REWRITE if is_of_table and place.kind in ("data", "blob", "deletion marks", "version") else RESTORE
