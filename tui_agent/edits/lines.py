"""Lines and line endings: a line feed ends a line, and files keep their endings."""

from __future__ import annotations

from tui_agent.edits.alignment import matches
from tui_agent.files.text import pieces

BOM = "\ufeff"


def split(text: str) -> list[str]:
    """Returns the lines with their endings. As in git, form feeds and Unicode separators do not end a
    line."""
    lines: list[str] = []
    for piece in pieces(text):
        parts = piece.split("\n")
        last = parts.pop()
        lines += [part + "\n" for part in parts]
        if last:
            lines.append(last)
    return lines


def plain(text: str) -> str:
    """Returns the text with only line feeds as line endings."""
    if "\r" not in text:
        return text
    text = text.replace("\r\n", "\n")
    return text if "\n" in text else text.replace("\r", "\n")


def dominant_ending(text: str) -> str:
    """Returns the most frequent line ending, default line feed."""
    crlf = text.count("\r\n")
    if not crlf and "\n" not in text and "\r" in text:
        return "\r"
    return "\r\n" if crlf * 2 > text.count("\n") else "\n"


def ended_like(base: str, new: str) -> str:
    """Returns `new` with the line endings of `base`: the own ending of each kept line, otherwise the dominant
    one."""
    if "\r" not in base:
        return new
    ending = dominant_ending(base)
    if ending == "\r":
        return new.replace("\n", "\r")
    if base.count("\r\n") == base.count("\n"):
        return new.replace("\n", ending)
    return _ended_by_line(split(base), split(new), ending)


def _ended_by_line(old: list[str], lines: list[str], usual: str) -> str:
    """Returns the lines with the endings of the lines they keep or replace; additional lines get `usual`."""
    bare = [line.replace("\r\n", "\n") for line in old]
    result: list[str] = []
    start = 0
    for here, at, length in [*matches(bare, lines), (len(old), len(lines), 0)]:
        gone = old[start:here]
        for number, line in enumerate(lines[len(result) : at]):
            ending = usual if number >= len(gone) else "\r\n" if gone[number].endswith("\r\n") else "\n"
            result.append(line.replace("\n", ending))
        result.extend(old[here : here + length])
        start = here + length
    return "".join(result)
