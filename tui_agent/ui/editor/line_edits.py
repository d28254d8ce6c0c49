"""Edits of whole lines: indentation, comments, duplicates, moves."""

from __future__ import annotations

from collections.abc import Iterable

from textual.content import Content
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from tui_agent.edits.search import Occurrence, near, partner
from tui_agent.ui.safe_text import parts

Place = tuple[int, int]
#: Characters of context on each side of a replacement preview.
_AROUND = 30
#: Line comment signs by language; the default is `#`.
COMMENTS = {
    **dict.fromkeys(("javascript", "typescript", "tsx", "java", "go", "rust", "css"), "//"),
    "sql": "--",
}


def _rows(area: TextArea) -> range:
    (first, _), (last, column) = sorted(area.selection)
    return range(first, max(first, last - (column == 0 and last > first)) + 1)


def _change_lines(area: TextArea, rows: range, lines: list[str], down: int = 0) -> None:
    """Replaces `rows` with `lines` in one undo step, and moves the selection with them."""
    start, end = area.selection
    old = [area.document.get_line(row) for row in rows]
    last = area.document.get_line(rows[-1])
    area.replace(area.document.newline.join(lines), (rows[0], 0), (rows[-1], len(last)))

    def moved(place: Place) -> Place:
        at = place[0] - rows[0]
        grown = len(lines[at]) - len(old[at]) if not down and 0 <= at < min(len(old), len(lines)) else 0
        return _within(area, (place[0] + down, max(0, place[1] + grown)))

    area.selection = Selection(moved(start), moved(end))


def dedent(area: TextArea) -> None:
    lines = [area.document.get_line(row) for row in _rows(area)]
    shorter = [
        line[1:] if line.startswith("\t") else line[_step_of(line, area.indent_width) :] for line in lines
    ]
    if shorter != lines:
        _change_lines(area, _rows(area), shorter)


def toggle_comment(area: TextArea) -> None:
    sign = COMMENTS.get(area.language or "", "#")
    lines = [area.document.get_line(row) for row in _rows(area)]
    written = [line for line in lines if line.strip()]
    if all(line.lstrip().startswith(sign) for line in written):
        lines = [_uncommented(line, sign) for line in lines]
    else:
        depth = min((len(line) - len(line.lstrip()) for line in written), default=0)
        lines = [f"{line[:depth]}{sign} {line[depth:]}" if line.strip() else line for line in lines]
    _change_lines(area, _rows(area), lines)


def duplicate_lines(area: TextArea) -> None:
    lines = [area.document.get_line(row) for row in _rows(area)]
    _change_lines(area, _rows(area), [*lines, *lines], down=len(lines))


def move_lines(area: TextArea, step: int) -> None:
    """Swaps the selected lines with the line above (-1) or below (1)."""
    rows = _rows(area)
    end = area.document.line_count - (not area.document.lines[-1])  # keeps a final line ending
    if rows[0] + step < 0 or rows[-1] + step >= end:
        return
    lines = [area.document.get_line(row) for row in rows]
    if step < 0:
        around, lines = range(rows[0] - 1, rows[-1] + 1), [*lines, area.document.get_line(rows[0] - 1)]
    else:
        around, lines = range(rows[0], rows[-1] + 2), [area.document.get_line(rows[-1] + 1), *lines]
    _change_lines(area, around, lines, down=step)


def replace_lines(area: TextArea, lines: Iterable[str], start: Place, end: Place) -> Place:
    """Replaces a range with `lines` in one undo step."""
    area.history.checkpoint()
    ending = area.document.newline
    result = area.replace(ending.join(line.replace("\n", ending) for line in lines), start, end)
    area.history.checkpoint()
    return result.end_location


def go_to_bracket(area: TextArea) -> None:
    lines = area.document.lines
    here = near(lines, area.selection.end)
    there = partner(lines, here) if here else None
    if there is not None:
        area.move_cursor(there)


def _within(area: TextArea, place: Place) -> Place:
    row = min(place[0], area.document.line_count - 1)
    return row, min(place[1], len(area.document.get_line(row)))


def _step_of(line: str, width: int) -> int:
    return min(len(line) - len(line.lstrip(" ")), width)


def _uncommented(line: str, sign: str) -> str:
    before, found, after = line.partition(sign)
    return before + after.removeprefix(" ") if found and not before.strip() else line


def replaced_in(line: str, here: Occurrence, new: str) -> Content:
    """Returns a line with the old text struck out and the new text after it."""
    before, after = line[max(0, here.start - _AROUND) : here.start].lstrip(), line[here.end :][:_AROUND]
    old = (line[here.start : here.end], "$removed strike")
    return parts((f"{here.row + 1}: ", "$muted"), before, old, (new, "$added bold"), after)
