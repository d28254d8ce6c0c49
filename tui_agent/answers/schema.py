from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from tui_agent.answers import file_names, lenient_json

Schema = dict[str, Any]
_LOOSE_WORDS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "default"})


class Function(Struct, frozen=True):
    """A function of the `tools` dialect: the list `parameter` has the schema of a structured reply's `key`.
    Without one, the arguments are one entry of that list.
    """

    name: str
    key: str
    parameter: str = ""


def strict(schema: Schema) -> Schema:
    """Requires every property, makes optional ones nullable, and allows no others."""
    result = {key: value for key, value in schema.items() if key not in _LOOSE_WORDS}
    if isinstance(result.get("items"), dict):
        result["items"] = strict(result["items"])
    if isinstance(result.get("properties"), dict):
        needed = result.get("required", [])
        result["properties"] = {name: strict(part) for name, part in result["properties"].items()}
        for name, part in result["properties"].items():
            if name not in needed:
                part["type"] = [part["type"], "null"]
                if "enum" in part:
                    part["enum"] = [*part["enum"], None]
        result["required"] = list(result["properties"])
        result["additionalProperties"] = False
    return result


def check(part: Schema, value: Any, at: str = "") -> list[str]:
    """Returns a sentence for each violation, ignoring additional properties; see `properties`."""
    found: list[str] = []
    try:
        for error in _validator(msgspec.json.encode(part)).iter_errors(value):
            if error.schema_path[-1] == "additionalProperties":
                continue
            place = at
            for step in error.instance_path:
                place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else str(step)
            message = error.message  # can quote a whole file
            message = message if len(message) <= _LONGEST_MESSAGE else "…" + message[-_LONGEST_MESSAGE:]
            found.append(f"{place or 'the reply'}: {message}.")
    except (ValueError, RecursionError) as error:
        return [f"{at or 'the reply'}: cannot be checked ({error})."]
    return found


@lru_cache(maxsize=64)
def _validator(part: bytes) -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(msgspec.json.decode(part))


_LONGEST_MESSAGE = 160
_DIGITS = re.compile(r"-?\d{1,9}")
_TRUTH = {"true": True, "false": False, "yes": True, "no": False}


def coerced(part: dict[str, Any], value: Any) -> Any:
    """Converts a value with an unambiguous meaning. Null means missing; `file_changes` becomes
    `fileChanges`; "3" becomes 3; a single item becomes a list.
    """
    match part.get("type"):
        case "object":
            value, shapes = written_out(value), part.get("properties", {})
            if not isinstance(value, dict):
                return value
            result: dict[str, Any] = {}
            for key, entry in value.items():
                name = key if key in shapes else camel(key)
                if name not in shapes or (name != key and name in value and entry != value[name]):
                    name = key
                if entry is not None and (name == key or name not in value):
                    result[name] = coerced(shapes.get(name, {}), entry)
            return result
        case "array":
            value, items = written_out(value), part.get("items", {})
            if isinstance(value, list):
                return [coerced(items, entry) for entry in value if entry is not None]
            if isinstance(value, dict) and items.get("type") == "object":
                return [coerced(items, value)]
            return [value] if isinstance(value, str) and items.get("type") == "string" else value
        case "integer" if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
            return int(value)
        case "integer" if isinstance(value, float) and value.is_integer():
            return int(value)
        case "boolean" if isinstance(value, str):
            return _TRUTH.get(value.strip().lower(), value)
        case _:
            return value


def written_out(value: Any) -> Any:
    """Parses a list or object in a JSON string."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return lenient_json.decoded(value)
    except (ValueError, RecursionError):
        return value


def camel(key: str) -> str:
    """Converts `file_changes` to `fileChanges`, and the case of known names."""
    first, *rest = re.split("[_-]", key)
    made = first + "".join(word.capitalize() for word in rest)
    return _OWN.get(made.lower(), made)


_OWN_NAMES = ("summary", "message", "todos", "fileChanges", "fileRequests", "directoryRequests", "searches")
_OWN_NAMES += ("subTasks", "nextSteps", "changes", "path", "edits", "search", "replace", "content", "diff")
_OWN = {name.lower(): name for name in (*_OWN_NAMES, "delete", "renameTo")}


_NEAR: dict[str, tuple[str, ...]] = {
    "path": ("file", "filename", "fileName", "filePath", "filepath", "targetFile"),
    "content": ("newContent", "fileContent", "fullContent"),
    "diff": ("patch", "unifiedDiff"),
    "edits": ("replacements", "modifications"),
    "renameTo": ("newPath", "moveTo", "newName"),
}
_NEAR_EDIT: dict[str, tuple[str, ...]] = {
    "search": ("old", "oldStr", "oldString", "oldText", "find", "original"),
    "replace": ("new", "newStr", "newString", "newText", "replacement", "replaceWith"),
}
_FORMS = ("edits", "content", "diff", "delete")


def near_names(entry: dict[str, Any]) -> dict[str, Any]:
    result = _named(entry, _NEAR)
    if not any(form in result for form in _FORMS):
        edit = _named(result, _NEAR_EDIT)
        if "search" in edit and "replace" in edit:
            pair = {"search": edit.pop("search"), "replace": edit.pop("replace")}
            result = {**edit, "edits": [pair]}
    edits = result.get("edits")
    if isinstance(edits, list) and any(isinstance(one, dict) for one in edits):
        named = [_named(one, _NEAR_EDIT) if isinstance(one, dict) else one for one in edits]
        if any(one is not other for one, other in zip(named, edits, strict=True)):
            result = {**result, "edits": named}
    return result


def by_path(value: Any) -> Any:
    if not isinstance(value, dict) or not value or near_names(value).keys() & _OWN_OF_CHANGES:
        return value
    entries = []
    for path, entry in value.items():
        if not (file_names.is_path(path) or "/" in path) or not isinstance(entry, (dict, str)):
            return value
        entries.append(
            {"path": path, "content": entry} if isinstance(entry, str) else {"path": path, **entry}
        )
    return entries


_OWN_OF_CHANGES = frozenset({"path", *_FORMS, "search", "replace", "renameTo"})


def _named(entry: dict[str, Any], near: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Renames a similar name only if there is no other candidate and the canonical name is missing."""
    result = {}
    for key, value in entry.items():
        name = key if key in _KNOWN else camel(key)
        result[key if name not in _KNOWN or name in entry else name] = value
    changed = result.keys() != entry.keys()
    for ours, others in near.items():
        there = [other for other in others if other in result]
        if ours not in result and len(there) == 1:
            result[ours] = result.pop(there[0])
            changed = True
    return result if changed else entry


_KNOWN = {
    *_OWN.values(),
    *(name for near in (_NEAR, _NEAR_EDIT) for names_ in near.values() for name in names_),
}
_KNOWN |= {"todoIndex", "baseHash"}


_REMARKS = frozenset(
    {"explanation", "description", "reason", "reasoning", "rationale", "comment", "note", "language"}
)
_KINDS = (
    "type", "kind", "action", "operation", "op", "mode", "changetype", "changekind", "method", "command",
)  # fmt: skip
_OFF = (False, None, "", 0, "false", "no", "none")
#: Settings of other tools, and values that match the default behaviour.
_SETTINGS: dict[str, tuple[Any, ...]] = {
    "dryrun": _OFF,
    "preview": _OFF,
    "simulate": _OFF,
    "noop": _OFF,
    "apply": (True, "true"),
    "isregex": _OFF,
    "regex": _OFF,
    "useregex": _OFF,
    "replaceall": _OFF,
    "partial": _OFF,
    "append": _OFF,
    "prepend": _OFF,
    "insert": _OFF,
    "binary": _OFF,
    "ignorecase": _OFF,
    "ignorewhitespace": _OFF,
    "occurrence": _OFF[:3],
    "occurrences": (*_OFF[:3], 1),
    "expectedreplacements": (*_OFF[:3], 1),
    "count": (*_OFF[:3], 1),
    "encoding": ("utf-8", "utf8", "UTF-8", "UTF8", "text", "plain", "", None),
    "position": ("replace", "", None),
    "overwrite": (True, "true"),
    "casesensitive": (True, "true"),
    "createifmissing": (True, False, "true", "false"),
}
#: Actions other than a proposal.
_OTHER_KINDS = frozenset({"append", "prepend", "insert", "preview", "dryrun", "simulate", "partial", "test"})
_FORM_WORDS: dict[str, frozenset[str]] = {
    "content": frozenset({"create", "write", "overwrite", "rewrite", "new", "full", "whole", "content"}),
    "edits": frozenset(
        {"edit", "edits", "modify", "update", "change", "replace", "search_replace", "searchreplace"}
    ),
    "diff": frozenset({"diff", "patch", "unified_diff", "edit", "modify", "update", "change"}),
    "delete": frozenset({"delete", "remove"}),
    "renameTo": frozenset({"rename", "move"}),
    "search": frozenset({"edit", "replace", "modify", "update", "change", "search_replace", "searchreplace"}),
}


def unknown_properties(entry: Mapping[str, Any], ours: Collection[str], **same: Any) -> Iterator[str]:
    """Yields keys that are neither `ours` nor redundant; `same` are values that may be repeated."""
    for key, value in entry.items():
        if key in ours:
            continue
        low, own = _low(key), _OTHER_NAMES.get(camel(key))
        if low in _REMARKS:
            redundant = isinstance(value, str)
        elif low in _KINDS and isinstance(value, str):
            kind = value.strip().lower()
            redundant = any(form in entry and kind in words for form, words in _FORM_WORDS.items())
        elif low in _SETTINGS:
            redundant = _is_one_of(value, _SETTINGS[low])
        else:
            redundant = value in (None, "", [], {}) or (
                own is not None and value == entry.get(own, same.get(own))
            )
        if not redundant:
            yield key


def commanding_properties(entry: Mapping[str, Any], ours: Collection[str]) -> Iterator[str]:
    """Yields keys beside a list of entries that would change its meaning."""
    for key, value in entry.items():
        low = _low(key)
        other = low in _KINDS and isinstance(value, str) and _low(value) in _OTHER_KINDS
        if key not in ours and (other or (low in _SETTINGS and not _is_one_of(value, _SETTINGS[low]))):
            yield key


_OTHER_NAMES = {
    name: ours
    for ours, names in {
        "path": ("path", *_NEAR["path"]),
        "search": ("search", *_NEAR_EDIT["search"]),
        "replace": ("replace", *_NEAR_EDIT["replace"]),
        "content": _NEAR["content"],
    }.items()
    for name in names
}


def _low(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _is_one_of(value: Any, values: tuple[Any, ...]) -> bool:
    return any(type(value) is type(one) and value == one for one in values)
