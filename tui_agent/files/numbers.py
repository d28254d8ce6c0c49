"""Numbers and dates in text from outside, within bounds: what is too long, too large or no number is the default.

`int()` raises ValueError above 4,300 digits, and a sum of large numbers is no size, line or count of anything.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

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


def date(text: str | None) -> datetime | None:
    """A date as HTTP or ISO 8601 writes it, in UTC where it names no zone; None where it is none."""
    words = (text or "").strip()
    if not words or len(words) > LONGEST_DATE:
        return None
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            found = parse(words)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None
