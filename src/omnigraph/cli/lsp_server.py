"""The language server: documents and requests of an editor, answered by the pure functions of the languages."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lsprotocol import types as lsp
from pygls import uris
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from omnigraph import __version__
from omnigraph.cli.lsp import Found, Schemas, files_below
from omnigraph.errors import BadRequest, LanguageError
from omnigraph.language import editing
from omnigraph.language.formatting import Language, format_text
from omnigraph.language.names import Position, Positions, at_offset
from omnigraph.language.renaming import Edit, rename_in_query, rename_in_schema
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.source import Span

#: How long a text must stay unchanged before it is checked.
DEBOUNCE_SECONDS = 0.2

_SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "info": lsp.DiagnosticSeverity.Information,
}
_SYMBOLS = {
    "query": lsp.SymbolKind.Function,
    "interface": lsp.SymbolKind.Interface,
    "node": lsp.SymbolKind.Class,
    "edge": lsp.SymbolKind.Class,
    "property": lsp.SymbolKind.Property,
}


class Server:
    """The open documents, and the answers about them."""

    def __init__(self, server: LanguageServer, schemas: Schemas) -> None:
        self._server = server
        self._schemas = schemas
        self._waiting: dict[str, asyncio.TimerHandle] = {}

    # --- texts and schemas --------------------------------------------------------------------------------------------

    def text(self, uri: str) -> str:
        """The text of a document: as it is in the editor, else as it is in its file."""
        open_document = self._server.workspace.text_documents.get(uri)
        if open_document is not None:
            return str(open_document.source)
        try:
            return _path(uri).read_bytes().decode()
        except (OSError, ValueError):
            return ""

    def schema(self, uri: str) -> tuple[Found, str | None, Catalog | None]:
        """Where the schema of a document is, its text, and its meaning; None for what there is not."""
        found = Found(file=_path(uri)) if language_of(uri) == "pg" else self._schemas.of(_path(uri))
        text = found.text
        if found.file is not None:
            text = self.text(_uri(found.file))
        if text is None:
            return found, None, None
        try:
            return found, text, compile_schema(text)
        except BadRequest as error:
            name = found.file.name if found.file is not None else "of the graph"
            return Found(found.file, found.text, f"the schema {name} has an error: {error.message}"), text, None

    # --- problems -----------------------------------------------------------------------------------------------------

    def changed(self, uri: str) -> None:
        """Check a document when it has not changed for a moment; with a schema, the open queries too."""
        loop = asyncio.get_running_loop()
        for document in self._server.workspace.text_documents if language_of(uri) == "pg" else [uri]:
            waiting = self._waiting.pop(document, None)
            if waiting is not None:
                waiting.cancel()
            self._waiting[document] = loop.call_later(DEBOUNCE_SECONDS, self.check, document)

    def closed(self, uri: str) -> None:
        waiting = self._waiting.pop(uri, None)
        if waiting is not None:
            waiting.cancel()
        self._publish(uri, [])

    def check(self, uri: str) -> None:
        """Tell the editor the problems of a document."""
        self._waiting.pop(uri, None)
        if uri in self._server.workspace.text_documents:
            self._publish(uri, self.problems(uri))

    def problems(self, uri: str) -> list[lsp.Diagnostic]:
        text, language = self.text(uri), language_of(uri)
        found, _, catalog = self.schema(uri)
        positions = Positions(text)
        problems = editing.problems(text, language, catalog)
        if language == "gq" and catalog is None:
            problems.append(editing.Problem(Span(0, 0), "info", None, found.missing))
        return [
            lsp.Diagnostic(
                _range(positions, problem.span),
                problem.message,
                severity=_SEVERITIES[problem.severity],
                code=problem.code,
                source="omnigraph",
            )
            for problem in problems
        ]

    def _publish(self, uri: str, diagnostics: list[lsp.Diagnostic]) -> None:
        self._server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics))

    # --- questions ----------------------------------------------------------------------------------------------------

    def completion(self, uri: str, position: lsp.Position) -> list[lsp.CompletionItem]:
        text = self.text(uri)
        positions = Positions(text)
        _, _, catalog = self.schema(uri)
        span, names = editing.completions(
            text, language_of(uri), _offset(positions, position), catalog or editing.EMPTY
        )
        place = _range(positions, span)
        return [lsp.CompletionItem(name, text_edit=lsp.TextEdit(place, name), filter_text=name) for name in names]

    def hover(self, uri: str, position: lsp.Position) -> lsp.Hover | None:
        text = self.text(uri)
        positions = Positions(text)
        _, _, catalog = self.schema(uri)
        offset = _offset(positions, position)
        found = editing.explanation(text, language_of(uri), offset, catalog or editing.EMPTY)
        if found is None:
            return None
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, found[1]), _range(positions, found[0]))

    def definition(self, uri: str, position: lsp.Position) -> lsp.Location | None:
        text = self.text(uri)
        positions = Positions(text)
        found, schema, catalog = self.schema(uri)
        offset = _offset(positions, position)
        place = editing.definition(text, language_of(uri), offset, schema, catalog or editing.EMPTY)
        if place is None:
            return None
        if not place.in_schema:
            return lsp.Location(uri, _range(positions, place.span))
        if found.file is None or schema is None:
            return None
        return lsp.Location(_uri(found.file), _range(Positions(schema), place.span))

    def symbols(self, uri: str) -> list[lsp.DocumentSymbol]:
        text = self.text(uri)
        positions = Positions(text)
        return [_symbol(positions, symbol) for symbol in editing.symbols(text, language_of(uri))]

    # --- changes ------------------------------------------------------------------------------------------------------

    def formatting(self, uri: str) -> list[lsp.TextEdit] | None:
        """The whole text in its layout; None when it can not be parsed, which its problems say."""
        text = self.text(uri)
        try:
            formatted = format_text(text, language_of(uri))
        except LanguageError:
            return None
        whole = _range(Positions(text), Span(0, len(text)))
        return [] if formatted == text else [lsp.TextEdit(whole, formatted)]

    def rename(self, uri: str, position: lsp.Position, new: str) -> lsp.WorkspaceEdit | None:
        text, language = self.text(uri), language_of(uri)
        offset = _offset(Positions(text), position)
        found, schema, catalog = self.schema(uri)
        name = at_offset(editing.names(text, language, catalog or editing.EMPTY), offset)
        if name is None or name.kind == "function":
            raise BadRequest("cannot rename: there is no name of yours here, or the text can not be parsed")
        if name.kind in ("variable", "alias", "query"):
            edits = rename_in_query(text, offset, new, catalog or editing.EMPTY)
            return lsp.WorkspaceEdit({uri: _text_edits(text, edits)})
        if schema is None or found.file is None or catalog is None:
            raise BadRequest(f"cannot rename: {found.missing or 'the schema is that of a graph; change its file'}")
        queries = self._queries_of(found.file)
        own, others = rename_in_schema(schema, {str(_path(each)): text for each, text in queries.items()}, name, new)
        changes = {_uri(found.file): _text_edits(schema, own)}
        changes |= {
            each: _text_edits(queries[each], others[str(_path(each))]) for each in queries if str(_path(each)) in others
        }
        return lsp.WorkspaceEdit(changes)

    def _queries_of(self, schema: Path) -> dict[str, str]:
        """The texts of queries of the workspace and of open documents that belong to a schema file."""
        folders = [_path(folder.uri) for folder in self._server.workspace.folders.values()]
        known = {_uri(path) for path in files_below(folders or [schema.parent], ".gq")}
        known |= {uri for uri in self._server.workspace.text_documents if language_of(uri) == "gq"}
        wanted = schema.resolve()
        own = ((uri, self._schemas.of(_path(uri)).file) for uri in sorted(known))
        return {uri: self.text(uri) for uri, file in own if file is not None and file.resolve() == wanted}


def make_server(schemas: Schemas) -> LanguageServer:
    """The server, which speaks on standard input and output once it is started."""
    server = LanguageServer("omnigraph", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
    shell = Server(server, schemas)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def _opened(params: lsp.DidOpenTextDocumentParams) -> None:
        shell.changed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def _changed(params: lsp.DidChangeTextDocumentParams) -> None:
        shell.changed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def _closed(params: lsp.DidCloseTextDocumentParams) -> None:
        shell.closed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["$", ".", ":", "@"]))
    def _completion(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        return shell.completion(params.text_document.uri, params.position)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def _hover(params: lsp.HoverParams) -> lsp.Hover | None:
        return shell.hover(params.text_document.uri, params.position)

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def _definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        return shell.definition(params.text_document.uri, params.position)

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def _symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        return shell.symbols(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def _formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        return shell.formatting(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME)
    def _rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        try:
            return shell.rename(params.text_document.uri, params.position, params.new_name)
        except BadRequest as error:
            # Editors show the message of an error to the person who asked.
            raise JsonRpcInvalidParams(error.message) from None

    return server


def language_of(uri: str) -> Language:
    """The language of a document: schemas for the suffix `.pg`, else queries."""
    return "pg" if uri.endswith(".pg") else "gq"


def _path(uri: str) -> Path:
    """The path of a document; a document without a file gets a path in the current folder."""
    return Path(uris.to_fs_path(uri) or "untitled.gq")


def _uri(path: Path) -> str:
    return uris.from_fs_path(str(path)) or path.as_uri()


def _offset(positions: Positions, position: lsp.Position) -> int:
    return positions.offset(Position(position.line, position.character))


def _range(positions: Positions, span: Span) -> lsp.Range:
    start, end = positions.range(span)
    return lsp.Range(lsp.Position(start.line, start.character), lsp.Position(end.line, end.character))


def _text_edits(text: str, edits: list[Edit]) -> list[lsp.TextEdit]:
    positions = Positions(text)
    return [lsp.TextEdit(_range(positions, edit.span), edit.text) for edit in edits]


def _symbol(positions: Positions, symbol: editing.Symbol) -> lsp.DocumentSymbol:
    return lsp.DocumentSymbol(
        symbol.name,
        _SYMBOLS[symbol.kind],
        _range(positions, symbol.span),
        _range(positions, symbol.name_span),
        detail=symbol.detail,
        children=[_symbol(positions, child) for child in symbol.children],
    )
