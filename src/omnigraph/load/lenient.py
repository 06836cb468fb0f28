"""The lenient reading: a stream of JSON values in any layout, several on a line or one over many lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import orjson

from omnigraph.load.exact import ExactReader, Rules
from omnigraph.load.parsed import Orders, Problem, Reading

_BETWEEN = re.compile(r"(?:[ \t\r\n]+|//[^\n]*)*")


@dataclass(frozen=True)
class Stream:
    """The values of a stream; `lines` is the line on which each value (or mistake) begins, from 1."""

    reading: Reading
    lines: Orders
    line_count: int


def read_stream(data: bytes, rules: Rules, base: int, before: int = 0) -> Stream:
    """The values of a text, in order. `before`: how many bytes of the input precede the text."""
    reader = ExactReader(rules)
    lines: list[int] = []
    try:
        text = data.decode()
    except UnicodeDecodeError as wrong:
        line = data.count(b"\n", 0, wrong.start) + 1
        problem = Problem(base, f"not valid UTF-8 at byte {before + wrong.start + 1} of the input")
        return Stream(Reading(problems=(problem,)), np.array([line], np.int64), data.count(b"\n") + 1)
    for value, error, line in _values(text):
        order = base + len(lines)
        lines.append(line)
        if error is not None:
            reader.refuse(order, error)
        else:
            reader.document(value, order)
    return Stream(reader.reading(), np.array(lines, np.int64), text.count("\n") + 1)


def _values(text: str) -> Iterator[tuple[object, str | None, int]]:
    """Every value or error with its line; after a mistake, reading continues on the next line."""
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    place, line, counted = 0, 1, 0
    while True:
        start = _start(text, place)
        if start == len(text):
            return
        line, counted = line + text.count("\n", counted, start), start
        try:
            _, place = decoder.raw_decode(text, start)
            # Python accepts more than JSON; the text it has delimited is parsed again strictly.
            yield orjson.loads(text[start:place].encode()), None, line
        except (ValueError, RecursionError) as error:
            yield None, f"not valid JSON: {getattr(error, 'msg', None) or error}", line
            after = text.find("\n", start)
            place = len(text) if after < 0 else after + 1


def _start(text: str, place: int) -> int:
    between = _BETWEEN.match(text, place)
    return between.end() if between is not None else place


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a number there")
