"""`omnigraph embed`: vectors for JSONL files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnigraph.embedding.embedder import Embedder
from tests.cli.calling import call

Capsys = pytest.CaptureFixture[str]

SPEC = '{"dimension": 4, "types": {"Doc": {"target": "vec", "fields": ["body"]}, "Note": {"target": "v", "fields": ["a", "b"]}}}'
LINES = [
    "// a comment stays",
    '{"type": "Doc",  "data": {"slug": "one", "body": "tea", "n": 123456789012345678901234567890}}',
    "",
    '{"type":"Doc","data":{"slug":"two","body":"ink","vec":[1,0,0,0]}}',
    '{"type":"Doc","data":{"slug":"three","body":null}}',
    '{"type":"Note","data":{"a":"x","b":2}}',
    '{"edge":"Cites","from":"one","to":"two"}',
    '{"type":"Other","data":{"body":"tea"}}',
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    (tmp_path / "in.jsonl").write_text("\n".join(LINES) + "\n")
    (tmp_path / "spec.json").write_text(SPEC)
    return tmp_path


def vector(text: str) -> list[float]:
    found: list[float] = Embedder("mock").embed_documents([text], 4)[0].tolist()
    return found


def data(line: int, path: str = "out.jsonl") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(path).read_text().splitlines()[line])["data"]
    return found


def embed(capsys: Capsys, *arguments: str) -> str:
    outcome = call(capsys, "embed", "--input", "in.jsonl", "--output", "out.jsonl", "--spec", "spec.json", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out


def test_missing_vectors_are_filled_in(capsys: Capsys) -> None:
    shown = embed(capsys)
    assert shown == "embedded 2 records (selected 4, cleaned 0) from in.jsonl -> out.jsonl [fill_missing 4d]\n"
    assert data(1) == {"slug": "one", "body": "tea", "n": 123456789012345678901234567890, "vec": vector("tea")}
    assert data(5) == {"a": "x", "b": 2, "v": vector("a: x\nb: 2")}
    unchanged = [at for at in range(len(LINES)) if at not in (1, 5)]
    written = Path("out.jsonl").read_text().splitlines()
    assert [written[at] for at in unchanged] == [LINES[at] for at in unchanged]


def test_all_vectors_are_made_anew(capsys: Capsys) -> None:
    shown = json.loads(embed(capsys, "--reembed-all", "--json"))
    assert shown == {
        "input": "in.jsonl",
        "output": "out.jsonl",
        "mode": "reembed_all",
        "dimension": 4,
        "records": 6,
        "selected": 4,
        "embedded": 3,
        "cleaned": 0,
    }
    assert data(3)["vec"] == vector("ink")


def test_vectors_are_taken_out_without_a_provider(capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "0")
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    shown = embed(capsys, "--clean")
    assert shown == "embedded 0 records (selected 4, cleaned 1) from in.jsonl -> out.jsonl [clean 4d]\n"
    assert data(3) == {"slug": "two", "body": "ink"}


@pytest.mark.parametrize(
    ("arguments", "selected"),
    [
        (("--type", "Doc"), 3),
        (("--type", "Doc", "--type", "Note"), 4),
        (("--select", "slug=two"), 1),
        (("--select", "Doc:slug=two", "--select", "Note:b=2"), 2),
        (("--type", "Note", "--select", "slug=two"), 0),
        (("--select", "body=null"), 1),
        (("--select", "slug=a=b"), 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_selecting(capsys: Capsys, arguments: tuple[str, ...], selected: int) -> None:
    assert json.loads(embed(capsys, "--json", *arguments))["selected"] == selected


def test_a_spec_on_the_command_line_and_the_same_file(capsys: Capsys) -> None:
    outcome = call(capsys, "embed", "--input", "in.jsonl", "--output", "in.jsonl", "--spec", SPEC)
    assert (outcome.code, outcome.err) == (0, "")
    assert data(1, "in.jsonl")["vec"] == vector("tea")


def test_a_seed_manifest_names_files_beside_itself(capsys: Capsys, folder: Path) -> None:
    (folder / "seed").mkdir()
    (folder / "in.jsonl").rename(folder / "seed" / "in.jsonl")
    (folder / "seed" / "m.yaml").write_text(
        "sources: {raw_seed: ./in.jsonl}\nartifacts: {embedded_seed: out.jsonl}\n"
        "embeddings: {dimension: 4, model: m/x, types: {Doc: {target: vec, fields: [body]}}}\n"
    )
    outcome = call(capsys, "embed", "--seed", "seed/m.yaml")
    assert (outcome.code, outcome.err) == (0, "")
    assert data(1, "seed/out.jsonl")["vec"] == vector("tea")


def test_many_lines_keep_their_order(capsys: Capsys) -> None:
    Path("in.jsonl").write_text("".join(f'{{"type":"Doc","data":{{"body":"{n}"}}}}\n' for n in range(1200)))
    assert json.loads(embed(capsys, "--json"))["embedded"] == 1200
    written = [json.loads(line)["data"] for line in Path("out.jsonl").read_text().splitlines()]
    assert [record["body"] for record in written] == [str(n) for n in range(1200)]
    assert written[777]["vec"] == vector("777")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"type": "Doc"', "in.jsonl:2: not valid JSON"),
        ("[1]", "in.jsonl:2: a record is a JSON object"),
        ('{"type": "Doc"}', "in.jsonl:2: the record has no object `data`"),
        ('{"type": "Doc", "data": {"body": "a", "body": "b"}}', "in.jsonl:2: not valid JSON: a key is given twice"),
        ('{"type": "Doc", "data": {"body": NaN}}', "in.jsonl:2: not valid JSON: NaN is no JSON number"),
        ('{"type": "Doc", "data": {"body": "\\ud800"}}', "in.jsonl:2: not valid JSON"),
        ("[" * 100_000, "in.jsonl:2: not valid JSON"),
    ],
    ids=range(7),
)
def test_a_line_that_is_wrong_is_named_and_nothing_is_written(capsys: Capsys, line: str, message: str) -> None:
    Path("in.jsonl").write_text(f"{LINES[1]}\n{line}\n")
    Path("out.jsonl").write_text("as it was")
    outcome = call(capsys, "embed", "--input", "in.jsonl", "--output", "out.jsonl", "--spec", "spec.json")
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert Path("out.jsonl").read_text() == "as it was"
    assert sorted(path.name for path in Path().iterdir()) == ["in.jsonl", "out.jsonl", "spec.json"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "give --seed MANIFEST, or --input, --output and --spec"),
        (("--input", "in.jsonl", "--spec", "{}"), 2, "missing: --output"),
        (("--seed", "m.yaml", "--input", "in.jsonl"), 2, "--seed and --input exclude each other"),
        (("--input", "in.jsonl", "--output", "o", "--spec", "{"), 1, "--spec is not valid JSON"),
        (("--input", "in.jsonl", "--output", "o", "--spec", "{}"), 1, "dimension is the number of components"),
        (("--input", "in.jsonl", "--output", "o", "--spec", '{"dimension": 4}'), 1, "types must be a mapping"),
        (("--input", "in.jsonl", "--output", "o", "--spec", '{"dimension": 4, "types": {}}'), 1, "at least one type"),
        (("--input", "no", "--output", "o", "--spec", "spec.json"), 1, "cannot read 'no': No such file"),
        (
            ("--input", "in.jsonl", "--output", "no/o", "--spec", "spec.json"),
            1,
            "no/o: it does not exist; check the path",
        ),
        (("--input", "in.jsonl", "--output", "o", "--spec", "no.json"), 1, "cannot read 'no.json'"),
        (("--seed", "no.yaml"), 1, "cannot read 'no.yaml'"),
        (("--seed", "spec.json"), 1, "sources must be a mapping"),
        (("--clean", "--reembed-all"), 2, "exclude each other"),
        (
            ("--input", "in.jsonl", "--output", "o", "--spec", "spec.json", "--type", "Dok"),
            1,
            "the spec has no type 'Dok'; did you mean `Doc`?",
        ),
        (("--input", "in.jsonl", "--output", "o", "--spec", "spec.json", "--select", "x"), 2, "is not [TYPE:]FIELD="),
        (("--store", "g"), 2, "`embed` is a local command; `--store` addresses the storage of one graph"),
    ],
    ids=range(16),
)
def test_what_is_refused(capsys: Capsys, arguments: tuple[str, ...], code: int, message: str) -> None:
    outcome = call(capsys, "embed", *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err


def test_a_provider_without_a_key(capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "0")
    for variable in ("OPENROUTER_API_KEY", "OPENAI_API_KEY", "OMNIGRAPH_EMBED_PROVIDER"):
        monkeypatch.delenv(variable, raising=False)
    outcome = call(capsys, "embed", "--input", "in.jsonl", "--output", "o", "--spec", "spec.json")
    assert outcome.code == 1
    assert "OPENROUTER_API_KEY or OPENAI_API_KEY" in outcome.err
    assert not Path("o").exists()
