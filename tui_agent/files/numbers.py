"""Numbers and dates from untrusted text, with a default for invalid input.

`int()` raises ValueError above 4,300 digits, and `float()` accepts `nan` and `inf`.
"""

from __future__ import annotations

from datetime import UTC, datetime

LONGEST_NUMBER, LONGEST_DATE = 32, 64
#: The largest in all output formats.
LARGEST = 2**63 - 1


def whole_number(text: str | bytes | None, default: int = 0, *, least: int = 0, most: int = LARGEST) -> int:
    """Returns a decimal number, or `default` for "", None, non-ASCII digits, repeated signs, or out of
    range.
    """
    digits = text.decode("latin-1") if isinstance(text, bytes) else text or ""
    digits = digits.strip()
    if len(digits) > LONGEST_NUMBER or not (digits.isascii() and digits.removeprefix("-").isdigit()):
        return default
    number = int(digits)
    return number if least <= number <= most else default


def based_number(text: str | None, base: int) -> int:
    """Like `whole_number`, without sign and prefix; 0 if invalid."""
    digits = text or ""
    if len(digits) > LONGEST_NUMBER or not (digits.isascii() and digits.isalnum()):
        return 0
    if digits[1:2] in ("x", "X", "o", "O"):
        return 0
    try:
        number = int(digits, base)
    except ValueError:
        return 0
    return number if number <= LARGEST else 0


def real_number(text: str | bytes | None, default: float = 0.0) -> float:
    """Accepts a point and an exponent; not a negative number."""
    digits = text.decode("latin-1") if isinstance(text, bytes) else text or ""
    digits = digits.strip()
    if len(digits) > LONGEST_NUMBER or not digits.isascii() or "_" in digits:
        return default
    try:
        number = float(digits)
    except ValueError:
        return default
    return number if 0.0 <= number <= float(LARGEST) else default


def seconds_of(date: str | None) -> float | None:
    """Returns the Unix time of an HTTP or ISO 8601 date, by default in UTC; None if invalid."""
    from email.utils import parsedate_to_datetime  # Slow: imports `socket`.

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
    """Clamps a parsed number to `least` and `most`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return default
    return float(max(least, min(value, most)))
