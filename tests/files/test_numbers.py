"""Numbers and dates in text from outside: within bounds they are read, beyond them they are the default."""

from __future__ import annotations

import pytest

from tui_agent.files.numbers import LARGEST, amount, based_number, real_number, seconds_of, whole_number

LONG = "9" * 5000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12),
        (b" 12\n", 12),
        ("0", 0),
        (str(LARGEST), LARGEST),
        *(
            (text, 7)
            for text in ("", None, "-1", "1.5", "1_0", "٣", "²", "0x1", str(LARGEST + 1), LONG, "--1", "a")
        ),
    ],
)
def test_whole_numbers(text: str | bytes | None, expected: int) -> None:
    assert whole_number(text, 7) == expected


def test_whole_numbers_have_bounds() -> None:
    assert whole_number("-5", least=-5) == -5
    assert whole_number("6", 1, most=5) == 1
    assert based_number("1F", 16) == 31
    assert [based_number(text, 16) for text in (LONG, "-1", "0x1", "1_1", "", "g")] == [0] * 6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.5", 1.5),
        (b"2", 2.0),
        ("1e3", 1000.0),
        *((text, 0.5) for text in ("", None, "nan", "inf", "-1", "1e999", "1_0", "٣", LONG, "0." + LONG)),
    ],
)
def test_real_numbers(text: str | bytes | None, expected: float) -> None:
    assert real_number(text, 0.5) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3, 3.0), (2.5, 2.5), (10**400, 100.0), (float("inf"), 100.0), (-1, 0.0)]
    + [(value, 8.0) for value in (float("nan"), True, "3", None, [])],
)
def test_amounts(value: object, expected: float) -> None:
    assert amount(value, 8.0, most=100.0) == expected


def test_dates() -> None:
    wanted = 784111777.0
    for text in ("Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z", " 1994-11-06T08:49:37 "):
        assert seconds_of(text) == wanted
    for none in (
        "",
        None,
        "soon",
        LONG,
        "0000-00-00",
        "9999-99-99",
        "Sun, 06 Nov 99999 08:49:37 GMT",
    ):
        assert seconds_of(none) is None
