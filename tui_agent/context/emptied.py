"""Older messages without the contents that give way: paths and words stay.

What was written by us has a known shape: a `read_files` result is one line of JSON, tables, listings and bundled
files are sections, the editor's state is a block. What a model wrote is JSON; where it is not, it stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

Message = dict[str, Any]

_QUERY = "<user_query>\n"
_EDITOR = re.compile(r"<additional_data>\n.*\n</additional_data>", re.DOTALL)
_PATHS = re.compile(r"<file_contents path=(\"[^\"\n]*\"|'[^'\n]*')")
_END = r"(?=\n\n(?:## (?!#)|Since your last message:|\{\"type\"|<)|\Z)"
_TABLE = re.compile(rf"\A## KNOWN FILES\n.*?{_END}\n*", re.DOTALL)
_BUNDLE = re.compile(rf"(## AUTO-BUNDLED FILES\n)(.*?){_END}", re.DOTALL)
_BUNDLED = re.compile(r"^### .* \(\d+ bytes, \d+ lines, md5 [0-9a-f]+\)$", re.MULTILINE)
_LISTINGS = re.compile(rf"(## DIRECTORY LISTING RESULTS\n)(.*?){_END}", re.DOTALL)
_LISTED = re.compile(r"^### .*$", re.MULTILINE)
_FOUND = re.compile(rf"(## SEARCH RESULTS\n[^\n]*\n).*?{_END}", re.DOTALL)
_NOT_SHOWN = "(no longer shown)"
_GONE = ("content", "fileId", "md5", "lines")
_CONTENTS = ("content", "edits", "diff")


def emptied(message: Message, keep: Collection[str] = (), *, answered: bool = True) -> Message:
    """The message without files' contents; of proposed changes those to paths in `keep` stay whole.

    The table of known files goes: what follows tells it again. `answered` says that the turn is over, so that what
    was listed and searched for it goes too.
    """
    match message["role"]:
        case "user" | "tool":
            text = _without_contents(str(message.get("content") or ""), answered)
            return message | {"content": text or _NOT_SHOWN}
        case "assistant":
            return _without_changes(message, keep)
    return message


def _without_contents(text: str, answered: bool) -> str:
    """The person's own words, which come last, are not touched."""
    at = text.rfind(_QUERY)
    ours, words = (text[:at].rstrip("\n"), text[at:]) if at >= 0 else (text, "")
    ours = _TABLE.sub("", ours)
    if answered:
        ours = _LISTINGS.sub(lambda found: found[1] + "\n".join(_LISTED.findall(found[2])), ours)
        ours = _FOUND.sub(rf"\1{_NOT_SHOWN}", ours)
    ours = _BUNDLE.sub(lambda found: found[1] + "\n".join(_BUNDLED.findall(found[2])), ours)
    ours = _EDITOR.sub(_editor, ours)
    lines = [
        _without_files(line) if line.startswith('{"type": "read_files"') else line
        for line in ours.split("\n")
    ]
    return "\n\n".join(part for part in ("\n".join(lines), words) if part)


def _editor(found: re.Match[str]) -> str:
    paths = "\n".join(f'<file_contents path={path} truncated="true"/>' for path in _PATHS.findall(found[0]))
    return f"<additional_data>\n{paths}\n</additional_data>"


def _without_files(line: str) -> str:
    try:
        result = json.loads(line)
        files = [_without_content(entry) for entry in result["files"]]
    except (ValueError, KeyError, TypeError):
        return line  # no result of ours
    return json.dumps({**result, "files": files}, ensure_ascii=False)


def _without_content(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in _GONE} | {"truncated": True}


def _without_changes(message: Message, keep: Collection[str]) -> Message:
    content = str(message.get("content") or "")
    slim = {**message, "content": _slim(content, "fileChanges", keep)}
    if message.get("tool_calls"):
        slim["tool_calls"] = [_slim_call(call, keep) for call in message["tool_calls"]]
    return slim


def _slim_call(call: dict[str, Any], keep: Collection[str]) -> dict[str, Any]:
    function = call["function"]
    if function["name"] != "propose_changes":
        return call
    return {**call, "function": {**function, "arguments": _slim(function["arguments"], "changes", keep)}}


def _slim(text: str, key: str, keep: Collection[str]) -> str:
    try:
        value = json.loads(text)
        changes = value[key]
        value[key] = [change if change.get("path") in keep else _slim_change(change) for change in changes]
    except (ValueError, KeyError, TypeError, AttributeError):
        return text  # prose, or JSON in prose: it stays
    return json.dumps(value, ensure_ascii=False)


def _slim_change(change: dict[str, Any]) -> dict[str, Any]:
    if not any(key in change for key in _CONTENTS):
        return change
    return {key: value for key, value in change.items() if key not in _CONTENTS} | {"truncated": True}
