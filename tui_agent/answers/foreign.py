"""Text that is offered as a file's whole content and is an edit of it in some form: never what the file should hold."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tui_agent.answers import blocks, unified

#: A file of these kinds may begin like a patch.
_PATCHES = (".patch", ".diff", ".rej", ".mbox", ".eml", ".orig")
#: What these kinds hold may begin with a fence, or with a tag.
_MARKDOWN = (".md", ".markdown", ".mdx", ".rst", ".qmd", ".rmd", ".txt", ".prompt", ".adoc")
_MARKUP = (
    ".html",
    ".htm",
    ".xml",
    ".svg",
    ".xhtml",
    ".vue",
    ".svelte",
    ".astro",
    ".jsx",
    ".tsx",
    ".xsl",
    ".php",
)

_ENVELOPE = re.compile(r"\*\*\* (?:(?:Begin|End) Patch[ \t]*$|(?:Add|Update|Delete) File:)")
_FENCE = re.compile(r"(?:`{3,}|~{3,})[^`]*$")
#: Tags around a change in the answers of some tools, and around a call that is written as text.
_EDIT_TAGS = (
    "write_to_file|replace_in_file|apply_diff|apply_patch|insert_content|search_and_replace|edit_file|create_file"
    "|str_replace|str_replace_editor|str_replace_based_edit_tool|update_file|delete_file|rewrite_file|new_file"
    "|write_file|code_edit|file_edit|file_content|file_change|file_changes|invoke|function_calls|function_call"
    "|tool_call|tool_use|antArtifact|boltArtifact|boltAction|dyad-write|dyad-edit|dyad-rename|dyad-delete"
    "|edits?|search|replace|search_replace|old_str|new_str|diff|patch"
)
#: Tags that are a fence in some tools' answers and mean something else elsewhere.
_FENCE_TAGS = "source|sourcecode|code|codeblock|pre|file|content|document|artifact|changes?"
TAGS = f"{_EDIT_TAGS}|{_FENCE_TAGS}"
_TAG = re.compile(
    rf"<(/?)(?:(?P<sure>{_EDIT_TAGS})|(?P<unsure>{_FENCE_TAGS}))(?P<rest>[ \t=>/|][^\n]{{0,400}})?$"
)
_NAMED = re.compile(
    r"(?:path|file|filename|filepath|file_path|filePath|name|src)[ \t]*=[ \t]*[\"']?([^\"'<>]{1,300})[\"'>]"
)
_NAMED_INSIDE = re.compile(
    r"[ \t]*<(?:path|file_path|filename|file|parameter name=\"(?:path|file_path)\")>([^<>\n]{1,300})</"
)


class Tag:
    """A line that begins with a tag around a change: `sure` where it is hardly anything else."""

    __slots__ = ("closing", "name", "path", "sure")

    def __init__(self, match: re.Match[str]) -> None:
        self.closing = match[1] == "/"
        self.sure = match["sure"] is not None
        self.name = match["sure"] or match["unsure"]
        named = _NAMED.search(match["rest"] or "")
        self.path = named[1].strip() if named else ""


def tag(line: str) -> Tag | None:
    match = _TAG.match(line.strip()) if len(line) < 1000 else None
    return Tag(match) if match else None


def path_inside(line: str) -> str:
    """The path in a line like `<path>src/a.py</path>`."""
    match = _NAMED_INSIDE.match(line)
    return match[1].strip() if match else ""


def is_markdown(path: str) -> bool:
    return path.lower().endswith(_MARKDOWN)


def may_hold_patches(path: str) -> bool:
    """Whether a file of this kind may well hold the markers of edits: a patch, or words about them."""
    return path.lower().endswith((*_PATCHES, *_MARKDOWN))


def edit_form(path: str, text: str) -> str:
    """The first line of a whole content that is the beginning of an edit in some form; empty where it is none."""
    low = path.lower()
    if low.endswith(_PATCHES):
        return ""
    lines = list(_first_lines(text))
    if not lines:
        return ""
    first = lines[0].strip()
    if (
        blocks.resembles(first)
        or _ENVELOPE.match(first)
        or unified.begins_hunk(first)
        or unified.begins(lines, 0)
    ):
        return first
    if _FENCE.match(first) and (
        not is_markdown(path) or (low.endswith(".txt") and text.rstrip().endswith(first[:3]))
    ):
        return first
    if not is_markdown(path):
        found = tag(first)
        if found and found.sure and not low.endswith(_MARKUP):
            return first
    return ""


def _first_lines(text: str) -> Iterator[str]:
    """The first lines from the first one on that is not blank."""
    at, found = 0, 0
    while at < len(text) and found < 3:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at : min(end, at + 1000)]
        if found or line.strip():
            found += 1
            yield line
        at = end + 1
