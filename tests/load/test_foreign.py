"""Arrow data made elsewhere passes one door, where everything that would crash, or could never be read again, is refused."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any, cast
from weakref import WeakValueDictionary

import orjson
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import LoadRejected
from omnigraph.load import foreign, inputs
from tests.load.conftest import Load
from tests.load.foreign_child import CASES, LATIN, SCHEMA, column, parquet, table
from tests.load.loading import rows

SOURCES = Path(foreign.__file__).parent


def child(*arguments: str) -> list[dict[str, Any]]:
    """What a process of its own prints; the test fails when it dies."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.load.foreign_child", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout[-500:], done.stderr[-3000:])
    return [orjson.loads(line) for line in done.stdout.splitlines()]


def test_hostile_data_is_a_problem_with_its_row(tmp_path: Path) -> None:
    """Each case is refused with the rows it is about, nothing is stored, and the process lives."""
    found = {answer["case"]: answer for answer in child("hostile", str(tmp_path))}
    assert list(found) == list(CASES)
    for name, (_, message, places) in CASES.items():
        answer = found[name]
        assert message in answer["said"], name
        assert (answer.get("rows"), answer["stored"]) == (places, 0), name


@pytest.mark.parametrize("seed", [1, 2])
def test_random_damage_is_refused_or_reads_back(tmp_path: Path, seed: int) -> None:
    (counts,) = child("corrupt", str(tmp_path), str(seed), "60")
    assert counts["refused"] > 20
    assert counts["refused"] + counts["loaded"] == 60


@pytest.mark.long
def test_much_random_damage(tmp_path: Path) -> None:
    (counts,) = child("corrupt", str(tmp_path), "3", "3000")
    assert counts["refused"] + counts["loaded"] == 3000


def test_every_way_of_loading_says_the_same(tmp_path: Path, load: Load) -> None:
    """Held, staged, and staged by Spark's workers: a Latin-1 byte in row 2 of a Parquet file, and the rows around it."""
    graph = og.init(tmp_path / "g", SCHEMA)
    path = parquet(tmp_path, table(text=column(pa.string(), [b"a", LATIN, b"b"]), small=pa.array([1, 2, 2**40])))
    with pytest.raises(LoadRejected) as rejected:
        load(graph, path, type="T")
    assert rejected.value.errors == [
        (str(path), 2, "T.text: the text is not valid UTF-8"),
        (str(path), 3, "T.small (I32?): 1099511627776 is outside the range of I32"),
    ]
    assert rows(graph, "node:T") == []


def test_rows_behind_a_damaged_group_keep_their_numbers(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", SCHEMA)
    data = table(text=["secret"] * 4 + ["x", "y"], small=pa.array([1, 1, 1, 1, 1, 2**40]))
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True, "write_statistics": False}
    path = parquet(tmp_path, data, row_group_size=4, **options)
    content = bytearray(path.read_bytes())
    content[content.index(b"secret")] ^= 1
    path.write_bytes(content)
    with pytest.raises(LoadRejected) as rejected:
        graph.load(path, type="T", engine="local")
    assert [line for _, line, _ in rejected.value.errors] == [1, 6]


def _dictionary(values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), values)


def _runs(values: pa.Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int16()), values)


def _extension(values: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.opaque(values.type, "type", "vendor"), values)


def _views(values: pa.Array) -> pa.Array:
    return values.cast(pa.string_view())


_ENCODINGS: list[Callable[[pa.Array], pa.Array]] = [_dictionary, _runs, _extension]


@pytest.mark.parametrize("values", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_encodings_may_stand_around_each_other(tmp_path: Path, values: pa.DataType) -> None:
    """Arrow has functions for an encoding of plain values only, and follows an extension of an extension without end."""
    graph = og.init(tmp_path / "g", SCHEMA)
    texts = ["a", "b, which is longer than a view keeps within itself"]
    pairs = list(product(_ENCODINGS, repeat=2))
    for number, (inner, outer) in enumerate(pairs):
        encoded = pa.table({"key": [f"{number}/0", f"{number}/1"], "text": outer(inner(pa.array(texts, values)))})
        graph.load(encoded, type="T", engine="local")
    found = {row["key"]: row["text"] for row in rows(graph, "node:T")}
    for number, pair in enumerate(pairs):
        turned = pair.count(_dictionary) == 1
        assert [found[f"{number}/0"], found[f"{number}/1"]] == (texts[::-1] if turned else texts), pair


@pytest.mark.parametrize("outer", _ENCODINGS)
@pytest.mark.parametrize("inner", [*_ENCODINGS, _views])
@pytest.mark.parametrize("lists", [pa.list_, pa.large_list, pa.list_view], ids=lambda lists: str(lists.__name__))
def test_lists_may_hold_encoded_values(
    tmp_path: Path,
    lists: Callable[[pa.DataType], pa.DataType],
    inner: Callable[[pa.Array], pa.Array],
    outer: Callable[[pa.Array], pa.Array],
) -> None:
    """Arrow takes rows of a dictionary or of runs only where it knows how to copy what their lists hold."""
    graph = og.init(tmp_path / "g", SCHEMA)
    elements = inner(pa.array(["a", "b"]))
    offsets = [pa.array([0, 1], pa.int32()), pa.array([1, 1], pa.int32())]
    if lists is pa.list_view:
        column = pa.ListViewArray.from_arrays(*offsets, elements)
    else:
        made = pa.ListArray if lists is pa.list_ else pa.LargeListArray
        column = made.from_arrays(pa.array([0, 1, 2]), elements)
    graph.load(table(words=outer(column)), type="T", engine="local")
    turned = (inner is _dictionary) != (outer is _dictionary)
    assert [row["words"] for row in rows(graph, "node:T")] == ([["b"], ["a"]] if turned else [["a"], ["b"]])


_LONG = pa.array(["x" * (1 << 20)], pa.large_string())
_MANY = pa.array(["x"] * 100_000)
_ZEROS = pa.array([0] * 50_000, pa.int32())
_ALL = pa.array([len(_MANY)] * 50_000, pa.int32())
_END = pa.array([1 << 40])
_EXPANDING: dict[str, tuple[str, Callable[[], pa.Array]]] = {
    "runs": ("text", lambda: pa.RunEndEncodedArray.from_arrays(pa.array([50_000]), _LONG)),
    "views": (
        "text",
        lambda: pa.Array.from_buffers(
            pa.string_view(),
            50_000,
            [None, pa.py_buffer(bytes(_LONG.cast(pa.string_view()).buffers()[1])[:16] * 50_000), _LONG.buffers()[2]],
        ),
    ),
    "lists of a dictionary": ("words", lambda: pa.DictionaryArray.from_arrays(_ZEROS, pa.array([["x" * 1000] * 1000]))),
    "views of lists": ("words", lambda: pa.ListViewArray.from_arrays(_ZEROS, _ALL, _MANY)),
    "runs in a dictionary": (
        "text",
        lambda: pa.DictionaryArray.from_arrays(_ZEROS, pa.RunEndEncodedArray.from_arrays(_END, pa.array(["x"]))),
    ),
    "runs in a list": (
        "words",
        lambda: pa.LargeListArray.from_arrays(
            pa.array([0, 1 << 40]), pa.RunEndEncodedArray.from_arrays(_END, pa.array(["x"]))
        ),
    ),
}


@pytest.mark.parametrize("name", _EXPANDING)
def test_few_bytes_do_not_become_many(tmp_path: Path, name: str) -> None:
    """An encoded column of a few megabytes can stand for terabytes of values, which took the process down."""
    graph = og.init(tmp_path / "g", SCHEMA)
    place, make = _EXPANDING[name]
    with pytest.raises(LoadRejected, match=r"expands to more than|the value is longer than"):
        graph.load(table(**{place: make()}), type="T", engine="local")


def test_a_large_table_may_have_any_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows wait in files until a task reads them; Parquet does not hold every type of Arrow."""
    monkeypatch.setattr(inputs, "RANGE_BYTES", 64)
    graph = og.init(tmp_path / "g", SCHEMA)
    given = {
        "text": pa.RunEndEncodedArray.from_arrays(
            pa.array([2, 5], pa.int32()), pa.array(["a", "b"]).dictionary_encode()
        ),
        "words": pa.ListArray.from_arrays(
            pa.array(range(6), pa.int32()),
            pa.RunEndEncodedArray.from_arrays(pa.array([3, 5], pa.int32()), pa.array(["c", "d"])),
        ),
        "real": pa.array([Decimal("5E+3")] * 5, pa.decimal128(5, -3)),
    }
    graph.load(table(**given), type="T", engine="local")
    found = rows(graph, "node:T")
    assert [(row["text"], row["words"], row["real"]) for row in found] == [
        ("a", ["c"], 5000.0),
        ("a", ["c"], 5000.0),
        ("b", ["c"], 5000.0),
        ("b", ["d"], 5000.0),
        ("b", ["d"], 5000.0),
    ]
    with pytest.raises(LoadRejected) as rejected:
        graph.load(table(at=pa.array([0] * 4 + [2**62], pa.timestamp("s"))), type="T", mode="merge", engine="local")
    assert [line for _, line, _ in rejected.value.errors] == [5]
    graph.load_frames({"T": table(small=range(5))}, mode="merge")
    assert [row["small"] for row in rows(graph, "node:T")] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        pytest.param(pa.timestamp("ns"), [datetime(2024, 2, 29)], id="as pandas has it"),
        pytest.param(pa.timestamp("s"), [datetime(1, 1, 1)], id="the first day"),
        pytest.param(pa.timestamp("us", "UTC"), [datetime(2024, 2, 29, tzinfo=UTC)], id="UTC"),
        # Midnight in Helsinki is another instant, and the day that its clock shows.
        pytest.param(pa.timestamp("ms", "Europe/Helsinki"), [datetime(2024, 2, 28, 22, tzinfo=UTC)], id="a place"),
    ],
)
def test_a_timestamp_of_a_whole_day_is_a_date(tmp_path: Path, kind: pa.DataType, values: list[datetime]) -> None:
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.load(table(day=pa.array(values, kind)), type="T", engine="local")
    assert [row["day"] for row in rows(graph, "node:T")] == [
        date(1, 1, 1) if values[0].year == 1 else date(2024, 2, 29)
    ]


def test_a_datetime_of_a_whole_day_is_a_date_in_rows_of_python(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.load([{"type": "T", "data": {"key": "a", "day": datetime(2024, 2, 29)}}], engine="local")
    assert rows(graph, "node:T")[0]["day"] == date(2024, 2, 29)
    with pytest.raises(LoadRejected, match="'2024-02-29T00:00:01' is not a whole day"):
        graph.load([{"type": "T", "data": {"key": "b", "day": datetime(2024, 2, 29, 0, 0, 1)}}], engine="local")


class Blocks:
    """A CSV file whose blocks are known as long as anybody holds them, and which tells the names of a table."""

    name = "blocks.csv"

    def __init__(self, lines: int) -> None:
        self.lines = lines
        self.held: WeakValueDictionary[int, memoryview] = WeakValueDictionary()

    @contextmanager
    def opened(self) -> Iterator[Blocks]:
        yield self

    def read(self, size: int) -> memoryview:
        lines = min(self.lines, size // 4)
        self.lines -= lines
        # Unlike bytes, a view of them can be referred to weakly.
        block = memoryview(b"a,b\n" * lines)
        self.held[len(self.held)] = block
        return block


@pytest.mark.parametrize("read", ["the names", "some rows", "a row that is no row"])
def test_a_csv_file_that_is_not_read_to_its_end_is_held_by_no_thread(read: str) -> None:
    """Arrow's reader has read ahead: a block that its thread drops while the interpreter ends would abort the process."""
    file = Blocks(12_000_000)
    if read == "the names":
        assert foreign.csv_names(cast("Any", file), ",") == ["a", "b"]
    elif read == "some rows":
        batches = foreign.csv_batches(file, ["a"], ",")
        next(batches)
        batches.close()
    else:
        with pytest.raises(foreign.Damaged, match="Expected 1 columns, got 2"):
            next(foreign.csv_batches(file, ["a"], ",", ["a"]))
    assert len(file.held) == 0


# --- by construction --------------------------------------------------------------------------------------------------

#: Calls that bring Arrow data of others into the process, and the functions of the door that make them.
ENTRIES = {
    "to_batches": {"table_batches", "require_sound", "large_batches"},
    "iter_batches": {"parquet_batches"},
    # The parts that Spark wrote of a frame are counted there, and read by the door.
    "ParquetFile": {"parquet_groups", "parquet_batches", "frames._require_whole"},
    "open_csv": {"_read_csv"},
    "from_pandas": {"_of_frame"},
    "to_arrow": {"_of_frame"},
    "read_all": {"table_of"},
}


def test_foreign_data_comes_through_the_door_only() -> None:
    """No other module of the load reads batches, and only the door makes what the readers of tables take."""
    found: dict[str, set[str]] = {name: set() for name in ENTRIES}
    makers = set()
    for path in sorted(SOURCES.glob("*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            called = {_name(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
            for name in called & set(ENTRIES):
                found[name].add(function.name if path.name == "foreign.py" else f"{path.stem}.{function.name}")
            if "CheckedBatch" in called:
                makers.add(f"{path.stem}.{function.name}")
    # Rows and keys that the load has made itself are not foreign.
    found = {
        name: {one for one in where if not one.startswith(("exchange.", "work."))} for name, where in found.items()
    }
    assert found == ENTRIES
    assert makers == {"foreign._checked"}


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
