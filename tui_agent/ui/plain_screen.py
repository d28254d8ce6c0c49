"""The plain screen for screen readers: rows of words, updated by difference, and announcements."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.control import Control
from rich.segment import Segment
from rich.style import Style
from textual.errors import NoWidget
from textual.geometry import Offset
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static, TextArea, Tree

from tui_agent.store.state import State
from tui_agent.ui.diff.diff_view import DiffView
from tui_agent.ui.keys.keymap import Keys
from tui_agent.ui.layout.container import TabLine
from tui_agent.ui.markdown.message_text import MessageText
from tui_agent.ui.panes import PANES
from tui_agent.ui.safe_text import counted, one_line, plain
from tui_agent.ui.textual_patches.screen_rows import line_of, rows_of
from tui_agent.ui.widgets.line_view import LineView, fit
from tui_agent.ui.widgets.pane import Pane
from tui_agent.ui.widgets.prompt_lines import waiting_for_person

_DRAWN = re.compile("[\u2500-\u259f\u2800-\u28ff]")
_BETWEEN_WORDS = re.compile(r"(?<=\S) +[│┃] +(?=\S)")
_SYMBOLS = re.compile("[\u2190-\u21ff\u22ef\u25a0-\u27bf\u2b00-\u2bff]")
_LEADING = re.compile(r"^[^\w\"'(\[{<+-]+")
_KEYS = {"←": "Left", "↑": "Up", "→": "Right", "↓": "Down"}
#: Signs that precede a number in titles and the status line.
_COUNTED = {"●": "to decide", "⚠": "in conflict", "✗": "failed", "◌": "silent", "✓": "applied"}
_MOVED = {"↑": "ahead", "↓": "behind", "±": "changed"}

_ANYWHERE = {
    "✓": "done",
    "✗": "failed",
    "▸": "folded",
    "▾": "unfolded",
    "■": "stopped",
    "–": "missing",
    "≠": "stale",
}
_WORDS: dict[str, Mapping[str, str]] = {
    "status": dict.fromkeys("●⚠✗?◆", ""),
    "title": {"●": "to decide", "⚠": "in conflict", "?": "asks"},
    "files": {"◆": "known", "⚠": "stale", "●": "open"},
    "buffers": {"●": "unsaved"},
    "chat": dict.fromkeys("●⚠◌?", "") | {"○": "open"},
    "plan": {
        "✓": "found",
        "✗": "not found",
        "●": "looking",
        "?": "asks",
        "+": "new",
        "–": "left out",
        "→": "to",
    },
    "review": {
        "✓": "applied",
        "●": "to decide",
        "◐": "partly decided",
        "!": "conflict",
        "–": "skipped",
        "→": "to",
    },
    "todos": {"✓": "done", "○": "open"},
    "known": {"⚠": "stale", "●": "read"},
    "subtasks": {
        "○": "not started",
        "◉": "ticked",
        "◎": "starts automatically",
        "●": "running",
        "◌": "silent",
        "–": "skipped",
        "×": "stopped",
        "⚠": "",
        "›": "",
    },
    "dialog": {"→": "to", "←": "from", "●": "open"},
}


#: A diff line: hunk state, line number before or after the change or both, sign.
_DIFF_LINE = re.compile(r"^([▌ ]*[✓–]? *)(?:\d+ {1,7}(\d+) {3}|(\d+) {3,9}(-) |(\d+) ([-+ ]) )")
_TICK_BOX, _TICKS = re.compile(r"^( *)([✓○])(?= )"), {"✓": "done:", "○": "open:"}
_LINES = re.compile(r"\+(\d+) −(\d+)")
#: Text between at least two spaces.
_GAP = re.compile(r"(?<=\S) {3,}(?=\S)")
_COLUMN = re.compile(r"\S+(?: \S+)*")


def to_speech(text: str, pane: str = "") -> str:
    """`pane` is a pane id, "title", "status" or "dialog"."""
    words = {**_ANYWHERE, **_WORDS.get(pane, {})}
    drawn = text = _DRAWN.sub(" ", _BETWEEN_WORDS.sub(" | ", text))
    text = re.sub(r"↓ (?=\d+ new)", "", text)
    text = re.sub(r" ([●⚠✗◌✓])(\d+)", lambda found: f", {found[2]} {_COUNTED[found[1]]}", text)
    text = re.sub(r"([↑↓±])(\d+)", lambda found: f"{found[2]} {_MOVED[found[1]]}", text)
    text = re.sub(r"(?<=\+)[←↑→↓]", lambda found: _KEYS[found[0]], text)
    signs = "".join(map(re.escape, words))
    text = re.sub(rf"(?<!\S)([{signs}])(?!\S)", lambda found: words[found[1]], text)
    text = _LINES.sub(lambda found: f"{found[1]} added, {found[2]} removed", text)
    text = re.sub(r"^( *)· ", r"\1", text).replace(" · ", ", ")
    text = re.sub("[←↑→↓]", lambda found: _KEYS[found[0]], text)
    said = _SYMBOLS.sub(" ", text)
    spoken, columns = _COLUMN.findall(said), [found.start() for found in _COLUMN.finditer(drawn)]
    if said == drawn or len(spoken) != len(columns):
        return said
    row = ""
    for word, column in zip(spoken, columns, strict=True):
        row = (row and f"{row}  ").ljust(column) + word
    return row


def around_file_text(text: str) -> str:
    if found := _DIFF_LINE.match(text):
        state, number, sign = (
            found[1].strip("▌ "),
            found[2] or found[3] or found[5],
            found[4] or found[6] or "",
        )
        said = [to_speech(state, "review"), number, {"+": "added:", "-": "removed:"}.get(sign, "")]
        return f" {' '.join(word for word in said if word)} {text[found.end() :]}"
    return _LEADING.sub(lambda found: to_speech(found[0], "review"), text)


def around_model_text(text: str) -> str:
    text = _DRAWN.sub(
        " ", _BETWEEN_WORDS.sub(" | ", _TICK_BOX.sub(lambda box: box[1] + _TICKS[box[2]], text))
    )
    return text.replace("↪", " ")


#: Visible and retained announcements.
ROWS, KEPT = 4, 200
#: Maximum cells of a command in a sentence.
_SPOKEN = 60
_PHASES = {
    "planning": "Making a plan.",
    "finding": "Finding files.",
    "asking": "Asking the model.",
    "streaming": "Receiving the answer.",
    "checking": "Running the checks.",
}


def announced(before: State, now: State, keys: Keys, silent_after: int) -> Iterator[str]:
    """Yields a sentence for each change that the normal screen shows only as a sign or colour."""
    if now.turn.running and now.turn.phase != before.turn.phase:
        yield _PHASES.get(now.turn.phase, "")
    if before.turn.running and not now.turn.running:
        turn, failed = now.turn, f"The turn failed: {now.turn.error}"
        how = "Reply done" if turn.ok else "Stopped" if turn.kind == "Interrupted" else failed
        opens = f"{_waits(now)}. {keys.shown('pane.review')} opens the review" if now.review.open else ""
        yield ": ".join(filter(None, (how.rstrip("."), opens))) + "."
    elif before.review != now.review and not now.turn.running:
        gone = {point.id for point in now.review.checkpoints if point.undone}
        if gone - {point.id for point in before.review.checkpoints if point.undone}:
            yield f"Undone. {keys.shown('changes.redo')} redoes it."
        if before.review.undecided != now.review.undecided:
            yield f"{_waits(now) if now.review.open else 'There is nothing to review'}."
    asked = now.asked
    if asked is not None and asked != before.asked:
        yield f"{asked.words.rstrip('?')}. {keys.shown('session.permission')} answers."
    waited = {it.words for it in waiting_for_person(before, time.time(), silent_after)}
    for waiting in waiting_for_person(now, time.time(), silent_after):
        if waiting.words not in waited:
            mark = "" if waiting.words.endswith("?") else "."
            yield f"{waiting.words}{mark} {keys.shown(f'pane.{waiting.pane}')} opens it."
    states = {task.id: task.state for task in before.subtasks.tasks}
    for task in now.subtasks.tasks:
        if states.get(task.id, "") != task.state and task.state not in ("pending", "ready"):
            yield f"Sub-task {task.id}: {task.state}."
    known = {command.id for command in before.commands.running}
    for command in now.commands.running:
        if command.id not in known:
            yield f"Running {fit(command.command, _SPOKEN)}."
    known = {result.id for result in before.commands.results}
    for result in now.commands.results:
        if result.id not in known:
            how = "done" if result.status == 0 else f"ended with status {result.status}"
            yield f"{fit(result.command, _SPOKEN)}: {how}, {counted(len(result.output.splitlines()), 'line')}."
    if before.checks.results != now.checks.results:
        for check in now.checks.results:
            if check not in before.checks.results:
                yield f"Check {check.name} {check.state}, {check.amount}.".replace(", .", ".")
    if len(now.input.queue) > len(before.input.queue):
        verb = "waits" if len(now.input.queue) == 1 else "wait"
        yield f"{counted(len(now.input.queue), 'message')} {verb} in the queue."


def _waits(state: State) -> str:
    changes = counted(state.review.undecided, "change")
    verb = "waits" if state.review.undecided == 1 else "wait"
    return f"{changes} in {counted(len(state.review.open), 'file')} {verb}"


class Announcements(Static):
    DEFAULT_CSS = f"Announcements {{ height: {ROWS}; }}"
    SLICES: ClassVar[tuple[str, ...]] = (
        *("turn", "review", "plan", "asked", "subtasks", "commands", "checks", "input", "layout"),
    )

    def __init__(
        self, keys: Keys, pane: Callable[[str], Pane | None], silent_after: Callable[[], int]
    ) -> None:
        """`silent_after` returns the seconds without output after which a sub-task is stalled."""
        super().__init__("", markup=False)
        self._keys = keys
        self._pane, self._silent_after = pane, silent_after
        self._state: State | None = None
        self.spoken: list[str] = []

    def show(self, state: State) -> None:
        before, self._state = self._state, state
        if before is None:
            return
        if before.layout.focus != state.layout.focus:
            name, pane = state.layout.focus, self._pane(state.layout.focus)
            title = pane.title_text if pane else ""
            words = to_speech(title if isinstance(title, str) else title.plain, "title")
            self.say([words or PANES[name].title])
        self.say(announced(before, state, self._keys, self._silent_after()))

    def say(self, sentences: Iterable[str]) -> None:
        new = [to_speech(one_line(sentence)) for sentence in sentences if sentence]
        if new:
            self.spoken = [*self.spoken, *new][-KEPT:]
            self.update(plain("\n".join(self.spoken[-ROWS:])))


STYLES = Path(__file__).with_suffix(".tcss")
_SHOW_CURSOR = "\x1b[?25h"


class Character(NamedTuple):
    text: str
    style: Style | None


class PlainScreen:
    def __init__(self) -> None:
        self._rows: list[list[Character]] = []
        self.place = Offset(0, 0)
        self._seen: tuple[object, str, int | None] = (None, "", None)
        self._in_list = False

    def forget(self) -> None:
        self._rows = []

    @property
    def text(self) -> str:
        return "\n".join("".join(cell.text for cell in row).rstrip() for row in self._rows)

    def update(self, screen: Screen[object], console: Console) -> str:
        """Returns the sequence that updates the terminal and puts its cursor at the focus."""
        strips = rows_of(screen)
        width, behind = screen.size.width, screen.app.screen_stack[0]
        said = next(iter(behind.query("Announcements")), None) if screen is not behind else None
        rows = [_row(strip, _words_at(screen, y), width) for y, strip in enumerate(strips)]
        if said is not None:
            lines = list(enumerate(rows_of(said.screen)))[said.region.y :]
            rows[said.region.y :] = [_row(strip, _words_at(said.screen, y), width) for y, strip in lines]
        before = self._rows if [len(rows)] == [len(self._rows)] else [[] for _ in rows]
        self._rows = rows
        written = [
            _changed(y, old, new, console) for y, (old, new) in enumerate(zip(before, rows, strict=True))
        ]
        x, y = self.place = self._place(screen, strips)
        return "".join([*written, Control.move_to(x, y).segment.text, _SHOW_CURSOR])

    def _place(self, screen: Screen[object], strips: Sequence[Strip]) -> Offset:
        widget = screen.focused
        if widget is None:
            return Offset(0, 0)
        if isinstance(widget, Input) and (
            options := next((o for o in screen.query(OptionList) if o.display), None)
        ):
            # the highlighted option, until the next character
            seen = (screen, widget.value, options.highlighted)
            if seen != self._seen:
                self._in_list = seen[:2] == self._seen[:2]
                self._seen = seen
            if self._in_list:
                return Offset(options.region.x, options.region.y + _highlighted(options))
        if isinstance(widget, Input | TextArea):
            return widget.cursor_screen_offset
        region = widget.region
        line = 0
        if isinstance(widget, Tree):
            line = widget.cursor_line - widget.scroll_offset.y
        elif isinstance(widget, OptionList):
            line = _highlighted(widget)
        elif isinstance(widget, LineView):
            marked = (
                y
                for y in range(region.height)
                if strips[region.y + y].crop(region.x, region.x + 1).text in ("▌", "›")
            )
            line = next(marked, 0)
        return Offset(region.x, min(max(region.y + line, region.y), max(region.bottom - 1, region.y)))


def _highlighted(options: OptionList) -> int:
    chosen = options.highlighted
    return 0 if chosen is None else line_of(options, chosen) - options.scroll_offset.y


def _words_at(screen: Screen[object], y: int) -> Callable[[str], str]:
    try:
        widget: Widget = screen.get_widget_at(1, y)[0]
    except NoWidget:
        return to_speech
    match widget:
        case TextArea() | Input():
            return str
        case DiffView():
            return around_file_text
        case MessageText():
            return around_model_text
        case TabLine():
            return partial(to_speech, pane="title")
    panes = [node.ID for node in widget.ancestors_with_self if isinstance(node, Pane)]
    return partial(to_speech, pane=panes[0] if panes else "dialog")


def _row(strip: Strip, words: Callable[[str], str], width: int) -> list[Character]:
    cells = [Character(char, segment.style) for segment in strip for char in segment.text]
    text = "".join(cell.text for cell in cells)
    said = words(text) if words is around_file_text or not text.isascii() else text
    if words is not around_file_text and cell_len(said.rstrip()) > width:
        said = _GAP.sub("  ", said)
    if said != text:
        styles = [cell.style for cell in cells] or [None]
        parts = SequenceMatcher(None, text, said, autojunk=False).get_opcodes()
        cells = [
            Character(said[at], styles[min(begin + at - first, max(end - 1, begin), len(styles) - 1)])
            for _, begin, end, first, last in parts
            for at in range(first, last)
        ]
        over = cell_len(said) - width
        while over > 0 and cells:
            over -= cell_len(cells.pop().text)
        style = cells[-1].style if cells else None
        cells += [Character(" ", style)] * -over
    return cells


def _changed(y: int, old: Sequence[Character], new: Sequence[Character], console: Console) -> str:
    if old == new:
        return ""
    pairs = list(zip(old, new, strict=False))
    same = next((at for at, (was, now) in enumerate(pairs) if was != now), len(pairs))
    ends = 0
    if len(old) == len(new):  # an equal end keeps its positions
        backwards = zip(reversed(old[same:]), reversed(new[same:]), strict=True)
        ends = next((at for at, (was, now) in enumerate(backwards) if was != now), 0)
    written = new[same : len(new) - ends]
    if any(not char.text.isascii() for char in new):  # cells and characters differ
        same, written = 0, new
    segments = [Segment(cell.text, cell.style) for cell in written]
    return Control.move_to(same, y).segment.text + Strip(segments).simplify().render(console)
