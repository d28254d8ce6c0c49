"""The plan: its rows, its pane and its block in the chat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from tui_agent.answers.plans import DirectoryAction, FileAction
from tui_agent.files.numbers import whole_number
from tui_agent.planning.chain import OTHER_CASE, Attempt
from tui_agent.session.session import Session
from tui_agent.store.state import ActionSlice, PlanSlice, State
from tui_agent.ui.keys.keymap import view_bindings
from tui_agent.ui.safe_text import counted, label, parts
from tui_agent.ui.widgets.line_view import ACTIONS, ATTEMPTS, UNTRIED, Line, LineView, Piece, Row, Rows, note
from tui_agent.ui.widgets.pane import Pane, open_file

#: Files up to which lists are unfolded.
_SHOWN = 5
_OTHERS_SHOWN = 3
_CHOICES = {"mask": "the file with masked secrets", "send": "the complete file"}
_INDENT = Piece("  ")
_DEEPER = Piece("    ")


def plan_rows(plan: PlanSlice, waiting_for: str, unfolded: Collection[int]) -> list[Row]:
    """Keys: `action:I`, `file:I:PATH`, `left:I:PATH`, `choice:I:PATH`, `let_go:I`, `all:I`, `more:I`,
    `other:I:PATH`.
    """
    rows = []
    for index, action in enumerate(plan.actions):
        rows += _action(index, action, action.action.name == waiting_for, index in unfolded)
    for folder in plan.listed:
        outcome = folder.error or ("1 entry" if folder.entries == 1 else f"{folder.entries:,} entries")
        rows.append(_directory(folder.directory, outcome, failed=bool(folder.error)))
    rows += [_directory(directory) for directory in plan.directories]
    rows += [note(f"! {fault}", "warning", 2) for fault in plan.faults]
    return rows


def _action(index: int, action: ActionSlice, asking: bool, unfolded: bool) -> Iterator[Row]:
    ranks = [attempt.index for attempt in action.attempts if attempt.by == action.action.by]
    rank = f"{max(ranks, default=0)}/{len(action.action.patterns)}"
    files = f"{len(action.loaded)} files" if len(action.loaded) > 1 else ""
    rights = [f"{words} · {rank}" for words in (action.action.reason, files) if words]
    name = Piece(action.action.name, "strong", "end")
    right = tuple(Piece(text, "muted") for text in (*rights, rank))
    yield Row(f"action:{index}", Line((ACTIONS[action.state], Piece(" "), name), right))
    marked = action.action.by == "model"  # the built-in planner makes all its patterns
    yield from (_attempt(attempt, marked) for attempt in action.earlier)
    tried = {attempt.step: attempt for attempt in action.attempts}
    count: Counter[str] = Counter()
    for author, pattern in action.action.steps:
        count[author] += 1
        step = (author, count[author])
        if step in tried:
            yield _attempt(tried[step], marked)
        else:
            yield Row("", Line((_INDENT, UNTRIED, Piece(" "), Piece(pattern, "faint", "start"))))
    yield from _files(index, action, unfolded)
    broad = next((attempt for attempt in action.attempts if attempt.outcome == "too_broad"), None)
    none = f"{broad.matches} files match; narrow the pattern" if broad else "not found"
    words, ink = {
        "skipped": (f"{none}; skipped", "muted"),
        "create": (none if broad else "not found; it may be created", "added"),
        "failed": (none, "failed"),
        "asking": ("" if action.several or action.question else none, "warning"),
    }.get(action.state, ("", ""))
    if words:
        yield note(f"  {words}", ink, 2)
    if not asking:
        return
    asked, key, none = "Which file is meant?", "let_go", "continue without it"
    if action.question:  # about secrets in the file
        asked, none = action.question, "none"
    elif action.several:
        asked, key, none = "Several files have this name. Which one is meant?", "all", "all of them"
    yield note(f"  {asked}", "warning", 2)
    for number, choice in enumerate(action.nearest[:9], 1):
        shown = Piece(_CHOICES.get(choice, choice)) if action.question else Piece(choice, "", "start")
        yield Row(f"choice:{index}:{choice}", Line((Piece(f"  {number} ", "accent"), shown)))
    yield Row(f"{key}:{index}", Line((Piece("  0 ", "accent"), Piece(none))))


def _attempt(attempt: Attempt, marked: bool) -> Row:
    mark = ATTEMPTS[attempt.outcome]
    ink = "" if attempt.outcome in ("hit", "looking") else "muted"
    pattern = Piece(attempt.pattern, ink, "start")
    words = _outcome(attempt)
    if attempt.by == "program" and marked:
        words = (*(f"built in · {text}" for text in words), words[-1])
    rights = tuple(Piece(text, "muted") for text in words)
    return Row("", Line((_INDENT, mark, Piece(" "), pattern), rights))


def _outcome(attempt: Attempt) -> tuple[str, ...]:
    time = duration(attempt.ms)
    match attempt.outcome:
        case "looking":
            return ("looking …",)
        case "hit":
            matches = f"{attempt.matches} matches · " if attempt.matches > 1 else ""
            matches += "other case · " if attempt.why == OTHER_CASE else ""
            lines = f"{counted(attempt.lines, 'line')} · " if attempt.lines else ""
            return f"{matches}{lines}{time}", f"{matches}{time}", time
        case "miss":
            return f"no match · {time}", time
        case "too_broad":
            return (
                f"{attempt.matches} files match; narrow it · {time}",
                f"{attempt.matches} matches",
                f"{attempt.matches}",
            )
        case "timeout":
            return f"timed out · {time}", time
        case "invalid":
            return (*([attempt.why] if attempt.why else []), "not a pattern", "invalid")


def _files(index: int, action: ActionSlice, unfolded: bool) -> Iterator[Row]:
    listed = [(f"file:{index}:{path}", path, "", "") for path in action.loaded]
    hits = [attempt.pattern for attempt in action.attempts if attempt.outcome == "hit"]
    if listed == [(f"file:{index}:{pattern}", pattern, "", "") for pattern in hits]:
        listed = []
    listed += [(f"left:{index}:{path}", path, "muted", "left out") for path in action.left_out]
    shown = len(listed) if unfolded or len(listed) <= _SHOWN + 1 else _SHOWN
    for key, path, ink, words in listed[:shown]:
        rights = (Piece(words, "muted"),) if words else ()
        yield Row(key, Line((Piece("  – " if words else "  → ", "muted"), Piece(path, ink, "start")), rights))
    if shown < len(listed):
        yield Row(f"more:{index}", Line((_DEEPER, Piece(f"… {len(listed) - shown} more", "muted"))))
    others = [path for path in action.others if path not in action.loaded]
    for path in others if unfolded else others[:_OTHERS_SHOWN]:
        left = (Piece("  · ", "faint"), Piece(path, "muted", "start"))
        yield Row(f"other:{index}:{path}", Line(left, (Piece("or this", "faint"),)))


def _directory(directory: DirectoryAction, outcome: str = "", *, failed: bool = False) -> Row:
    below = "and below" if directory.recursive else ""
    detail = " · ".join(part for part in (directory.filter, below, outcome) if part)
    path = Piece(directory.path.rstrip("/") + "/", "", "start")
    ink = "warning" if failed else "muted"
    return Row("", Line((Piece("▸ ", "muted"), path), (Piece(detail, ink),) if detail else ()))


def duration(ms: float) -> str:
    if ms >= 1000:
        return f"{ms / 1000:.1f}s"
    return f"{ms:.0f}ms" if ms >= 1 else "<1ms"


_EMPTY = "Files that a request needs, and how they were found."
_PATH, _PATTERNS = "or type its path", "patterns, best first"
_BETWEEN = " | "


class PlanPane(Pane):
    ID = "plan"
    SLICES: ClassVar[tuple[str, ...]] = ("plan", "turn")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._plan = PlanSlice()
        self._waiting_for = ""
        self._drawn: object = None
        self._unfolded: set[int] = set()
        #: `path` or `patterns`, and the action; empty for the open question's path.
        self._typing = self._typing_for = ""

    @cached_property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        decide = self.session.chat.decide
        return {
            "choose": self._choose,
            "let_go": self._at_cursor(
                lambda it: self._answer("") if self._waiting_for else self.act(decide(it.name))
            ),
            "retry": self._at_cursor(lambda it: self.act(decide(it.name, "", it.patterns))),
            "edit": self._at_cursor(lambda it: self._type("patterns", it.name, _BETWEEN.join(it.patterns))),
            "other": self._at_cursor(lambda it: self._type("path", it.name, "")),
            "open": self._open,
        }

    def compose(self) -> ComposeResult:
        yield Rows()
        yield Input(placeholder=_PATH, compact=True)

    def show(self, state: State) -> None:
        drawn = (state.plan, state.turn.waiting_for)
        if drawn == self._drawn:
            return
        if state.plan.turn != self._plan.turn:
            self._unfolded = set()
        asked = state.turn.waiting_for and state.turn.waiting_for != self._waiting_for
        self._drawn, (self._plan, self._waiting_for) = drawn, drawn
        self._draw()
        if asked:
            if not self._typing:
                self._input.value = ""
            keys = [row.key for row in self._rows.rows if row.key.startswith(("choice:", "let_go:"))]
            if keys:
                self._rows.set_rows(self._rows.rows, cursor=keys[0])

    def _row_at_cursor(self) -> tuple[str, int, str]:
        """Kind, action (-1: none) and path of the row at the cursor."""
        kind, _, rest = self._rows.cursor.partition(":")
        index, _, path = rest.partition(":")
        return kind, whole_number(index, -1), path

    def _choose(self) -> None:
        kind, index, path = self._row_at_cursor()
        match kind:
            case "choice":
                self._answer(path)
            case "let_go":
                self._answer("")
            case "all":
                self._take_all()
            case "other":
                self.act(self.session.chat.decide(self._plan.actions[index].action.name, path))
            case "file" | "left":
                open_file(self, path)
            case "more" | "action":
                self._unfolded ^= {index}
                self._draw()

    def _open(self) -> None:
        kind, index, path = self._row_at_cursor()
        if kind == "action":
            path = next(iter(self._plan.actions[index].loaded), "")
        open_file(self, path)

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

    def _at_cursor(self, call: Callable[[FileAction], object]) -> Callable[[], None]:
        """Without an action at the cursor, the one that asks."""

        def do() -> None:
            (_, index, _), actions = self._row_at_cursor(), self._plan.actions
            action = actions[index] if 0 <= index < len(actions) else self._asking()
            if action is not None:
                call(action.action)

        return do

    def _type(self, kind: str, name: str, value: str) -> None:
        self._typing, self._typing_for = kind, name
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
        if self._waiting_for:
            self.act(self.session.chat.answer(self._waiting_for, path))
            self._rows.focus()

    def _draw(self) -> None:
        plan = self._plan
        done = sum(action.state == "loaded" for action in plan.actions)
        count = f" {done}/{len(plan.actions)}" if plan.actions else ""
        count += " ?" if self._waiting_for else ""
        self.title_text = label(f"{self.TITLE}{count}")
        self._rows.set_rows(plan_rows(plan, self._waiting_for, self._unfolded) or [note(_EMPTY)])
        self._input.display = bool(self._typing) or self._asks_for_path


#: Maximum visible lines; the newest are shown.
MOST = 8
_LOOKS = frozenset({"waiting", "looking", "asking"})
_ANSWERS = ("choice:", "let_go:", "all:")


class PlanBlock(Static, can_focus=True):
    """Open during a search unless the plan pane is visible."""

    BINDINGS = view_bindings("block")

    def __init__(self) -> None:
        super().__init__("", classes="plan", markup=False)
        self._plan = PlanSlice()
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
    def _is_open(self) -> bool:
        if self._unfolded is not None:
            return self._unfolded
        # Another update may arrive during the screen's unmounting.
        workspace = getattr(self.screen, "workspace", None) if self.is_attached else None
        pane = workspace.pane("plan") if workspace is not None else None
        looks = any(action.state in _LOOKS for action in self._plan.actions)
        return looks and not (pane is not None and pane.display and pane.region.height > 1)

    def _draw(self) -> None:
        self._drawn_open = self._is_open
        lines = [parts(("▾ " if self._drawn_open else "▸ ", "$muted"), (in_short(self._plan), "$muted"))]
        if self._drawn_open:
            rows = [row for row in plan_rows(self._plan, "", ()) if not row.key.startswith(_ANSWERS)]
            shown = [_content(line) for row in rows if isinstance(line := row.line, Line)]
            lines += shown if self._unfolded else shown[-MOST:]
        self.update(Content("\n").join(lines))


def in_short(plan: PlanSlice) -> str:
    """Returns words such as `2 of 3 files found · 7 patterns tried · not found: Schema`."""
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
