"""The regular expressions of `@check`: RE2, whose time is linear in the text for every pattern.
They mean the same as in Python, except for features that linear time rules out: no back-references, no look-around, no
possessive or atomic groups, counts of at most 1000. `\\d`, `\\w` and `\\s` match Unicode, `$` is the end of the text, and `\\b`
knows ASCII words only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

#: An escape with its digits, the beginning or end of a set of characters, a count, the name of a group, any other character.
_PIECE = re.compile(
    r"\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\.|\[\^?\]?|\]|\{[0-9]+(?:,[0-9]*)?\}|\(\?P?<\w+>|.", re.DOTALL
)
#: The RE2 form of an escape inside a set of characters.
_IN_SET = {
    r"\d": r"\p{Nd}",
    r"\D": r"\P{Nd}",
    r"\w": r"\p{L}\p{N}_",
    r"\s": r"\t-\r\x1c- \x{85}\p{Z}",
}
#: The RE2 form of escapes that can be translated only outside of a set of characters.
_ONLY_OUTSIDE = {r"\W": r"[^\p{L}\p{N}_]", r"\S": r"[^\t-\r\x1c- \x{85}\p{Z}]", r"\Z": r"\z"}
_INSTEAD = {
    "invalid perl operator: (?=": "look-ahead `(?=…)`",
    "invalid perl operator: (?!": "look-ahead `(?!…)`",
    "invalid perl operator: (?<": "look-behind `(?<=…)`, `(?<!…)`",
    "invalid perl operator: (?>": "atomic groups `(?>…)`",
    "invalid perl operator: (?P": "references to groups `(?P=…)`",
    "invalid repetition size": "counts above 1000",
    "bad repetition operator": "repetitions of repetitions, such as `*+`",
}
_BACK_REFERENCE = re.compile(r"invalid escape sequence: \\[1-9]")

_LONGEST_REASON = 120
#: The length of `{1000,1000}`.
_LONGEST_COUNT = 11

#: Tests whether a UTF-8 text contains a match.
Matcher = Callable[[bytes], bool]


class UnsupportedPattern(ValueError):
    """A regular expression that is invalid or can not be evaluated in linear time; the message says why."""


@lru_cache(maxsize=256)
def compile_check(pattern: str) -> Matcher:
    """A function that tests whether a text satisfies the pattern of a `@check`; raises `UnsupportedPattern`."""
    # Imported here, because only schemas with patterns need the library.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        translated = _translated(pattern)
        re2.compile(translated, options)
        # Compiled twice: group names are checked only with capturing, and searching is faster without it.
        options.never_capture = True
        compiled = re2.compile(translated, options)
    except UnicodeEncodeError:
        raise UnsupportedPattern("it holds half of a surrogate pair") from None
    except re2.error as error:
        raise UnsupportedPattern(_reason(error.args[0])) from None
    return lambda text: compiled.search(text) is not None


def _translated(pattern: str) -> str:
    pieces: list[str] = []
    names: set[str] = set()
    in_set = False
    for piece in _PIECE.findall(pattern):
        if piece[0] == "\\":
            pieces.append(_escape(piece, in_set))
        elif in_set and piece[0] == "[":
            # An opening bracket within a set is a literal; the characters after it belong to the set.
            pieces.append("\\[" + piece[1:])
            in_set = not piece.endswith("]")
        elif len(piece) > 1 and piece[0] in "{(" and not in_set:
            # RE2 would treat an overflowing count as text, and accept the same name for two groups.
            if piece in names or (len(piece) > _LONGEST_COUNT and piece[0] == "{"):
                raise UnsupportedPattern(
                    f"`{piece[:_LONGEST_REASON]}` is a count above 1000, or the name of another group"
                )
            if piece[0] == "(":
                names.add(piece)
            pieces.append(piece)
        else:
            pieces.append(piece)
            in_set = piece != "]" if piece[0] in "[]" else in_set
    return "".join(pieces)


def _escape(piece: str, in_set: bool) -> str:
    if len(piece) > 2:
        return f"\\x{{{piece[2:]}}}"
    if piece in _IN_SET:
        return _IN_SET[piece] if in_set else f"[{_IN_SET[piece]}]"
    if piece in _ONLY_OUTSIDE:
        if in_set:
            raise UnsupportedPattern(f"RE2 has no `{piece}` within a set of characters")
        return _ONLY_OUTSIDE[piece]
    return piece


def _reason(said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    if _BACK_REFERENCE.match(text):
        return "RE2, which evaluates it in linear time, has no back-references such as `\\1`"
    for beginning, what in _INSTEAD.items():
        if text.startswith(beginning):
            return f"RE2, which evaluates it in linear time, has no {what}"
    return text[:_LONGEST_REASON]
