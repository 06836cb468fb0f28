"""The analyser of texts: words, lower case, English stems, no stop words, plain ASCII letters.
It turns texts into tokens. An index is built with the same settings (`INDEX_OPTIONS`), so a row that no index covers yet
matches exactly as it does once the index covers it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

import pyarrow as pa

from omnigraph.query.limits import Budget

STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "for",
        "if",
        "in",
        "into",
        "is",
        "it",
        "no",
        "not",
        "of",
        "on",
        "or",
        "such",
        "that",
        "the",
        "their",
        "then",
        "there",
        "these",
        "they",
        "this",
        "to",
        "was",
        "will",
        "with",
    ]
)
#: The options with which an inverted index analyses texts as this module does.
INDEX_OPTIONS: dict[str, Any] = {
    "base_tokenizer": "simple",
    "language": "English",
    "max_token_length": 40,
    "lower_case": True,
    "stem": True,
    "remove_stop_words": True,
    "ascii_folding": True,
    "with_position": False,
    "custom_stop_words": sorted(STOP_WORDS),
}

#: Words of so many bytes or more are data, not words, and are not searched. Counted in bytes, as the index does.
_LONGEST = 40
_WORD = re.compile(r"[^\W_]+")
_GAP = re.compile(r"[\W_]")
#: A text is analysed in pieces of about so many characters: a few milliseconds of work.
_PIECE = 1 << 16


def tokens(text: str) -> list[str]:
    """The tokens of a text, in order, each as often as it occurs."""
    return _tokens(_WORD.findall(text))


def tokens_of_each(texts: pa.Array, budget: Budget) -> Iterator[list[str]]:
    """The tokens of each stored text, none of a null; raises when the query was cancelled or is out of time."""
    for scalar in texts:
        text = scalar.as_py() or ""
        found: list[str] = []
        start = 0
        while start < len(text):
            budget.check()
            gap = _GAP.search(text, start + _PIECE)
            end = len(text) if gap is None else gap.start()
            found += _tokens(_WORD.findall(text, start, end))
            start = end
        yield found


def _tokens(words: list[str]) -> list[str]:
    return [token for token in map(_token, words) if token is not None]


@lru_cache(maxsize=65536)
def _token(word: str) -> str | None:
    if len(word.encode()) >= _LONGEST:
        return None
    lowered = word.lower()
    stem = _stemmer().stemWord(lowered)
    return None if stem in STOP_WORDS else _fold(stem)


@cache
def _stemmer() -> Any:
    import snowballstemmer  # type: ignore[import-untyped]

    return snowballstemmer.stemmer("english")


def _fold(word: str) -> str:
    """The word with accented letters replaced by plain ASCII letters where there is one."""
    if word.isascii():
        return word
    return "".join(_fold_letter(letter) for letter in word)


@lru_cache(maxsize=4096)
def _fold_letter(letter: str) -> str:
    plain = unicodedata.normalize("NFKD", letter)[0]
    return _LIGATURES.get(letter, plain if plain.isascii() else letter)


#: Letters that Unicode does not decompose but that have a usual ASCII spelling.
_LIGATURES = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i"}
