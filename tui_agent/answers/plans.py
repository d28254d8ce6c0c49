"""Files and folders that a request needs, and ranges of lines.

Lines count from 1; ranges include both ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct

from tui_agent.answers import lenient_json
from tui_agent.answers.lenient_json import joined
from tui_agent.files.numbers import whole_number

Range = tuple[int, int]
_SPAN = re.compile(r"[lL]?(\d{1,9})(?:\s*(?:-|–|\.\.|,|:|to)\s*[lL]?(\d{1,9}))?\Z")
_IN_WORDS = re.compile(r"\blines?\s+(\d{1,9})(?:\s*(?:-|–|to|and|until)\s*(\d{1,9}))?", re.IGNORECASE)


def read_range(written: object) -> Range | None:
    """Accepts `120-180`, `L120-L180`, `120` or 120."""
    if isinstance(written, int) and not isinstance(written, bool):
        written = str(written)
    found = _SPAN.match(written.strip()) if isinstance(written, str) else None
    if found is None:
        return None
    first = max(1, whole_number(found[1]))
    return first, max(first, whole_number(found[2])) if found[2] else first


def ranges_in(words: str, file_name: str) -> tuple[Range, ...]:
    """Accepts `line 120`, `lines 120 to 180`, `big.py:120`, `big.py:120-180`."""
    at_name = re.compile(rf"(?<![\w.-]){re.escape(file_name)}:(\d{{1,9}})(?:-(\d{{1,9}}))?")
    found = [*_IN_WORDS.finditer(words), *at_name.finditer(words)]
    spans = [read_range(f"{one[1]}-{one[2]}" if one[2] else one[1]) for one in found]
    return tuple(span for span in spans if span is not None)


def in_words(ranges: Sequence[Range]) -> str:
    return ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in ranges)


def within(ranges: Iterable[Range], count: int) -> tuple[Range, ...]:
    """Sorts and merges ranges, limited to `count` lines."""
    found: list[Range] = []
    for first, last in sorted((max(1, first), min(last, count)) for first, last in ranges):
        if first > last:
            continue
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)


FallbackKind = Literal["ask_user", "skip", "create_new"]
Author = Literal["model", "program"]
MAX_PATTERNS = 5


class FileAction(Struct, frozen=True):
    """`patterns`, written by `by`, are tried up to the first match, then the program's own `extra`.
    `fallback` applies without a match.
    """

    name: str
    patterns: tuple[str, ...]
    reason: str = ""
    required: bool = True
    fallback: FallbackKind = "ask_user"
    all: bool = False
    by: Author = "program"
    extra: tuple[str, ...] = ()
    lines: tuple[Range, ...] = ()
    #: The batch whose remaining files this loads.
    batch: str = ""

    @property
    def steps(self) -> tuple[tuple[Author, str], ...]:
        return tuple((self.by, text) for text in self.patterns[:MAX_PATTERNS]) + tuple(
            ("program", text) for text in self.extra
        )


class DirectoryAction(Struct, frozen=True):
    """`filter` is a pattern of names, "" for all."""

    path: str
    recursive: bool = False
    filter: str = ""


class Plan(Struct, frozen=True):
    """`source` is `model`, or `words` for the built-in planner."""

    source: Literal["model", "words"] = "words"
    files: tuple[FileAction, ...] = ()
    directories: tuple[DirectoryAction, ...] = ()
    faults: tuple[str, ...] = ()


def read_plan(text: str, planning: dict[str, Any] | None = None) -> Plan:
    """Reads `{"actions": […]}`, or the older `{"filesToLoad": […]}`. Never raises: unreadable parts become
    faults. `planning` is the schema.
    """
    keys = ("actions", "filesToLoad", "files")
    read = lenient_json.find_object(text, keys)
    items = next((read.value[key] for key in keys if key in read.value), None)
    if not isinstance(items, list):
        return Plan(source="model", faults=(*read.faults, "The plan contains no list of actions."))
    faults = list(read.faults)
    if planning is not None:
        from tui_agent.answers import schema

        part = planning["properties"].get("actions", {}).get("items", {})
        good = []
        for number, item in enumerate(items):
            typed = schema.coerced(part, _typed(item))
            found = schema.check(part, normalized_action(typed), f"actions[{number}]")
            faults.extend(found)
            if not found:
                good.append(typed)
        items = good
    plan = from_items(items)
    return Plan("model", plan.files, plan.directories, (*faults, *plan.faults))


def from_items(items: Iterable[Any]) -> Plan:
    files: list[FileAction] = []
    directories: list[DirectoryAction] = []
    faults: list[str] = []
    for number, item in enumerate(items):
        typed = _typed(item)
        if not isinstance(typed, dict):
            faults.append(f"Action {number + 1} is not an object.")
            continue
        if typed.get("type") == "directory":
            path, wanted = typed.get("path"), typed.get("filter")
            if not isinstance(path, str):
                faults.append(f"Action {number + 1} lists a directory without a path.")
                continue
            name_filter = joined(wanted) if isinstance(wanted, str) else ""
            path = joined(path.strip()) or "."
            directories.append(DirectoryAction(path, typed.get("recursive") is True, name_filter))
            continue
        wanted = typed.get("patterns", [])
        patterns = [p.strip() for p in wanted if isinstance(p, str)] if isinstance(wanted, list) else []
        patterns = list(dict.fromkeys(joined(pattern) for pattern in patterns if pattern))
        name = joined(str(typed.get("name") or (patterns[0] if patterns else f"action {number + 1}")))
        if not patterns:
            faults.append(f"{name} has no pattern to look for.")
            continue
        if len(patterns) > MAX_PATTERNS:
            faults.append(f"{name} has {len(patterns)} patterns; the first {MAX_PATTERNS} are used.")
        required = typed.get("required") is True
        # `120-180`, or the first and the last line as numbers
        value = typed.get("lines")
        written = value if isinstance(value, list) else [] if value is None else [value]
        if len(written) == 2 and all(isinstance(one, int) for one in written):
            written = [f"{written[0]}-{written[1]}"]
        found = [
            read_range(part)
            for one in written
            for part in (one.split(",") if isinstance(one, str) else [one])
        ]
        if None in found:
            faults.append(f"{name} has lines that are not a range such as 120-180: they are skipped.")
        usual: FallbackKind = "ask_user" if required else "skip"
        fallback = typed.get("fallbackAction")
        if fallback not in ("ask_user", "skip", "create_new"):
            if fallback is not None:
                faults.append(
                    f"{name} has an unknown fallbackAction {str(fallback)[:40]!r}; {usual} is used."
                )
            fallback = usual
        files.append(
            FileAction(
                name=name,
                patterns=tuple(patterns[:MAX_PATTERNS]),
                reason=joined(str(typed.get("reason") or "")),
                required=required,
                fallback=fallback,
                all=typed.get("all") is True,
                by="model",
                lines=tuple(one for one in found if one is not None),
            )
        )
    return Plan("model", tuple(files), tuple(directories), tuple(faults))


def normalized_action(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    return {key: value for key, value in item.items() if key != "fallbackAction"}


def joined_plans(first: Plan, second: Plan) -> Plan:
    return Plan(
        first.source,
        tuple(dict.fromkeys((*first.files, *second.files))),
        tuple(dict.fromkeys((*first.directories, *second.directories))),
        (*first.faults, *second.faults),
    )


def _typed(item: Any) -> Any:
    """Reads older formats, which omit the type and have one pattern."""
    if isinstance(item, str):
        return {"type": "file", "patterns": [item]}
    if not isinstance(item, dict):
        return item
    patterns = item.get("patterns") or item.get("pattern")
    if isinstance(patterns, str):
        patterns = [patterns]
    kind = "directory" if patterns is None and item.get("path") is not None else "file"
    if item.get("type") == "file" and kind == "directory":
        kind, patterns = "file", [item["path"]]
    rest = {
        key: value for key, value in item.items() if key not in ("pattern", "patterns") and value is not None
    }
    return {"type": kind, **rest} if patterns is None else {"type": kind, **rest, "patterns": patterns}
