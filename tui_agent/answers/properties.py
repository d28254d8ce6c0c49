"""Unknown properties: harmless properties, and properties that cause the refusal of an entry."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tui_agent.answers.schema import camel

#: Comments about an entry, with any value.
_REMARKS = frozenset(
    {"explanation", "description", "reason", "reasoning", "rationale", "comment", "note", "language"}
)
_KINDS = (
    "type", "kind", "action", "operation", "op", "mode", "changetype", "changekind", "method", "command",
)  # fmt: skip
_OFF = (False, None, "", 0, "false", "no", "none")
#: Settings of other tools (lower case), and their values that match the default behaviour.
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
#: Kinds of entry lists that request an action other than a proposal.
_OTHER_KINDS = frozenset({"append", "prepend", "insert", "preview", "dryrun", "simulate", "partial", "test"})
#: Permitted kinds of an entry by its form.
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


def unknown(entry: Mapping[str, Any], ours: Collection[str], **same: Any) -> Iterator[str]:
    """Keys of an entry that are neither `ours` nor redundant; `same` are values that may be repeated."""
    for key, value in entry.items():
        if key not in ours and not _says_nothing(key, value, entry, same):
            yield key


def commanding(entry: Mapping[str, Any], ours: Collection[str]) -> Iterator[str]:
    """Keys next to a list of entries that would change its meaning."""
    for key, value in entry.items():
        low = _low(key)
        other = low in _KINDS and isinstance(value, str) and _low(value) in _OTHER_KINDS
        if key not in ours and (other or (low in _SETTINGS and not _is_one_of(value, _SETTINGS[low]))):
            yield key


def _says_nothing(key: str, value: Any, entry: Mapping[str, Any], same: Mapping[str, Any]) -> bool:
    low = _low(key)
    if low in _REMARKS:
        return isinstance(value, str)
    if low in _KINDS and isinstance(value, str):
        return any(form in entry and value.strip().lower() in words for form, words in _FORM_WORDS.items())
    if low in _SETTINGS:
        return _is_one_of(value, _SETTINGS[low])
    if value in (None, "", [], {}):
        return True
    ours = _OTHER_NAMES.get(camel(key))
    return ours is not None and value == entry.get(ours, same.get(ours))


#: Aliases of existing properties.
_OTHER_NAMES = {
    name: ours
    for ours, names in {
        "path": ("path", "file", "filename", "fileName", "filePath", "filepath", "targetFile"),
        "search": ("search", "old", "oldStr", "oldString", "oldText", "find", "original"),
        "replace": ("replace", "new", "newStr", "newString", "newText", "replacement", "replaceWith"),
        "content": ("newContent", "fileContent", "fullContent"),
    }.items()
    for name in names
}


def _low(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _is_one_of(value: Any, values: tuple[Any, ...]) -> bool:
    return any(type(value) is type(one) and value == one for one in values)
