"""Numbers and dates in text from outside, within bounds: what is too long, too large or no number is the default.

`int()` raises ValueError above 4,300 digits, and `float()` reads `nan` and `inf`.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

#: Letters of a number or a date that are looked at.
LONGEST_NUMBER, LONGEST_DATE = 32, 64
#: The largest number that fits in every format we write.
LARGEST = 2**63 - 1


def whole_number(text: str | bytes | None, default: int = 0, *, least: int = 0, most: int = LARGEST) -> int:
    """A decimal number from `least` to `most`, else `default`: for "", None, another script, a sign too many."""
    digits = text.decode("latin-1") if isinstance(text, bytes) else text or ""
    digits = digits.strip()
    if len(digits) > LONGEST_NUMBER or not (digits.isascii() and digits.removeprefix("-").isdigit()):
        return default
    number = int(digits)
    return number if least <= number <= most else default


def based_number(text: str | None, base: int, default: int = 0, *, most: int = LARGEST) -> int:
    """The same in base 8 or 16, without a sign or a prefix."""
    digits = text or ""
    if len(digits) > LONGEST_NUMBER or not (digits.isascii() and digits.isalnum()):
        return default
    if digits[1:2] in ("x", "X", "o", "O"):  # `int` takes a prefix
        return default
    try:
        number = int(digits, base)
    except ValueError:
        return default
    return number if number <= most else default


def real_number(
    text: str | bytes | None, default: float = 0.0, *, least: float = 0.0, most: float = float(LARGEST)
) -> float:
    """A decimal number from `least` to `most`, with a point or an exponent, else `default`."""
    digits = text.decode("latin-1") if isinstance(text, bytes) else text or ""
    digits = digits.strip()
    if len(digits) > LONGEST_NUMBER or not digits.isascii() or "_" in digits:
        return default
    try:
        number = float(digits)
    except ValueError:
        return default
    return number if math.isfinite(number) and least <= number <= most else default


def seconds_of(date: str | None) -> float | None:
    """Seconds since 1970 of a date as HTTP or ISO 8601 writes it, in UTC if it names no zone; None if it is none."""
    from email.utils import parsedate_to_datetime  # it imports the client of sockets

    words = (date or "").strip()
    if not words or len(words) > LONGEST_DATE:
        return None
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            found = parse(words)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def amount(value: object, default: float, *, least: float = 0.0, most: float = float(LARGEST)) -> float:
    """A number of parsed data between `least` and `most`: beyond them it is the nearer; `default` if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return default
    return float(max(least, min(value, most)))
