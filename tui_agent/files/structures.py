"""Untrusted TOML and JSON with limits. Every problem raises `Unreadable`."""

from __future__ import annotations

import json
from typing import Any

from tui_agent.files.lazy_regex import late

#: Characters, nesting depth, and parts of a dotted key.
MOST_LETTERS, MOST_DEEP, MOST_PARTS = 1 << 20, 64, 64
#: Separator of key parts.
_DOT = late(r"(?<!\.)\.(?!\.)")


class Unreadable(ValueError):
    """Invalid or beyond the limits; the message is the reason."""


def read_toml(text: str) -> dict[str, Any]:
    import tomllib

    _check_size(text)
    for number, line in enumerate(text.splitlines(), 1):  # Parsing is quadratic in key parts.
        if line.count(".") > MOST_PARTS and any(
            len(_DOT.findall(part)) >= MOST_PARTS for part in line.replace("]", "=").split("=")[:-1]
        ):
            raise Unreadable(f"a key has more than {MOST_PARTS} parts (at line {number}, column 1)")
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(str(error)) from None
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except (ValueError, OverflowError):  # `int` refuses 4,301 digits.
        raise Unreadable("a number or a date in it is out of range") from None
    return _shallow(value)


def read_json(text: str, most: int = MOST_LETTERS) -> Any:
    _check_size(text, most)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise Unreadable(str(error)) from None
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except ValueError:
        raise Unreadable("a number in it is out of range") from None
    return _shallow(value)


def _check_size(text: str, most: int = MOST_LETTERS) -> None:
    if len(text) > most:
        raise Unreadable(f"it has more than {most:,} letters")


def _shallow(value: Any) -> Any:
    level: list[Any] = [value]
    for _ in range(MOST_DEEP):
        level = [inner for one in level for inner in _inside(one) if isinstance(inner, dict | list)]
        if not level:
            return value
    raise Unreadable("it is nested too deeply")


def _inside(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
