"""Changes that stand in prose: fences that name a path, diffs, envelopes; only where the meaning is certain."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers import patches
from tui_agent.answers.values import ChangeRequest, SearchReplace

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*?)[ \t]*$")
_PATH = r"(?:[\w@.~+-]+/)*[\w@.~+-]*(?:\.(?=\w*[A-Za-z])\w{1,10}|(?<=/)[\w-]+|Makefile|Dockerfile)"
_INFO = re.compile(
    rf"(?:[\w+#-]+(?:\s+|:))?(?:(?:title|file|filename|path|name)\s*=\s*)?[\"'`]?({_PATH})[\"'`]?"
)
_LABEL_WORDS = re.compile(
    r"(?:(?:new|updated?|create|edit|change[ds]?|modified)\s+)?(?:file(?:name)?|path)?\s*:?\s*", re.I
)
_BLOCK = re.compile(
    r"^<{5,9} ?SEARCH[^\n]*\n(.*?)^={5,9}[ \t]*\n(.*?)^>{5,9} ?REPLACE[^\n]*$", re.DOTALL | re.MULTILINE
)
_BLOCK_BEGIN = re.compile(r"^<{5,9} ?SEARCH", re.MULTILINE)
_DIFF_LANGUAGES = frozenset({"diff", "patch", "udiff", "git", "apply_patch"})
#: What is shown in these is output or something to type, not a file.
_SHOWN_ONLY = frozenset({"console", "output", "text", "shell-session", "log", "plaintext"})
_BARE_DIFF = re.compile(
    r"^(?:diff --git .*\n(?:(?!---|@@|diff ).*\n){0,6})?--- \S.*\n\+\+\+ \S.*\n@@", re.MULTILINE
)
_HUNK_LINE = re.compile(r"^(?:[ +\-\\@].*|diff --git .*|index .*|\+\+\+ .*|--- .*|)$")


class Fence(Struct, frozen=True):
    """A fence: the words behind its opening, its text, the line before it, and whether it was closed."""

    info: str
    text: str
    label: str
    closed: bool
    #: A line inside opens a fence of the same kind, so that nobody can say where this one ends.
    nested: bool = False


class Found(Struct, frozen=True):
    changes: tuple[ChangeRequest, ...] = ()
    faults: tuple[str, ...] = ()


def changes(text: str, cut: bool = False) -> Found:
    """The changes in a prose answer, in their order; `cut` says that its end is missing."""
    if "```" not in text and "~~~" not in text and "--- " not in text and patches.BEGIN not in text:
        return Found()
    found: list[ChangeRequest] = []
    faults: list[str] = []
    outside: list[str] = []
    for part in _parts(text.replace("\r\n", "\n")):
        if isinstance(part, str):
            outside.append(part)
        else:
            _read_fence(part, found, faults)
    bare = "\n".join(outside)
    _read_envelopes(bare, found, faults)
    _read_bare_diff(bare, cut, found, faults)
    return Found(tuple(_one_each(found)), tuple(faults))


def _parts(text: str) -> Iterator[str | Fence]:
    """Lines of prose and fences, in order."""
    lines = iter(text.split("\n"))
    label = ""
    for line in lines:
        opening = _FENCE.match(line)
        if opening is None:
            if line.strip():
                label = line.strip()
            yield line
            continue
        yield _fence(lines, opening[1], opening[2], label)
        label = ""


def _fence(lines: Iterator[str], mark: str, info: str, label: str) -> Fence:
    inside: list[str] = []
    nested = False
    for line in lines:
        other = _FENCE.match(line)
        if other and other[1][0] == mark[0] and len(other[1]) >= len(mark):
            if not other[2]:
                return Fence(info, _block(inside), label, True, nested)
            nested = True
        inside.append(line)
    return Fence(info, _block(inside), label, False, nested)


def _block(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


def _read_fence(fence: Fence, found: list[ChangeRequest], faults: list[str]) -> None:
    language = fence.info.split(maxsplit=1)[0].lower() if fence.info else ""
    if patches.BEGIN_LINE.search(fence.text):
        _read_envelopes(fence.text, found, faults)
        return
    path = path_in_info(fence.info) or _sure_label(fence.label)
    is_diff = language in _DIFF_LANGUAGES
    if not fence.closed:
        if path or is_diff:
            faults.append(f"The fenced block for {path or 'a diff'} was not finished and is dropped.")
    elif is_diff:
        _read_diff(fence.text, path_in_label(fence.label), found, faults)
    elif _BLOCK_BEGIN.search(fence.text):
        _read_blocks(fence.text, path or path_in_label(fence.label), found, faults)
    elif path and fence.nested:
        faults.append(f"The fenced block for {path} holds fences itself, so its end is not certain.")
    elif path and language not in _SHOWN_ONLY:
        found.append(ChangeRequest(path, content=fence.text, fenced=True))


def path_in_info(info: str) -> str:
    """The path behind the opening of a fence: `python src/a.py`, `py:src/a.py`, `title="src/a.py"`."""
    match = _INFO.fullmatch(info.strip()) if len(info) < 300 else None
    return _plain(match[1]) if match else ""


def path_in_label(line: str) -> str:
    """The path that a line of prose consists of: `**src/a.py**`, `### src/a.py`, `File: a.py`."""
    if len(line) > 300:
        return ""
    bare = line.strip().lstrip("#>-*`_ ").rstrip(":*`_ ")
    words = _LABEL_WORDS.match(bare)
    bare = bare[words.end() if words else 0 :].strip("`*_: ")
    return _plain(bare) if re.fullmatch(_PATH, bare) else ""


def _sure_label(line: str) -> str:
    """The path of a label that can mean nothing else; a heading `Node.js` can."""
    path = path_in_label(line)
    sure = "/" in path or "`" in line or re.search(r"\b(?:file|path)", line, re.IGNORECASE)
    return path if sure else ""


def _plain(path: str) -> str:
    return path.removeprefix("./")


def _read_diff(text: str, path: str, found: list[ChangeRequest], faults: list[str]) -> None:
    for request in patches.requests(text, ChangeRequest("")):
        named = request if request.path else replace(request, path=path)
        if named.path:
            found.append(named)
        else:
            faults.append("A diff in the answer does not name its file.")


def _read_blocks(text: str, path: str, found: list[ChangeRequest], faults: list[str]) -> None:
    """`<<<<<<< SEARCH` blocks, whose path stands before the fence, behind its opening, or in its first line."""
    path = path or path_in_label(text.split("\n", 1)[0])
    blocks = _BLOCK.findall(text)
    if not path:
        faults.append("A SEARCH block in the answer does not name its file.")
    elif len(blocks) != len(_BLOCK_BEGIN.findall(text)):
        faults.append(f"A SEARCH block for {path} is not complete.")
    else:
        found.append(ChangeRequest(path, edits=tuple(SearchReplace(old, new) for old, new in blocks)))


def _read_envelopes(text: str, found: list[ChangeRequest], faults: list[str]) -> None:
    for envelope in patches.BEGIN_LINE.split(text)[1:]:
        end = patches.END_LINE.search(envelope)
        requests = patches.requests(envelope[: end.start() if end else None], ChangeRequest(""))
        if end is None:
            faults.append(f"A patch in the answer does not end with {patches.END}; its last file is dropped.")
            requests = requests[:-1]
        found.extend(request for request in requests if request.path)


def _read_bare_diff(text: str, cut: bool, found: list[ChangeRequest], faults: list[str]) -> None:
    """A unified diff with headers that stands in prose without a fence."""
    match = _BARE_DIFF.search(text)
    if match is None:
        return
    lines = text[match.start() :].split("\n")
    length = next((n for n, line in enumerate(lines) if not _HUNK_LINE.match(line)), len(lines))
    requests = patches.requests("\n".join(lines[:length]).rstrip("\n"), ChangeRequest(""))
    if cut and length == len(lines):
        faults.append("The diff in the answer was not finished; its last file is dropped.")
        requests = requests[:-1]
    found.extend(request for request in requests if request.path)


def _one_each(found: list[ChangeRequest]) -> list[ChangeRequest]:
    """One change a path: edits of the same file come together, of anything else the last one counts."""
    by_path: dict[str, ChangeRequest] = {}
    for request in found:
        before = by_path.get(request.path)
        if before and before.edits and request.edits:
            request = replace(before, edits=(*before.edits, *request.edits))
        by_path[request.path] = request
    return list(by_path.values())
