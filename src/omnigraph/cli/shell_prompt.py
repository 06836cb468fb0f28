"""The shell on a terminal: a prompt with history, completion, colours and inputs of several lines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer

from omnigraph.cli.output import wants_colours
from omnigraph.cli.shell_session import EXPLAIN, is_complete
from omnigraph.errors import OmnigraphError
from omnigraph.language.query.completion import candidates, word_before
from omnigraph.language.schema.build import compile_schema

if TYPE_CHECKING:
    from omnigraph.cli.shell_session import Session


class Words(Completer):
    """Completes from the schema of the graph, as it is now."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        commands = [*self._session.commands(), EXPLAIN]
        try:
            catalog, branches = compile_schema(self._session.graph.schema()), self._session.graph.branches()
        except OmnigraphError:
            # A prompt that can not complete is still a prompt.
            return
        for name in candidates(catalog, commands, branches, text):
            yield Completion(name, start_position=-len(word_before(text)))


def prompt_of(session: Session, history: Path, stream: Any, **seams: Any) -> PromptSession[str]:
    """The prompt; `seams` are the input and output of the terminal, for tests."""
    from omnigraph.language.highlight import GqLexer

    return PromptSession(
        history=_history(history),
        completer=Words(session),
        complete_while_typing=False,
        multiline=True,
        key_bindings=_bindings(),
        lexer=PygmentsLexer(GqLexer) if wants_colours(stream) else None,
        prompt_continuation=lambda width, _line, _wrapped: "... ".rjust(width),
        **seams,
    )


def _history(path: Path) -> History:
    """What was typed in earlier sessions; where it can not be kept, only what is typed in this one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Queries may hold data that is nobody else's business.
        path.touch(mode=0o600, exist_ok=True)
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        """Run a complete input; go on in the next line of one that is not."""
        buffer = event.current_buffer
        at_end = not buffer.document.text_after_cursor.strip()
        if at_end and (is_complete(f"{buffer.text}\n") or not buffer.text.strip()):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings
