"""Hooks around a model's calls, in the notation of the most used agent."""

from __future__ import annotations

import fnmatch
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers.plans import DirectoryAction, FileAction
from tui_agent.answers.values import ChangeRequest, SearchRequest, SubTaskRequest
from tui_agent.extensions.names import SHOWN, narrowing

_JOINED = re.compile(r"[;&|\n()]+")


class HookedCall(Struct, frozen=True):
    name: str
    input: dict[str, Any]
    own: str

    @property
    def names(self) -> tuple[str, ...]:
        """Its names for a matcher, with those of older and newer versions of the other agent."""
        others = {"Edit": ("MultiEdit",) if "edits" in self.input else (), "Task": ("Agent",)}
        return (self.name, *others.get(self.name, ()), self.own)

    def is_covered(self, root: Path, rule: str) -> bool:
        """A rule such as `Bash(git *)` also covers a command if it covers a part."""
        targets = [str(self.input.get(key, "")) for key in ("command", "file_path", "path", "url")]
        parts = [part.strip() for part in _JOINED.split(targets[0])]
        relative = [os.path.relpath(path, root) for path in targets[1:3] if path]
        tools = narrowing([rule]).tools
        return any(
            not patterns
            or any(
                fnmatch.fnmatchcase(one, pattern)
                for one in (*targets, *parts, *relative)
                if one
                for pattern in patterns
            )
            for tool, patterns in tools.items()
            if fnmatch.fnmatchcase(self.own, tool)
        )


class BeforeCall(Struct, frozen=True):
    """`verdict` is by the user's own hooks, `entries` replace those of the call, `context` is for the model."""

    refused: str = ""
    verdict: Literal["", "allow", "ask"] = ""
    entries: tuple[Any, ...] | None = None
    context: str = ""


@dataclass(frozen=True)
class CallHooks:
    """`asked` runs before a question about a call; `after` returns text for the model; `compacting` returns
    the reason for blocking a summary.
    """

    before: Callable[[str, str, tuple[Any, ...]], Awaitable[BeforeCall]]
    asked: Callable[[str, tuple[Any, ...]], Awaitable[BeforeCall]]
    after: Callable[[str, str, tuple[Any, ...], str, bool], Awaitable[str]]
    compacting: Callable[[Literal["auto", "manual"]], Awaitable[str]]


def hooked_calls(tool: str, entries: tuple[Any, ...], root: Path) -> Iterator[HookedCall]:
    shown = SHOWN.get(tool, tool)
    for entry in entries or ({},):
        match entry:
            case ChangeRequest():
                yield _change(entry, root, tool)
            case FileAction():
                path = next(iter(entry.patterns), entry.name)
                yield HookedCall(shown, {"file_path": str(root / path)}, tool)
            case DirectoryAction():
                yield HookedCall(shown, {"path": str(root / entry.path)}, tool)
            case SearchRequest():
                yield HookedCall(
                    shown, {"pattern": entry.pattern, "glob": entry.glob, "path": str(root)}, tool
                )
            case SubTaskRequest():
                words = {
                    "description": entry.id,
                    "prompt": entry.goal,
                    "subagent_type": entry.agent or "general-purpose",
                }
                yield HookedCall(shown, words, tool)
            case dict() if tool == "call_tool":
                name, arguments = str(entry.get("name", "")), entry.get("arguments") or {}
                yield HookedCall(f"mcp__{name}", arguments if isinstance(arguments, dict) else {}, name)
            case dict() if "__" in tool:
                yield HookedCall(f"mcp__{tool}", entry, tool)
            case dict() if tool == "run_command":
                words = {"command": entry.get("command", ""), "description": entry.get("why", "")}
                yield HookedCall(shown, words, tool)
            case dict() if tool == "find_files":
                yield HookedCall(shown, {"pattern": entry.get("glob", "")}, tool)
            case dict() if tool == "use_skill":
                yield HookedCall(shown, {"skill": entry.get("name", ""), **entry}, tool)
            case dict():
                yield HookedCall(shown, entry, tool)
            case _:
                yield HookedCall(shown, {"entry": str(entry)}, tool)


def _change(change: ChangeRequest, root: Path, own: str) -> HookedCall:
    path = {"file_path": str(root / change.path)}
    if change.rename_to:
        path["rename_to"] = str(root / change.rename_to)
    if change.delete:
        return HookedCall("Edit", {**path, "delete": True}, own)
    if change.content is not None:
        return HookedCall("Write", {**path, "content": change.content}, own)
    edits = _edits(change)
    if len(edits) == 1 and not change.then:
        return HookedCall("Edit", {**path, **edits[0]}, own)
    for step in change.then:
        edits += _edits(step)
        if step.content is not None:
            edits.append({"old_string": "", "new_string": step.content})
    # Scripts of today know no call with several edits: they find all texts where that of one edit is.
    whole = {key: "\n".join(edit[key] for edit in edits) for key in ("old_string", "new_string")}
    return HookedCall("Edit", {**path, **whole, "edits": edits}, own)


def _edits(step: ChangeRequest) -> list[dict[str, str]]:
    return [{"old_string": edit.old, "new_string": edit.new} for edit in (*step.edits, *step.diff)]


def with_input(tool: str, entry: Any, before: dict[str, Any], after: dict[str, Any]) -> Any:
    """Returns an entry with the input `after`. Raises ValueError if it cannot have it."""
    match entry:
        case ChangeRequest() if before.get("file_path") == after.get("file_path"):
            content, old, new = (after.get(key) for key in ("content", "old_string", "new_string"))
            if entry.content is not None and isinstance(content, str):
                return replace(entry, content=content)
            if (
                "old_string" in before
                and "edits" not in before
                and len(entry.edits) == 1
                and isinstance(old, str)
                and isinstance(new, str)
            ):
                return replace(entry, edits=(replace(entry.edits[0], old=old, new=new),))
        case dict() if tool == "run_command" and isinstance(after.get("command"), str):
            return {**entry, "command": after["command"]}
        case dict() if tool == "fetch_page" and isinstance(after.get("url"), str):
            return {**entry, "url": after["url"]}
        case dict() if tool == "call_tool":
            whole = isinstance(entry.get("arguments"), dict)
            return {**entry, "arguments": after if whole else json.dumps(after)}
        case dict() if "__" in tool:
            return after
    raise ValueError("a call of this kind takes no changed input of this form")
