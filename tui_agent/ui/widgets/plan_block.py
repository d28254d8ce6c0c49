"""The plan below its message: attempts while it runs, then one line."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from tui_agent.store.state import PlanSlice
from tui_agent.ui.keys.views import view_bindings
from tui_agent.ui.panes.plan_rows import plan_rows
from tui_agent.ui.safe_text import counted, parts
from tui_agent.ui.widgets.line_view import Line

#: Maximum number of visible lines, the newest.
MOST = 8
_LOOKS = frozenset({"waiting", "looking", "asking"})
#: Rows that belong only to the plan pane.
_ANSWERS = ("choice:", "let_go:", "all:")


class PlanBlock(Static, can_focus=True):
    """Expanded during a search unless the plan pane is visible, otherwise folded. Enter or a click
    toggles."""

    BINDINGS = view_bindings("block")

    def __init__(self) -> None:
        super().__init__("", classes="plan", markup=False)
        self._plan = PlanSlice()
        #: The user's choice, or `None`.
        self._unfolded: bool | None = None
        self._drawn_open = False

    def on_mount(self) -> None:
        self.screen.screen_layout_refresh_signal.subscribe(self, self._laid_out)

    def _laid_out(self, _: object) -> None:
        if self._plan.actions and self._is_open != self._drawn_open:
            self._draw()

    def show(self, plan: PlanSlice) -> None:
        if plan != self._plan:
            self._plan = plan
            self._draw()

    def on_click(self) -> None:
        self.action_press()

    def action_press(self) -> None:
        self._unfolded = not self._is_open
        self._draw()

    @property
    def _looks(self) -> bool:
        return any(action.state in _LOOKS for action in self._plan.actions)

    @property
    def _is_open(self) -> bool:
        if self._unfolded is not None:
            return self._unfolded
        # One more update may arrive during the unmounting of the screen.
        workspace = getattr(self.screen, "workspace", None) if self.is_attached else None
        pane = workspace.pane("plan") if workspace is not None else None
        return self._looks and not (pane is not None and pane.display and pane.region.height > 1)

    def _draw(self) -> None:
        self._drawn_open = self._is_open
        lines = [parts(("▾ " if self._drawn_open else "▸ ", "$muted"), (in_short(self._plan), "$muted"))]
        if self._drawn_open:
            rows = [row for row in plan_rows(self._plan, "", ()) if not row.key.startswith(_ANSWERS)]
            shown = [_content(line) for row in rows if isinstance(line := row.line, Line)]
            lines += shown if self._unfolded else shown[-MOST:]
        self.update(Content("\n").join(lines))


def in_short(plan: PlanSlice) -> str:
    """Returns a summary such as `2 of 3 files found · 7 patterns tried · not found: Schema`."""
    actions = plan.actions
    found = sum(action.state == "loaded" for action in actions)
    tried = sum(len(action.attempts) for action in actions)
    lost = [action.action.name for action in actions if action.state in ("skipped", "failed")]
    facts = [f"{found} of {counted(len(actions), 'file')} found", f"{counted(tried, 'pattern')} tried"]
    return " · ".join((*facts, *([f"not found: {', '.join(lost)}"] if lost else ())))


def _content(line: Line) -> Content:
    pieces = [*line.left, *([line.right[-1]._replace(text=f"  {line.right[-1].text}")] if line.right else [])]
    return parts(
        "  ",
        *(
            (piece.text, f"${piece.ink}" if piece.ink != "strong" else "bold") if piece.ink else piece.text
            for piece in pieces
        ),
    )
