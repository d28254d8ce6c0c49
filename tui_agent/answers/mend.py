"""Small deviations from a schema whose meaning is certain, put right before a value is checked."""

from __future__ import annotations

import json
import operator
import re
from typing import Any

_DIGITS = re.compile(r"-?\d{1,9}")
_TRUTH = {"true": True, "false": False, "yes": True, "no": False}


def mended(part: dict[str, Any], value: Any) -> Any:
    """`value` with what certainly meant the shape of `part` in that shape.

    Null stands for "not there"; `file_changes` for `fileChanges`; "3" for 3 where a number is wanted; one
    thing for a list of one; a list or an object that was written as a JSON string for itself.
    """
    match part.get("type"):
        case "object":
            return _object(part, _written_out(value))
        case "array":
            return _array(part, _written_out(value))
        case "integer" if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
            return int(value)
        case "integer" if isinstance(value, float) and value.is_integer():
            return int(value)
        case "boolean" if isinstance(value, str):
            return _TRUTH.get(value.strip().lower(), value)
        case _:
            return value


def _object(part: dict[str, Any], value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    shapes = part.get("properties", {})
    result: dict[str, Any] = {}
    same = True
    for key, entry in value.items():
        name = key if key in shapes else camel(key)
        if name not in shapes:
            name = key
        if entry is not None and (name == key or name not in value):
            result[name] = mended(shapes.get(name, {}), entry)
            same = same and name == key and result[name] is entry
    return value if same and len(result) == len(value) else result


def _array(part: dict[str, Any], value: Any) -> Any:
    items = part.get("items", {})
    if isinstance(value, list):
        result = [mended(items, entry) for entry in value if entry is not None]
        same = len(result) == len(value) and all(map(operator.is_, result, value))
        return value if same else result
    if isinstance(value, dict) and items.get("type") == "object":
        return [mended(items, value)]
    if isinstance(value, str) and items.get("type") == "string":
        return [value]
    return value


def _written_out(value: Any) -> Any:
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return value


def camel(key: str) -> str:
    """`file_changes` as `fileChanges`; a name without an underscore stays."""
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)
