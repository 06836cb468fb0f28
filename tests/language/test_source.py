"""Places in a source text, and how an error is shown."""

from __future__ import annotations

import pickle

import pytest

from omnigraph.errors import LONGEST_SHOWN_LINE, CatalogError, LanguageError, ParseError, TypecheckError
from omnigraph.language.source import LONGEST_MESSAGE, Source, Span


@pytest.mark.parametrize(
    ("text", "offset", "place"),
    [
        pytest.param("abc", 0, (1, 1), id="start"),
        pytest.param("abc", 3, (1, 4), id="end"),
        pytest.param("a\nbc", 2, (2, 1), id="second-line"),
        pytest.param("a\nbc", 1, (1, 2), id="at-the-newline"),
        pytest.param("a\r\n\nbc", 5, (3, 2), id="carriage-returns-are-no-lines"),
        pytest.param("", 0, (1, 1), id="empty"),
    ],
)
def test_line_and_column_count_from_one(text: str, offset: int, place: tuple[int, int]) -> None:
    assert Source(text).line_column(offset) == place


def test_byte_offsets_count_utf8_bytes() -> None:
    place = Source("ü = 漢!", "q.gq").place(Span(4, 5))
    assert (place["start"], place["end"], place["column"]) == (5, 8, 5)


def test_half_a_surrogate_pair_can_be_pointed_at() -> None:
    assert Source("a\ud800b").place(Span(1, 2))["end"] == 4


@pytest.mark.parametrize("span", [Span(1, 1), Span(3, 3), Span(9, 9)], ids=["inside", "at-the-end", "behind-the-end"])
def test_a_place_is_at_least_one_wide(span: Span) -> None:
    place = Source("abc").place(span)
    assert place["end"] == place["start"] + 1


@pytest.mark.parametrize(
    ("raise_error", "error_type", "message"),
    [
        pytest.param("grammar_error", ParseError, "parse error: no", id="grammar"),
        pytest.param("semantic_error", ParseError, "parse error: no", id="semantic"),
        pytest.param("catalog_error", CatalogError, "catalog error: no", id="catalog"),
    ],
)
def test_errors_carry_their_prefix(raise_error: str, error_type: type[LanguageError], message: str) -> None:
    with pytest.raises(error_type) as caught:
        getattr(Source("x"), raise_error)("no", Span(0, 1))
    assert caught.value.message == message
    assert str(caught.value) == f"<text>:1:1: {message}\n  1 | x\n    | ^"
    assert getattr(caught.value, "semantic", None) in {
        "grammar_error": (False,), "semantic_error": (True,), "catalog_error": (None,)
    }[raise_error]  # fmt: skip


def test_a_type_error_carries_its_code() -> None:
    with pytest.raises(TypecheckError) as caught:
        Source("x").type_error("T4", "no such edge", Span(0, 1))
    assert (caught.value.code, caught.value.message) == ("T4", "type error: T4: no such edge")


def rendered(text: str, span: Span, file: str | None = "q.gq") -> list[str]:
    with pytest.raises(ParseError) as caught:
        Source(text, file).grammar_error("here", span)
    return str(caught.value).split("\n")


def test_the_caret_stands_below_its_character() -> None:
    assert rendered("first\n  second line", Span(8, 14)) == [
        "q.gq:2:3: parse error: here",
        "  2 |   second line",
        "    |   ^",
    ]


def test_a_text_without_a_file_has_a_name_too() -> None:
    assert rendered("x", Span(0, 1), file=None)[0] == "<text>:1:1: parse error: here"


def test_tabs_stay_tabs_below_the_line() -> None:
    assert rendered("\tx\ty", Span(3, 4))[1:] == ["  1 | \tx\ty", "    | \t \t^"]


def test_the_caret_may_stand_behind_the_line() -> None:
    assert rendered("ab", Span(2, 2))[1:] == ["  1 | ab", "    |   ^"]


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert rendered("a\x1b[2Jb\x00", Span(0, 1))[1] == "  1 | a\ufffd[2Jb\ufffd"


def test_a_very_long_line_is_cut_around_the_caret() -> None:
    text = "a" * 5000 + "!" + "b" * 5000
    _, line, caret = rendered(text, Span(5000, 5001))
    assert line[caret.index("^")] == "!"
    assert len(line) == len("  1 | ") + LONGEST_SHOWN_LINE


def test_a_message_stays_one_line_of_readable_length() -> None:
    with pytest.raises(ParseError) as caught:
        Source("x").semantic_error(f"no `a\nb\x1b` {'c' * 10_000}", Span(0, 1))
    assert caught.value.message.startswith("parse error: no `a\\nb\\x1b` ccc")
    assert caught.value.message.endswith("c…")
    assert len(caught.value.message) < LONGEST_MESSAGE + 10


def test_only_the_source_line_is_highlighted() -> None:
    with pytest.raises(ParseError) as caught:
        Source("let x", "q.gq").grammar_error("here", Span(4, 5))
    assert caught.value.rendered(str.upper) == "q.gq:1:5: parse error: here\n  1 | LET X\n    |     ^"


def test_an_error_without_a_place_is_only_its_message() -> None:
    assert str(ParseError("parse error: nowhere")) == "parse error: nowhere"


def test_the_text_of_an_exception_shows_the_place_and_its_message_stays_one_line() -> None:
    error = pickle.loads(pickle.dumps(ParseError("parse error: here", line=2, column=3, source_line="  let x")))
    assert str(error) == "<text>:2:3: parse error: here\n  2 |   let x\n    |   ^"
    assert error.message == "parse error: here"


def test_a_source_line_shows_no_password() -> None:
    error = ParseError("parse error: here", line=1, column=1, source_line="s3://me:secret@host/x")
    assert "secret" not in str(error)
