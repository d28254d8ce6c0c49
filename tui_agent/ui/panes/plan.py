"""The plan pane: files required by the request, attempted patterns, and the question if none matched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.widgets import Input

from tui_agent.files.numbers import whole_number
from tui_agent.session.session import Session
from tui_agent.store.state import ActionSlice, PlanSlice, State
from tui_agent.ui.panes.plan_rows import plan_rows
from tui_agent.ui.safe_text import label
from tui_agent.ui.widgets.line_view import Line, LineView, Piece
from tui_agent.ui.widgets.pane import Pane
from tui_agent.ui.widgets.rows import Row, Rows

_EMPTY = "Files that a request needs, and how they were found."
_PATH, _PATTERNS = "or type its path", "patterns, best first"
#: Separator of editable patterns.
_BETWEEN = " | "


class PlanPane(Pane):
    """Plan rows; during a question also its choices and a path input."""

    ID = "plan"
    SLICES: ClassVar[tuple[str, ...]] = ("plan", "turn")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._plan = PlanSlice()
        self._waiting_for = ""
        self._drawn: object = None
        self._unfolded: set[int] = set()
        #: The input's purpose (`path` or `patterns`) and its action; empty for the open question's path.
        self._typing = self._typing_for = ""

    @cached_property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        return {
            "choose": self._choose,
            "let_go": self._let_go,
            "retry": self._retry,
            "edit": self._edit,
            "other": self._name_other,
            "open": self._open,
        }

    def compose(self) -> ComposeResult:
        yield Rows()
        yield Input(placeholder=_PATH, compact=True)

    def show(self, state: State) -> None:
        drawn = (state.plan, state.turn.waiting_for)
        if self._drawn is not None and drawn == self._drawn:
            return
        if state.plan.turn != self._plan.turn:
            self._unfolded = set()
        asked = state.turn.waiting_for and state.turn.waiting_for != self._waiting_for
        self._drawn, (self._plan, self._waiting_for) = drawn, drawn
        self._draw()
        if asked:
            self._show_question()

    def _choose(self) -> None:
        """Activate the current row: answer, open or unfold."""
        kind, _, rest = self._rows.cursor.partition(":")
        index, _, path = rest.partition(":")
        match kind:
            case "choice":
                self._answer(path)
            case "let_go":
                self._answer("")
            case "all":
                self._take_all()
            case "other":
                self.act(self.session.chat.decide(self._plan.actions[whole_number(index)].action.name, path))
            case "file" | "left":
                self.act(self.session.files.open(path), changes=("buffers",))
            case "more" | "action" if index:
                self._unfolded ^= {whole_number(index)}
                self._draw()

    def _let_go(self) -> None:
        if self._waiting_for:
            self._answer("")
        elif (action := self._under_cursor()) is not None:
            self.act(self.session.chat.decide(action.action.name))

    def _retry(self) -> None:
        if (action := self._under_cursor()) is not None:
            self.act(self.session.chat.decide(action.action.name, "", action.action.patterns))

    def _edit(self) -> None:
        if (action := self._under_cursor()) is not None:
            self._type("patterns", action, _BETWEEN.join(action.action.patterns))

    def _name_other(self) -> None:
        if (action := self._under_cursor()) is not None:
            self._type("path", action, "")

    def _open(self) -> None:
        kind, _, rest = self._rows.cursor.partition(":")
        index, _, path = rest.partition(":")
        if kind == "action":
            path = next(iter(self._plan.actions[whole_number(index)].loaded), "")
        if path:
            self.act(self.session.files.open(path), changes=("buffers",))

    def on_key(self, event: events.Key) -> None:
        """A digit answers the open question; 0 skips the file."""
        action = self._asking()
        if action is None or not event.is_printable or not (event.character or "").isdecimal():
            return
        if self._input.has_focus:
            return
        number = whole_number(event.character)
        if number <= min(len(action.nearest), 9):
            event.stop()
            if number:
                self._answer(action.nearest[number - 1])
            elif action.several:
                self._take_all()
            else:
                self._answer("")

    def on_line_view_chosen(self, event: LineView.Chosen) -> None:
        event.stop()
        self._choose()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        typed, kind, name = event.value.strip(), self._typing, self._typing_for or self._waiting_for
        self._stop_typing()
        if not typed or not name:
            return
        if kind == "patterns":
            patterns = [part.strip() for part in typed.split(_BETWEEN.strip()) if part.strip()]
            self.act(self.session.chat.decide(name, "", patterns))
        elif name == self._waiting_for:
            self._answer(typed)
        else:
            self.act(self.session.chat.decide(name, typed))
        self._rows.focus()

    def on_input_blurred(self, event: Input.Blurred) -> None:
        event.stop()
        self._stop_typing()

    @property
    def _rows(self) -> Rows:
        return self.query_one(Rows)

    @property
    def _input(self) -> Input:
        return self.query_one(Input)

    def _asking(self) -> ActionSlice | None:
        return next((a for a in self._plan.actions if a.action.name == self._waiting_for), None)

    @property
    def _asks_for_path(self) -> bool:
        action = self._asking()
        return action is not None and not action.question

    def _under_cursor(self) -> ActionSlice | None:
        index = self._rows.cursor.split(":")[1:2]
        if index and whole_number(index[0], -1) in range(len(self._plan.actions)):
            return self._plan.actions[whole_number(index[0])]
        return self._asking()

    def _type(self, kind: str, action: ActionSlice, value: str) -> None:
        self._typing, self._typing_for = kind, action.action.name
        self._input.placeholder = _PATTERNS if kind == "patterns" else _PATH
        self._input.value = value
        self._input.display = True
        self._input.focus()

    def _stop_typing(self) -> None:
        if self._typing:
            self._typing = self._typing_for = ""
            self._input.value, self._input.placeholder = "", _PATH
        self._input.display = self._asks_for_path

    def _take_all(self) -> None:
        if self._waiting_for:
            self.act(self.session.chat.decide(self._waiting_for, "", (), True))
            self._rows.focus()

    def _answer(self, path: str) -> None:
        if not self._waiting_for:
            return
        self.act(self.session.chat.answer(self._waiting_for, path))
        self._rows.focus()

    def _draw(self) -> None:
        plan = self._plan
        done = sum(action.state == "loaded" for action in plan.actions)
        count = f" {done}/{len(plan.actions)}" if plan.actions else ""
        count += " ?" if self._waiting_for else ""
        self.title_text = label(f"{self.TITLE}{count}")
        rows = plan_rows(plan, self._waiting_for, self._unfolded)
        empty = Row("", Line((Piece(_EMPTY, "muted"),)), wraps=True)
        self._rows.set_rows(rows or [empty])
        self._input.display = bool(self._typing) or self._asks_for_path

    def _show_question(self) -> None:
        if not self._typing:
            self._input.value = ""
        keys = [row.key for row in self._rows.rows if row.key.startswith(("choice:", "let_go:"))]
        if keys:
            self._rows.set_rows(self._rows.rows, cursor=keys[0])
