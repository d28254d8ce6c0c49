"""A command in the chat: its outcome, and its output with links to files."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace
from textual import events
from textual.content import Content, Span
from textual.message import Message
from textual.style import Style
from textual.widgets import Static

from tui_agent.files.lazy_regex import late
from tui_agent.files.numbers import whole_number
from tui_agent.store.commands import MARKS, CheckLook, CheckResult, CommandResult, Place
from tui_agent.ui.host import keys_of
from tui_agent.ui.keys.keymap import view_bindings
from tui_agent.ui.safe_text import CHECK_INKS, coloured, label, parts
from tui_agent.ui.widgets.error_guard import GuardedText, or_broken

#: A path and a line as compilers and test runners print them: `src/a.py:12`, `File "src/a.py", line 12`,
#: `a.ts(12,3)`. Bounded, since it is tried at each word.
_PLACE = late(
    r"(?<![\w/.@+-])(?P<path>(?:\.{1,2}/|/)?[\w.@+-]{1,255}(?:/[\w.@+ -]{0,100}[\w.@+-]){0,20}\.\w{1,20})"
    r"(?:\", line |:|\()(?P<line>[1-9]\d{0,6})\b"
)
_LINK = "place"
#: Output lines of a folded command by the user, and characters per line.
INLINE, LONGEST = 8, 300
_ENDINGS = {
    "stopped": "stopped",
    "time-out": "stopped: it exceeded its time limit",
    "memory": "ended: it exceeded its memory limit",
    "processes": "ended: it exceeded its process limit",
    "keyboard": "ended: it waited for keyboard input",
    "output": "ended: it printed more than 1 GB",
    "interrupted": "interrupted when tui-agent ended",
    "proposal": "stopped: the proposed changes are different now",
    "place": "not run: the place could not be reached, or was lost",
}
_APART = {
    "landlock": "on a copy (Landlock)",
    "sandbox-exec": "on a copy",
    "bubblewrap": "bubblewrap",
    "none": "in the real folder",
}


class PlacePressed(Message):
    """Request to open a file at a line; the path is as printed."""

    def __init__(self, path: str, line: int) -> None:
        super().__init__()
        self.path, self.line = path, line


class PlaceLink(Static, can_focus=True):
    BINDINGS = view_bindings("block")

    def __init__(self, place: Place, said: str = "") -> None:
        words = parts(label(f"    {place.path}:{place.line}"), (f"  {said}" if said else "", "$text"))
        super().__init__(words, classes="place", markup=False)
        self._place = place

    def on_click(self) -> None:
        self.action_press()

    def action_press(self) -> None:
        self.post_message(PlacePressed(self._place.path, self._place.line))


class FoldLine(GuardedText, can_focus=True):
    BINDINGS = view_bindings("block")

    def __init__(self) -> None:
        super().__init__(classes="command", markup=False)
        self._unfolded = False

    def on_mount(self) -> None:
        self._draw()

    def on_click(self, event: events.Click) -> None:
        place = event.style.meta.get(_LINK)
        if place is None:
            self.action_press()
        else:
            self.post_message(PlacePressed(*place))

    def action_press(self) -> None:
        self._unfolded = not self._unfolded
        self._draw()

    def _draw(self) -> None:
        self.update(or_broken(self._content))

    def _content(self) -> Content:
        raise NotImplementedError


class CommandOutput(FoldLine):
    """Folded, a user's command shows its first output lines, or the last on failure."""

    BINDINGS = view_bindings("output")

    def __init__(self, result: CommandResult, check: CheckResult | None = None) -> None:
        super().__init__()
        self._result = result
        self._check = check
        self._opened = 0

    def _draw(self) -> None:
        self.set_class(self._check is not None and not self._unfolded, "-one-line")
        super()._draw()

    def action_open_next(self) -> None:
        if found := list(dict.fromkeys(places(self._result.output))):
            self.post_message(PlacePressed(*found[self._opened % len(found)]))
            self._opened += 1

    def _content(self) -> Content:
        result = self._result
        look: CheckLook = "passed" if result.ok else "failed"
        look = self._check.state if self._check and self._check.state != "stopped" else look
        mark, colour = f"{MARKS[look]} ", CHECK_INKS[look]
        fold = "▾ " if self._unfolded else "▸ " if result.output or result.report else "  "
        check = self._check
        words = f"{check.name} {check.amount}  " if check else f"{result.command}  "
        told = outcome(replace(result, changed=()) if check else result)
        facts = [fact for fact in told if not check or fact not in words]
        facts += [result.command] if check else []
        line = parts((fold, "$muted"), (mark, colour), words, (" · ".join(facts), "$muted"))
        if not self._unfolded and (result.by != "person" or not result.output.strip()):
            return line
        text = coloured((result.coloured or result.output).rstrip("\n"))
        if not self._unfolded:
            lines = text.split("\n", allow_blank=True)
            seen = [_with_both_ends(one) for one in (lines[:INLINE] if result.ok else lines[-INLINE:])]
            if more := _lines(result) - len(seen):
                where = "" if result.ok else " above"
                key = keys_of(self).shown("chat.blocks")
                walks = f" · {key} walks to them" if key else ""
                seen.append(parts((f"… {more:,} more{where}{walks}", "$muted")))
            return Content("\n").join([line, *seen])
        key = keys_of(self).shown("output.open_next")
        hint = (
            [parts((f"  {key} opens the next place", "$muted"))] if key and any(places(result.output)) else []
        )
        lacked = [parts((f"  view: {one}", "$muted")) for one in result.report]
        links = [
            Span(
                found.start("path"),
                found.end("line"),
                Style.from_meta({_LINK: (found["path"], whole_number(found["line"]))}),
            )
            for found in _PLACE.finditer(text.plain)
        ]
        underlined = [Span(span.start, span.end, "underline") for span in links]
        return Content("\n").join([line, *hint, *lacked, text.add_spans([*underlined, *links])])


def _with_both_ends(line: Content) -> Content:
    """Shortens the middle of a long line: an error is often at its end."""
    left = len(line) - LONGEST
    if left <= 0:
        return line
    cut = parts((f" [{left:,} characters left out] ", "$muted"))
    return Content("").join([line[: LONGEST // 2], cut, line[len(line) - LONGEST // 2 :]])


def places(text: str) -> Iterable[tuple[str, int]]:
    return ((found["path"], whole_number(found["line"])) for found in _PLACE.finditer(text))


def _lines(result: CommandResult) -> int:
    text = result.output.rstrip("\n")
    return len(text.split("\n")) - bool(result.cut) + result.cut if text else 0


def outcome(result: CommandResult) -> Iterable[str]:
    """Yields `exit 1`, `3.2 s`, `12 lines`, `2 files changed`."""
    lines, files = _lines(result), len(result.changed)
    found = (
        _ENDINGS.get(result.how, "" if result.ok and result.by != "person" else result.ending),
        f"{result.seconds:.1f} s",
        f"{lines} line{'' if lines == 1 else 's'}" if lines else "",
        f"{files} file{'' if files == 1 else 's'} changed, discarded" if files else "",
        f"background processes ended: {', '.join(result.left)}" if result.left else "",
        f"in {result.place}" if result.place else _APART.get(result.isolated, ""),
        result.cause if result.how == "exit" else "",
    )
    return (words for words in found if words)
