"""How long a provider asks us to wait: by its headers and in its words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tui_agent.model.failures import limits_reset, retry_after, seconds_in

NOW = "Wed, 21 Oct 2026 07:28:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"Retry-After": " 7 "}, 7.0),
        ({"retry-after": "0"}, None),
        ({"retry-after": "0.0"}, None),
        ({"retry-after-ms": "0"}, None),
        ({"retry-after-ms": "0", "retry-after": "2"}, 2.0),
        ({"retry-after": "0s"}, None),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
        ({"retry-after": "6m0s"}, 360.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:29:30 GMT", "date": NOW}, 90.0),
        ({"retry-after": "Wednesday, 21-Oct-26 07:29:30 GMT", "date": NOW}, 90.0),
        ({"retry-after": "Wed Oct 21 07:29:30 2026", "date": NOW}, 90.0),
        ({"retry-after": "2026-10-21T07:29:30Z", "date": NOW}, 90.0),
        ({"retry-after": "1792567740", "date": NOW}, 60.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:00:00 GMT", "date": NOW}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": "86400"}, 86_400.0),
        *(
            ({"retry-after": value}, None)
            for value in (
                "-3",
                "nan",
                "inf",
                "1e9",
                "1_0",
                "",
                "soon",
                "٣",
                "9" * 400,
                "Wed, 99 Oct 2026 07:28:00 GMT",
            )
        ),
        ({}, None),
        (None, None),
        ("retry-after: 3", None),
    ],
)
def test_by_a_header(headers: object, seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_date_counts_from_our_clock_if_the_server_names_no_time() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    assert 90 < (retry_after({"retry-after": later}) or 0) <= 100


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, 360.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "2m59.56s"}, 179.56),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "11.38"}, 11.38),
        ({"x-ratelimit-remaining-tokens": "1", "x-ratelimit-reset-tokens": "6m0s"}, None),
        ({"x-ratelimit-remaining-tokens": "0"}, None),
        (
            {
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "5s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1m5s",
            },
            65.0,
        ),
        (
            {
                "date": NOW,
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2026-10-21T07:28:30Z",
            },
            30.0,
        ),
        ({"date": NOW, "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1792567740000"}, 60.0),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "4"}, 4.0),
        ({}, None),
    ],
)
def test_by_the_limits_that_are_used_up(headers: dict[str, str], seconds: float | None) -> None:
    assert limits_reset(headers) == (pytest.approx(seconds) if seconds else None)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 1.242s. Visit https://x", 1.242),
        ("Please try again in 6m0s.", 360.0),
        ("Please try again in 1h2m3.5s", 3723.5),
        ("Please try again in 20ms", 0.02),
        ("Please retry after 20 seconds.", 20.0),
        ("Try again in 5 minutes.", 300.0),
        ("Please retry in 34.074824224s.", 34.074824224),
        ('"retryDelay": "34s"', 34.0),
        ("retryDelay 34.5s", 34.5),
        ("Your quota will reset after 3h10m5s.", 11_405.0),
        ("Please try again later.", None),
        ("Please try again in 0s.", None),
        ("Please try again in -5s.", None),
        ('"retryDelay": "-34s"', None),
        ("You sent 34s of audio", None),
        ("try again in 3 days", 259_200.0),
        ("Please retry shortly", None),
    ],
)
def test_in_words(words: str, seconds: float | None) -> None:
    assert seconds_in(words) == (pytest.approx(seconds) if seconds else None)
