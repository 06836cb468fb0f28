"""The layout of printed texts: documents of texts and possible line breaks, broken into lines of a maximal width.
A printer describes its text as a document. A group is put on one line when it fits, else each of its own line breaks is taken.
The comments and empty lines of an earlier text of the same meaning (`written`) are inserted at the marks, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from omnigraph.language.written import Comment, Written

WIDTH = 120
INDENT = "  "


@dataclass(frozen=True, slots=True)
class Line:
    """A possible line break; `flat` is the text in its place when it is not taken, None when it is always taken."""

    flat: str | None = " "


@dataclass(frozen=True, slots=True)
class Nest:
    """A document whose lines are indented one step further."""

    doc: Doc


@dataclass(frozen=True, slots=True)
class Group:
    """A document on one line if it fits; `alone`: of the text after it, only one comma must fit too."""

    doc: Doc
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """The offset in the earlier text of the part that follows; a Mark comes always directly after a Line.
    `blank` decides about empty lines before the part. `keep`: the empty lines of the earlier text are kept, several as one.
    `first`
    (the first line of a block) and `close` (a closing bracket): no empty line. `always` (a declaration): one empty line.
    """

    offset: int
    blank: Literal["keep", "first", "close", "always"] = "keep"


#: A tuple is a sequence of documents.
Doc = str | Line | Nest | Group | Mark | tuple["Doc", ...]

LINE, SOFT, HARD = Line(), Line(""), Line(None)
NOTHING: Doc = ()


def joined(parts: Iterable[Doc], between: Doc) -> Doc:
    """The parts with the document `between` between them."""
    found: list[Doc] = []
    for part in parts:
        if found:
            found.append(between)
        found.append(part)
    return tuple(found)


def filled(items: Sequence[Doc]) -> Doc:
    """Items separated by commas, as many on each line as fit."""
    return (*items[:1], *((",", Group((LINE, item), alone=True)) for item in items[1:]))


def flat(doc: Doc) -> str:
    """The document on one line; more lines only when a text inside contains line breaks."""
    found: list[str] = []
    left = [doc]
    while left:
        match left.pop():
            case str() as text:
                found.append(text)
            case Line(flat=text):
                found.append(" " if text is None else text)
            case Nest(inner) | Group(inner):
                left.append(inner)
            case Mark():
                pass
            case tuple() as parts:
                left.extend(reversed(parts))
    return "".join(found)


def render(doc: Doc, written: Written, width: int = WIDTH) -> str:
    """The document as lines of at most `width` characters where that is possible, with the comments of `written`."""
    return _Renderer(written, width).render(doc)


#: A document that is still to be laid out: its indentation, whether it must be on one line, and the document.
_Work = tuple[int, bool, Doc]


class _Renderer:
    """The text so far. A line break is held back until text follows it, since a comment may still belong to the line before."""

    def __init__(self, written: Written, width: int) -> None:
        self._comments = written.comments
        self._written = written
        self._width = width
        self._next_comment = 0
        self._out: list[str] = []
        self._column = 0
        self._break: int | None = None  # the indentation of the next line; None within a line
        self._blank = False  # whether an empty line precedes it
        self._opened = True  # whether the block is still empty

    def render(self, doc: Doc) -> str:
        stack: list[_Work] = [(0, False, doc)]
        while stack:
            indent, is_flat, doc = stack.pop()
            match doc:
                case str():
                    self._text(doc)
                case Line(flat=text):
                    if is_flat and text is not None:
                        self._text(text)
                    else:
                        self._break = indent
                case Nest(inner):
                    stack.append((indent + len(INDENT), is_flat, inner))
                case Group(inner, alone):
                    stack.append((indent, is_flat or self._fits(inner, [] if alone else stack, int(alone)), inner))
                case Mark():
                    self._mark(doc, indent)
                case tuple():
                    stack.extend((indent, is_flat, part) for part in reversed(doc))
        return "".join([*self._out, "\n"]) if self._out else ""

    def _text(self, text: str) -> None:
        if not text:
            return
        if self._break is not None:
            if self._out:
                self._out.append("\n\n" if self._blank else "\n")
            self._out.append(" " * self._break)
            self._column = self._break
        self._break, self._blank, self._opened = None, False, False
        self._out.append(text)
        last_line = text.rfind("\n")
        self._column = self._column + len(text) if last_line < 0 else len(text) - last_line - 1

    def _fits(self, doc: Doc, rest: Sequence[_Work], reserved: int) -> bool:
        """Whether a document fits on this line, together with the text after it up to the next possible line break."""
        room = self._width - reserved - (self._column if self._break is None else self._break)
        todo: list[tuple[bool, Doc]] = [(True, doc)]
        following = len(rest)
        while room >= 0:
            if not todo:
                if not following:
                    return True
                following -= 1
                todo.append((False, rest[following][2]))
            is_flat, part = todo.pop()
            match part:
                case str():
                    first, newline, _ = part.partition("\n")
                    room -= len(first)
                    if newline:
                        return room >= 0
                case Line(flat=text):
                    if not is_flat:
                        return True
                    if text is None:
                        return False
                    room -= len(text)
                case Nest(inner) | Group(inner):
                    todo.append((is_flat, inner))
                case Mark(offset=offset):
                    if is_flat and self._due(offset):
                        return False
                case tuple():
                    todo.extend((is_flat, inner) for inner in reversed(part))
        return False

    # --- comments and empty lines -------------------------------------------------------------------------------------

    def _due(self, offset: int) -> bool:
        """Whether a comment before this offset of the earlier text has not been printed yet."""
        return self._next_comment < len(self._comments) and self._comments[self._next_comment].start < offset

    def _mark(self, mark: Mark, indent: int) -> None:
        self._opened = mark.blank == "first"
        owed = mark.blank == "always" and bool(self._out)
        while self._due(mark.offset):
            comment = self._comments[self._next_comment]
            self._next_comment += 1
            if comment.ends_a_line and self._out and not self._out[-1].lstrip().startswith("//"):
                self._append(comment)
            else:
                # A comment before a closing bracket is indented as the contents of the bracket.
                self._begin_line(indent + len(INDENT) * (mark.blank == "close"), comment.start, owed)
                owed = False
                self._text(comment.text)
            self._break = indent
        if mark.blank != "close" and self._break is not None:
            self._begin_line(self._break, mark.offset, owed)

    def _begin_line(self, indent: int, offset: int, owed: bool) -> None:
        self._break = indent
        self._blank = owed or (not self._opened and bool(self._out) and self._written.follows_empty_line(offset))

    def _append(self, comment: Comment) -> None:
        """Put a comment at the end of the last line."""
        self._out.append(f" {comment.text}")
