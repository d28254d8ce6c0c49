"""Lines and their endings: only a line feed ends one, and a file keeps the endings that it has."""

from __future__ import annotations

from tui_agent.edits.alignment import matches
from tui_agent.files.text import pieces

BOM = "\ufeff"


def split(text: str) -> list[str]:
    """The lines with their endings; form feeds and Unicode separators are part of a line, as for git."""
    lines: list[str] = []
    for piece in pieces(text):
        parts = piece.split("\n")
        last = parts.pop()
        lines += [part + "\n" for part in parts]
        if last:
            lines.append(last)
    return lines


def plain(text: str) -> str:
    """The text with a line feed alone at each line's end."""
    if "\r" not in text:
        return text
    text = text.replace("\r\n", "\n")
    return text if "\n" in text else text.replace("\r", "\n")


def dominant_ending(text: str) -> str:
    """The ending that most lines have: a line feed where there is none."""
    crlf = text.count("\r\n")
    if not crlf and "\n" not in text and "\r" in text:
        return "\r"
    return "\r\n" if crlf * 2 > text.count("\n") else "\n"


def ended_like(base: str, new: str) -> str:
    """`new` (line feeds alone) with the line endings of `base`: each kept line's own, elsewhere the usual one."""
    if "\r" not in base:
        return new
    ending = dominant_ending(base)
    if ending == "\r":
        return new.replace("\n", "\r")
    if base.count("\r\n") == base.count("\n"):
        return new.replace("\n", ending)
    return _ended_by_line(split(base), split(new), ending)


def _ended_by_line(old: list[str], lines: list[str], usual: str) -> str:
    """Each line with the ending of the one it is or replaces; `usual` for more lines than there were."""
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
