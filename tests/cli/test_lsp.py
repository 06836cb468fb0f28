"""`omnigraph lsp`, driven by an independent client: positions in UTF-16 units, the texts of `lint`, edits that are right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types as lsp
from pytest_lsp import ClientServerConfig, LanguageClient

from omnigraph.language.formatting import format_text
from tests.cli.calling import call

COMMAND = [sys.executable, "-m", "omnigraph", "lsp"]
SCHEMA = """\
// 🙂 the staff\r
node Staff {\r
  name: String @key\r
  level: I32?\r
  @index(level)\r
}\r
edge Mentors: Staff -> Staff @card(0..3)\r
"""
QUERIES = """\
query levels($who: String) { // 🙂🙂
  match { $s: Staff { name: $who } /* 🙂 */ $s mentors $t }
  return { $t.name as n, upper($t.name), $t.level } order { n }
}
query up($who: String) { update Staff set { level: level + 1 } where name = $who }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "staff.pg").write_bytes(SCHEMA.encode())
    (tmp_path / "staff.gq").write_text(QUERIES)
    return tmp_path


@pytest_lsp.fixture(config=ClientServerConfig(server_command=COMMAND))  # type: ignore[untyped-decorator]
async def client(lsp_client: LanguageClient, folder: Path) -> AsyncIterator[None]:
    folders = [lsp.WorkspaceFolder(folder.as_uri(), "work")]
    await lsp_client.initialize_session(
        lsp.InitializeParams(capabilities=lsp.ClientCapabilities(), workspace_folders=folders)
    )
    yield
    await lsp_client.shutdown_session()


def opened(client: LanguageClient, path: Path, text: str | None = None) -> str:
    content = path.read_bytes().decode() if text is None else text
    item = lsp.TextDocumentItem(path.as_uri(), path.suffix[1:], 1, content)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
    return path.as_uri()


async def problems_of(client: LanguageClient, uri: str) -> list[lsp.Diagnostic]:
    """What the server says next about a document."""
    while uri not in client.diagnostics:
        await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    return list(client.diagnostics.pop(uri))


def position(text: str, part: str, after: int = 0) -> lsp.Position:
    """Where a part of a text begins, in UTF-16 units."""
    before = text[: text.index(part) + after]
    line = before.count("\n")
    return lsp.Position(line, len(before.rpartition("\n")[2].encode("utf-16-le")) // 2)


def edited(text: str, edits: Any) -> str:
    """A text after edits, by UTF-16 units: an implementation of its own."""
    lines = text.encode("utf-16-le")
    starts = [0] + [i + 2 for i in range(0, len(lines), 2) if lines[i : i + 2] == b"\n\0"]

    def offset(at: lsp.Position) -> int:
        return len(lines) if at.line >= len(starts) else starts[at.line] + 2 * at.character

    for edit in sorted(edits, key=lambda edit: (edit.range.start.line, edit.range.start.character), reverse=True):
        lines = lines[: offset(edit.range.start)] + edit.new_text.encode("utf-16-le") + lines[offset(edit.range.end) :]
    return lines.decode("utf-16-le")


@pytest.mark.asyncio
async def test_problems_are_those_of_lint(
    client: LanguageClient, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = QUERIES.replace("$t.level }", "$t.levl }").replace("($who: String) { update", "() { update")
    (folder / "staff.gq").write_text(broken)
    uri = opened(client, folder / "staff.gq")
    found = await problems_of(client, uri)
    linted = json.loads(
        call(capsys, "lint", "--schema", str(folder / "staff.pg"), "--query", str(folder / "staff.gq"), "--json").out
    )
    expected = [
        text for r in linted["results"] for text in ([r["error"]] if "error" in r else []) + r.get("warnings", [])
    ]
    assert [problem.message for problem in found] == expected + [finding["message"] for finding in linted["findings"]]
    assert found[0].code == "T6"
    assert found[0].range.start == position(broken, "$t.levl")
    assert found[0].range.end == position(broken, "$t.levl", len("$t.levl"))


@pytest.mark.asyncio
async def test_problems_follow_the_text_and_the_schema(client: LanguageClient, folder: Path) -> None:
    uri = opened(client, folder / "staff.gq")
    assert await problems_of(client, uri) == []
    schema = opened(client, folder / "staff.pg", SCHEMA.replace("level: I32?", "rank: I32?").replace("level", "rank"))
    assert {problem.code for problem in await problems_of(client, uri)} == {"T6", "T11"}
    document = lsp.VersionedTextDocumentIdentifier(2, schema)
    change = lsp.TextDocumentContentChangeWholeDocument("node Staff {")
    client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))
    (info,) = await problems_of(client, uri)
    assert info.severity == lsp.DiagnosticSeverity.Information
    assert "staff.pg has an error" in info.message


@pytest.mark.asyncio
async def test_completion_hover_definition_symbols(client: LanguageClient, folder: Path) -> None:
    uri = opened(client, folder / "staff.gq")
    document = lsp.TextDocumentIdentifier(uri)
    at = position(QUERIES, "$t.name as", len("$t.na"))
    items = await client.text_document_completion_async(lsp.CompletionParams(document, at))
    assert [item.label for item in items] == [".name"]  # type: ignore[union-attr]
    hover = await client.text_document_hover_async(lsp.HoverParams(document, position(QUERIES, "upper", 2)))
    assert hover is not None
    assert "upper(text)" in hover.contents.value  # type: ignore[union-attr]
    hover = await client.text_document_hover_async(lsp.HoverParams(document, position(QUERIES, "mentors", 2)))
    assert hover is not None
    assert "edge Mentors: Staff -> Staff @card(0..3)" in hover.contents.value  # type: ignore[union-attr]
    for part, inside, where, target in [
        ("$t.level", 1, "staff.gq", "$t }"),
        ("$t.level", 4, "staff.pg", "level:"),
        ("Staff {", 1, "staff.pg", "Staff {"),
        ("mentors", 1, "staff.pg", "Mentors"),
    ]:
        place = await client.text_document_definition_async(
            lsp.DefinitionParams(document, position(QUERIES, part, inside))
        )
        assert isinstance(place, lsp.Location), part
        assert place.uri == (folder / where).as_uri()
        assert place.range.start == position(QUERIES if where == "staff.gq" else SCHEMA, target)
    symbols = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
    assert [symbol.name for symbol in symbols or ()] == ["levels", "up"]
    schema = lsp.TextDocumentIdentifier(opened(client, folder / "staff.pg"))
    symbols = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(schema))
    assert [symbol.name for symbol in symbols or ()] == ["Staff", "Mentors"]


@pytest.mark.asyncio
async def test_formatting_is_fmt(client: LanguageClient, folder: Path) -> None:
    options = lsp.FormattingOptions(tab_size=8, insert_spaces=False)
    for name, text in (("staff.gq", QUERIES), ("staff.pg", SCHEMA)):
        uri = opened(client, folder / name)
        edits = await client.text_document_formatting_async(
            lsp.DocumentFormattingParams(lsp.TextDocumentIdentifier(uri), options)
        )
        assert edited(text, edits) == format_text(text, "pg" if name.endswith("pg") else "gq")
    broken = opened(client, folder / "broken.gq", "query (")
    request = lsp.DocumentFormattingParams(lsp.TextDocumentIdentifier(broken), options)
    assert await client.text_document_formatting_async(request) is None


async def renamed(client: LanguageClient, uri: str, at: lsp.Position, new: str) -> dict[str, Any]:
    edit = await client.text_document_rename_async(lsp.RenameParams(lsp.TextDocumentIdentifier(uri), at, new))
    assert edit is not None
    return {Path(uri).name: edits for uri, edits in (edit.changes or {}).items()}


@pytest.mark.asyncio
async def test_rename(client: LanguageClient, folder: Path) -> None:
    uri = opened(client, folder / "staff.gq")
    changes = await renamed(client, uri, position(QUERIES, "$t.name", 1), "$mentee")
    assert edited(QUERIES, changes["staff.gq"]) == QUERIES.replace("$t", "$mentee")
    changes = await renamed(client, uri, position(QUERIES, "$who", 1), "person")
    first, _, second = QUERIES.partition("query up")
    assert edited(QUERIES, changes["staff.gq"]) == first.replace("$who", "$person") + "query up" + second
    changes = await renamed(client, uri, position(QUERIES, "$t.level", 4), "grade")
    wanted = QUERIES.replace("$t.level", "$t.grade").replace("{ level: level + 1 }", "{ grade: grade + 1 }")
    assert edited(QUERIES, changes["staff.gq"]) == wanted
    noted = SCHEMA.replace("level: I32?", 'grade: I32? @rename_from("level")').replace("(level)", "(grade)")
    assert edited(SCHEMA, changes["staff.pg"]) == noted
    changes = await renamed(client, uri, position(QUERIES, "mentors", 1), "Coaches")
    assert edited(QUERIES, changes["staff.gq"]) == QUERIES.replace("mentors", "coaches")
    assert 'edge Coaches: Staff -> Staff @card(0..3) @rename_from("Mentors")' in edited(SCHEMA, changes["staff.pg"])
    changes = await renamed(client, uri, position(QUERIES, "Staff", 1), "Person")
    assert edited(QUERIES, changes["staff.gq"]) == QUERIES.replace("Staff", "Person")
    expected = SCHEMA.replace("Staff", "Person").replace("Person {", 'Person @rename_from("Staff") {')
    assert edited(SCHEMA, changes["staff.pg"]) == expected


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("part", "inside", "new", "message"),
    [
        ("$t.name", 1, "s", "'s' is taken in this query"),
        ("$t.name", 1, "A b", "would have an error"),
        ("$t.name", 4, "level", "@key property Staff.level"),
        ("upper", 1, "lower", "no name of yours"),
    ],
)
async def test_a_rename_that_is_not_safe_is_refused(
    client: LanguageClient, folder: Path, part: str, inside: int, new: str, message: str
) -> None:
    uri = opened(client, folder / "staff.gq")
    with pytest.raises(Exception, match=message):
        await renamed(client, uri, position(QUERIES, part, inside), new)


@pytest.mark.asyncio
async def test_broken_texts_never_end_the_server(client: LanguageClient, folder: Path) -> None:
    texts = [
        "query q(",
        "\ufeffquery q() {",
        "match { " + "(" * 5000,
        "\t\r\r\n🙂",
        '"',
        "/*",
        "",
        "query q() { match { $s: Staff } return { $s.",
        "\x00",
    ]
    for number, text in enumerate(texts):
        path = folder / f"broken{number}.gq"
        uri = opened(client, path, text)
        document = lsp.TextDocumentIdentifier(uri)
        for at in (lsp.Position(0, 0), lsp.Position(0, len(text)), lsp.Position(99, 99)):
            await client.text_document_completion_async(lsp.CompletionParams(document, at))
            await client.text_document_hover_async(lsp.HoverParams(document, at))
            await client.text_document_definition_async(lsp.DefinitionParams(document, at))
        await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
        await problems_of(client, uri)


def test_a_client_that_is_gone_ends_the_server(folder: Path) -> None:
    process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env=dict(os.environ))
    assert process.stdin is not None
    body = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{},"processId":null,"rootUri":null}}'
    )
    process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    process.stdin.flush()
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"Content-Length")
    process.stdin.close()
    process.wait()
    process.stdout.close()


def test_an_editor_that_ends_the_server_in_order(folder: Path) -> None:
    """`shutdown`, then `exit`: the process ends well, and says nothing."""
    messages: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None, "rootUri": None}},
        {"id": 2, "method": "shutdown"},
        {"method": "exit"},
    ]
    bodies = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]
    sent = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies)
    done = subprocess.run(COMMAND, input=sent, capture_output=True, cwd=folder, env=dict(os.environ), check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"Content-Length") == 2
