"""Completion of the word at the prompt's cursor: files after `@`, commands after `/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content
from textual.widgets import OptionList

from tui_agent.store.state import State
from tui_agent.ui.actions import slash_commands
from tui_agent.ui.keys.keymap import Keys
from tui_agent.ui.safe_text import one_line, parts
from tui_agent.ui.widgets.line_view import column

if TYPE_CHECKING:
    from tui_agent.session.session import Session


class CompletionList(OptionList, can_focus=False):
    """Completion list controlled by the prompt's keys; never has focus."""

    ROWS = 8

    def __init__(self, session: Session) -> None:
        super().__init__(id="picker", markup=False, compact=True)
        self._session = session
        self.sign = ""
        self._values: list[str] = []
        self.display = False

    def show(self, sign: str, rows: Sequence[tuple[str, Content]]) -> None:
        """Show these values; hidden if empty."""
        self.sign = sign
        self._values = [value for value, _ in rows]
        self.display = bool(rows)
        self.set_options([words for _, words in rows])
        if rows:
            self.highlighted = 0

    def offer(self, sign: str, query: str) -> None:
        """Show completions of the word at the cursor; none if `sign` is ""."""
        match sign:
            case "@":
                paths = self._session.files.suggest(query, self.ROWS)
                rows = [file_row(path, self._session.state) for path in paths]
                for mention, name in self._session.mcp.suggest(query, self.ROWS):
                    rows.append((mention, parts(one_line(mention), (f"  {one_line(name)}", "$muted"))))
                self.show("@", rows)
            case "/":
                self._session.extensions.start()
                own = extension_rows(query, self._session.extensions.names())
                self.show("/", [*command_rows(query, getattr(self.app, "keys", None)), *own])
            case _:
                self.close()

    def move(self, meant: str) -> bool:
        """Whether a list key (`offers` in keys.toml) moved the cursor or closed the list."""
        match meant:
            case "up":
                self.action_cursor_up()
            case "down":
                self.action_cursor_down()
            case "close":
                self.close()
            case _:
                return False
        return True

    def close(self) -> None:
        self.show("", ())

    @property
    def chosen(self) -> str:
        """The value at the cursor, or ""."""
        at = self.highlighted
        return self._values[at] if at is not None and at < len(self._values) else ""


def file_row(path: str, state: State) -> tuple[str, Content]:
    """A path with its state: open, unsaved, changed, pending, known, stale."""
    marks: list[str | tuple[str, str]] = []
    buffer, known = state.buffers.get(path), state.known.files.get(path)
    if buffer is not None:
        marks.append(("  ● unsaved", "$warning") if buffer.unsaved else ("  ● open", "$accent"))
    if any(change.path == path for change in state.review.open):
        marks.append(("  + proposed", "$added"))
    if git := state.workspace.marks.get(path, "").strip():
        marks.append((f"  {git} changed", "$stale"))
    if known is not None:
        marks.append(("  ⚠ stale", "$stale") if known.stale else ("  ◆ known", "$muted"))
    return path, parts(one_line(path), *marks)


def command_rows(query: str, keys: Keys | None) -> list[tuple[str, Content]]:
    found = [
        (name, keys.shown(action.id) if keys else "", action.words) for name, action in slash_commands(query)
    ]
    width = max((len(name) for name, _, _ in found), default=0)
    of_keys = max((cell_len(key) for _, key, _ in found), default=0)
    return [
        (
            name,
            parts((f"/{name:<{width}}  ", "$accent"), (f"{column(key, of_keys)}  ", "$muted"), words),
        )
        for name, key, words in found
    ]


def extension_rows(query: str, names: Mapping[str, tuple[str, str]]) -> list[tuple[str, Content]]:
    """Commands, skills and prompts whose name holds the query, those that begin with it first, with their origin."""
    found = [name for name in names if query.lower() in name.lower()]
    found.sort(key=lambda name: not name.lower().startswith(query.lower()))
    return [
        (name, parts((f"/{one_line(name)}  ", "$accent"), (f"{origin}  ", "$muted"), one_line(words)))
        for name in found
        for words, origin in (names[name],)
    ]
