"""Dates and instants: text ↔ numbers (languages.md 1.2, PRM-11)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.language.temporal import (
    DATE_DAYS,
    DATETIME_MILLISECONDS,
    parse_date,
    parse_datetime,
    render_date,
    render_datetime,
)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("1970-01-01", 0),
        ("1969-12-31", -1),
        ("2024-01-01", 19723),
        ("2024-02-29", 19782),
        ("0001-01-01", -719162),
        ("9999-12-31", 2932896),
    ],
)
def test_dates_are_days_since_the_epoch(text: str, days: int) -> None:
    assert parse_date(text) == days
    assert render_date(days) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-1-1",
        "20240101",
        "2024-W01-1",
        "2023-02-29",
        "2024-13-01",
        "2024-00-10",
        "0000-01-01",
        "10000-01-01",
        "-2024-01-01",
        " 2024-01-01",
        "2024-01-01\n",
        "2024-01-01T00:00:00Z",
        "２０２４-01-01",
        "yesterday",
    ],
)
def test_other_texts_are_not_dates(text: str) -> None:
    with pytest.raises(ValueError):
        parse_date(text)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("1969-12-31T23:59:59.999Z", -1),
        pytest.param("2024-06-01T12:00:00", 1717243200000, id="no offset means UTC"),
        pytest.param("2024-06-01T14:00:00+02:00", 1717243200000, id="an offset is converted"),
        pytest.param("2024-06-01T06:30:00-0530", 1717243200000, id="offset without colon"),
        pytest.param("2024-06-01T14:00:00+02", 1717243200000, id="offset of whole hours"),
        pytest.param("2024-06-01 12:00:00z", 1717243200000, id="blank and lower case"),
        pytest.param("2024-06-01T12:00Z", 1717243200000, id="no seconds"),
        pytest.param("2024-06-01T12:00:00.5Z", 1717243200500, id="tenths"),
        pytest.param("2024-06-01T12:00:00.120000000Z", 1717243200120, id="trailing zeros are not finer"),
        ("0001-01-01T00:00:00.000Z", DATETIME_MILLISECONDS.start),
        ("9999-12-31T23:59:59.999Z", DATETIME_MILLISECONDS.stop - 1),
        pytest.param("0001-01-01T01:00:00+01:00", DATETIME_MILLISECONDS.start, id="offset at the first instant"),
    ],
)
def test_datetimes_are_milliseconds_since_the_epoch(text: str, milliseconds: int) -> None:
    assert parse_datetime(text) == milliseconds


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2024-06-01T12:00:00.0001Z", "finer than a millisecond"),
        ("2024-06-01T12:00:00.123456Z", "finer than a millisecond"),
        ("2024-06-01", "not a date and time"),
        ("2024-06-01T", "not a date and time"),
        ("2024-06-01T12Z", "not a date and time"),
        ("2024-06-01T12:00:00 Z", "not a date and time"),
        ("2024-06-01T12:00:00.Z", "not a date and time"),
        ("2024-06-01T24:00:00Z", "not a time of day"),
        ("2024-06-01T12:60:00Z", "not a time of day"),
        ("2024-06-01T12:00:60Z", "not a time of day"),
        ("2023-02-29T12:00:00Z", "not a day of the calendar"),
        ("2024-06-01T12:00:00+24:00", "offset of a day or more"),
        ("2024-06-01T12:00:00+01:60", "offset of a day or more"),
        ("0001-01-01T00:00:00+01:00", "outside the years"),
        ("9999-12-31T23:59:59-01:00", "outside the years"),
    ],
)
def test_other_texts_are_not_datetimes(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_datetime(text)


@pytest.mark.parametrize(
    ("rendered", "expected"),
    [
        pytest.param(render_date(19875), "2024-06-01", id="PRM-11 Date"),
        pytest.param(render_datetime(1717243200000), "2024-06-01T12:00:00.000Z", id="PRM-11 DateTime"),
        pytest.param(render_datetime(1775032200000), "2026-04-01T08:30:00.000Z", id="PRM-11 DateTime of the CLI page"),
        pytest.param(render_datetime(-1), "1969-12-31T23:59:59.999Z", id="PRM-11 before the epoch"),
        pytest.param(render_date(DATE_DAYS.start), "0001-01-01", id="PRM-11 four-digit years"),
    ],
)
def test_rendering(rendered: str, expected: str) -> None:
    assert rendered == expected


@pytest.mark.parametrize("days", [DATE_DAYS.start - 1, DATE_DAYS.stop])
def test_days_outside_the_calendar_are_refused(days: int) -> None:
    with pytest.raises(ValueError, match="outside the years"):
        render_date(days)


@pytest.mark.parametrize("milliseconds", [DATETIME_MILLISECONDS.start - 1, DATETIME_MILLISECONDS.stop])
def test_milliseconds_outside_the_calendar_are_refused(milliseconds: int) -> None:
    with pytest.raises(ValueError, match="outside the years"):
        render_datetime(milliseconds)


@given(st.integers(DATE_DAYS.start, DATE_DAYS.stop - 1))
def test_dates_round_trip(days: int) -> None:
    assert parse_date(render_date(days)) == days


@given(st.integers(DATETIME_MILLISECONDS.start, DATETIME_MILLISECONDS.stop - 1))
def test_datetimes_round_trip(milliseconds: int) -> None:
    assert parse_datetime(render_datetime(milliseconds)) == milliseconds
