"""`verify --deep` finds every damage of a single file, or the answers are still right and the graph can be written to.

The graph is damaged where it lies (its branches know their place) and put right again afterwards.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.maintenance.verify_files import place_of
from tests import warm
from tests.maintenance import damage_graph

Damage = Callable[[random.Random, Path, list[Path]], None]


def flip(chance: random.Random, file: Path, _others: list[Path]) -> None:
    data = bytearray(file.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


def truncate(chance: random.Random, file: Path, _others: list[Path]) -> None:
    os.truncate(file, chance.choice([0, chance.randrange(file.stat().st_size)]))


def zero(chance: random.Random, file: Path, _others: list[Path]) -> None:
    data = bytearray(file.read_bytes())
    start = chance.randrange(len(data))
    end = min(len(data), start + 512)
    data[start:end] = bytes(end - start)
    file.write_bytes(data)


def swap(chance: random.Random, file: Path, others: list[Path]) -> None:
    """Two files of one kind have each other's content."""
    other = chance.choice([one for one in others if one != file])
    mine, theirs = file.read_bytes(), other.read_bytes()
    file.write_bytes(theirs)
    other.write_bytes(mine)


def delete(_chance: random.Random, file: Path, _others: list[Path]) -> None:
    file.unlink()


DAMAGES: tuple[Damage, ...] = (flip, flip, truncate, zero, swap, delete)


class Patient:
    """The graph, a copy of it that stays whole, and the right answers."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "graph"
        self._whole = folder / "whole"
        damage_graph.build(self.path)
        shutil.copytree(self.path, self._whole)
        self.truth = self.ask("ask").stdout
        assert self.truth
        self.kinds: dict[str, list[Path]] = {}
        for file in sorted(self.path.rglob("*")):
            if file.is_file() and file.stat().st_size:
                self.kinds.setdefault(kind_of(str(file.relative_to(self.path))), []).append(file)

    def ask(self, what: str) -> subprocess.CompletedProcess[str]:
        call = [sys.executable, "-m", "tests.maintenance.damage_graph", what, str(self.path)]
        return warm.run(call, capture_output=True, text=True, check=False)

    def heal(self) -> None:
        shutil.rmtree(self.path)
        shutil.copytree(self._whole, self.path)


def kind_of(path: str) -> str:
    """The kinds among which damages are spread evenly."""
    if path.startswith("__locks/"):
        return "lock"
    if path.endswith("latest_version_hint.json"):
        return "version hint"
    kind = place_of(path).kind
    if kind in ("control file", "schema file"):
        return path.rpartition("/")[2] if kind == "control file" else kind
    return f"{kind} of the manifest" if path.startswith("__manifest") else kind


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Patient:
    return Patient(tmp_path_factory.mktemp("damage"))


def test_the_whole_graph_is_whole(patient: Patient) -> None:
    report = og.verify(patient.path, deep=True)
    assert report.ok, report.damages
    assert report.unrecorded == 0
    assert {"blob", "index", "deletion marks", "transaction", "branch ref of the manifest"} <= set(patient.kinds)


def _harm(patient: Patient, number: int, told: Counter[tuple[str, str, str]]) -> None:
    chance = random.Random(number)
    kind = chance.choice(sorted(patient.kinds))
    files = patient.kinds[kind]
    damage = chance.choice([one for one in DAMAGES if one is not swap or len(files) > 1])
    file = chance.choice(files)
    before = {one: one.read_bytes() for one in (files if damage is swap else [file])}
    damage(chance, file, files)
    written_to = False
    try:
        report = og.verify(patient.path, deep=True)
        outcome = "found"
        if report.ok:
            # Nothing was said: then everything must be as it was, and writable.
            where = f"{number}: {damage.__name__} of {file.relative_to(patient.path)}"
            outcome = "unchanged" if file.exists() and file.read_bytes() == before[file] else "harmless"
            written_to = True
            asked = patient.ask("ask")
            assert asked.stdout == patient.truth, f"silent damage {where}: {asked.stderr}"
            written = patient.ask("write")
            assert written.returncode == 0, f"not writable after {where}: {written.stderr}"
        told[kind, damage.__name__, outcome] += 1
    finally:
        if written_to:
            patient.heal()
        for one, data in before.items():
            one.write_bytes(data)


@pytest.mark.parametrize("number", range(30))
def test_a_damage_is_found_or_harmless(patient: Patient, number: int) -> None:
    _harm(patient, number, Counter())


@pytest.mark.long
def test_five_hundred_damages_are_found_or_harmless(patient: Patient) -> None:
    told: Counter[tuple[str, str, str]] = Counter()
    for number in range(1000, 1500):
        _harm(patient, number, told)
    assert sum(told.values()) == 500
    for (kind, damage, outcome), count in sorted(told.items()):
        print(f"{kind:32} {damage:9} {outcome:10} {count}")
