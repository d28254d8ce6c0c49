"""Signs of a call or a change in text, for reports about unreadable changes."""

from __future__ import annotations

import re
from collections.abc import Collection

from tui_agent.files.lazy_regex import late

#: Quote characters around keys of a change.
_QUOTED = r"[\"'“”‘’\\]{1,4}"
_TEXT = "(?:str|string|text|code|content|lines?)"
_CHANGES = late(rf"(?i){_QUOTED}(?:file[_-]?changes|edits){_QUOTED}\s*:\s*\[")
_PATH = late(rf"(?i){_QUOTED}(?:path|file|file[_-]?path|file[_-]?name){_QUOTED}\s*:")
_OLD = late(rf"(?i){_QUOTED}(?:search|find|old(?:[_-]?{_TEXT})?){_QUOTED}\s*:")
_NEW = late(rf"(?i){_QUOTED}(?:replace|replacement|new(?:[_-]?{_TEXT})?){_QUOTED}\s*:")


def looks_like_a_change(text: str, names: Collection[str]) -> bool:
    """Whether keys, names and brackets indicate an intended call or change."""
    if "{" not in text and "(" not in text:
        return False
    low = text.lower()
    named = "path" in low or "file" in low
    if named and (_CHANGES.search(text) or (_OLD.search(text) and _NEW.search(text))) and _PATH.search(text):
        return True
    there = [name for name in names if name.partition("_")[0].lower() in low]
    called = "|".join(re.escape(name).replace("_", "[_-]?") for name in there)
    return bool(called) and bool(
        re.search(
            rf"(?im){_QUOTED}(?:name|function|tool|tool_name){_QUOTED}\s*:\s*{_QUOTED}[\w.]{{0,40}}(?:{called}){_QUOTED}"
            rf"|{_QUOTED}[\w.]{{0,40}}(?:{called}){_QUOTED}\s*:\s*[\[{{]"
            rf"|^[ \t]*(?:print\()?(?:\w{{1,40}}\.)?(?:{called})\(\w+ ?=",
            text,
        )
    )
