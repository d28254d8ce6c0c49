"""The checks of this folder: a tick each, tried on the folder as it is by key, their commands edited in place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import ClassVar

from msgspec.structs import replace
from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input, Static

from tui_agent.errors import TuiAgentError
from tui_agent.session.first_runs import FirstResult
from tui_agent.session.session import Session
from tui_agent.settings.schema import CheckCommand
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.editor.kept_text import KeptInput
from tui_agent.ui.sink import label, plain
from tui_agent.ui.widgets.lines import Line, Lined, Piece
from tui_agent.ui.widgets.rows import Row, Rows

#: Letters of a name that a check gets from its command.
MOST_OF_NAME = 40
_INKS = {"passed": "done", "failed": "warning", "missing": "muted", "ended": "warning"}
_KEYS = "Space tick  a all  e edit  n new  s slow  t try all on the folder as it is"


class ChecksDialog(Dialog[None], inherit_bindings=False):
    """Nothing of the project runs before the key that tries the checks."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False, priority=True),
        Binding("f2,ctrl+enter,ctrl+g", "keep", show=False, priority=True),
        Binding("enter", "keep", show=False),
        Binding("space", "tick", show=False),
        Binding("a", "tick_all", show=False),
        Binding("e", "edit", show=False),
        Binding("n", "new", show=False),
        Binding("s", "slow", show=False),
        Binding("t", "attempt", show=False),
    ]
    DEFAULT_CSS = """
    ChecksDialog {
        align: center top; background: $background 40%;
        & > Vertical {
            width: 110; max-width: 96%; height: auto; max-height: 80%;
            margin-top: 2; background: $overlay; padding: 1 2;
        }
        & .title { height: 1; color: $accent; text-style: bold; }
        & Rows { height: auto; min-height: 3; max-height: 16; margin: 1 0; }
        & KeptInput { border: none; height: 1; padding: 0; margin: 0 0 1 0; background: $background; display: none; }
        & .said { height: auto; max-height: 4; color: $muted; }
        &.-writing KeptInput { display: block; }
    }
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._checks: dict[str, CheckCommand] = {}
        self._ticked: set[str] = set()
        #: What the checks found, by their commands; the command that is tried now, and the name that is edited.
        self._attempts: dict[str, FirstResult] = {}
        self._trying = self._editing = ""

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static(
                label(f"Checks in {self._session.workspace.root.name}"), classes="title", markup=False
            )
            yield Rows()
            yield KeptInput(compact=True, select_on_focus=False)
            yield Static("", classes="said", markup=False)

    def on_mount(self) -> None:
        self.query_one(Rows).focus()
        self._show()
        self.fill(self._load())

    async def _load(self) -> None:
        listed = await asyncio.to_thread(self._session.checks.listed)
        self._checks = {one.check.name: one.check for one in listed}
        self._ticked = {one.check.name for one in listed if one.accepted}
        self._show()

    # ── what runs ────────────────────────────────────────────────────────────────────────────────────────

    def on_lined_marked(self, event: Lined.Marked) -> None:
        event.stop()
        self._tick(event.key)

    def on_lined_chosen(self, event: Lined.Chosen) -> None:
        event.stop()
        self._tick(event.key)

    def action_tick(self) -> None:
        self._tick(self.query_one(Rows).cursor)

    def _tick(self, name: str) -> None:
        if name:
            self._ticked ^= {name}
            self._show()

    def action_tick_all(self) -> None:
        """All of them; none where all are."""
        self._ticked = set() if self._ticked == set(self._checks) else set(self._checks)
        self._show()

    def action_slow(self) -> None:
        """A slow one runs by key, and before changes are applied without one."""
        if name := self.query_one(Rows).cursor:
            check = self._checks[name]
            self._checks[name] = replace(check, slow=not check.slow)
            self._show()

    def action_keep(self) -> None:
        if self._writing:
            self._keep_command()
            return
        chosen = [check for name, check in self._checks.items() if name in self._ticked]
        self.run_worker(self._accept(chosen), group="accept", exclusive=True)

    async def _accept(self, chosen: list[CheckCommand]) -> None:
        try:
            await self._session.checks.accept(chosen)
        except TuiAgentError as error:
            self._say(str(error), "$error")
        else:
            self.dismiss(None)

    def action_leave(self) -> None:
        if self._writing:
            self._end_writing()
        elif self._trying:
            self._end_attempts()
        else:
            self.dismiss(None)

    # ── what they find in the folder as it is ────────────────────────────────────────────────────────────

    def action_attempt(self) -> None:
        """Try all of them, one after the other; or end that."""
        if self._trying:
            self._end_attempts()
        elif self._checks:
            self._attempts = {}
            self.run_worker(self._attempt_all(), group="attempts", exclusive=True)

    def _end_attempts(self) -> None:
        self.workers.cancel_group(self, "attempts")
        self._trying = ""
        self._show()

    async def _attempt_all(self) -> None:
        for check in list(self._checks.values()):
            self._trying = check.command
            self._show()
            try:
                found = await self._session.checks.attempt(check)
            except TuiAgentError as error:
                self._trying = ""
                self._show()
                self._say(str(error), "$error")
                return
            self._attempts[check.command] = found
            if found.state == "missing":
                self._ticked.discard(check.name)
        self._trying = ""
        self._show()

    # ── commands ─────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _writing(self) -> bool:
        return self.has_class("-writing")

    def action_edit(self) -> None:
        if name := self.query_one(Rows).cursor:
            self._write(name, self._checks[name].command)

    def action_new(self) -> None:
        self._write("", "")

    def _write(self, name: str, command: str) -> None:
        self._editing = name
        self.add_class("-writing")
        line = self.query_one(KeptInput)
        line.placeholder = "a command, such as pytest -q"
        line.value = line.keep_at(self._session, f"check {name}", command)
        line.cursor_position = len(line.value)
        line.focus()
        self._say()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._keep_command()

    def _keep_command(self) -> None:
        command, name = self.query_one(KeptInput).value.strip(), self._editing
        if not command:
            self._say("Write a command, or leave it with Esc", "$warning")
            return
        if name:
            self._checks[name] = replace(self._checks[name], command=command)
        else:
            name = self._name_for(command)
            self._checks[name] = CheckCommand(name, command)
        self._ticked.add(name)
        self._end_writing()
        self.query_one(Rows).move_to(name)

    def _name_for(self, command: str) -> str:
        """Its first word, with a number where that is taken."""
        word = (
            "".join(sign for sign in command.split()[0] if sign.isprintable())[: MOST_OF_NAME - 4] or "check"
        )
        name, count = word, 2
        while name in self._checks:
            name, count = f"{word} {count}", count + 1
        return name

    def _end_writing(self) -> None:
        self.query_one(KeptInput).give_up()
        self.remove_class("-writing")
        self.query_one(Rows).focus()
        self._show()

    # ── the look ─────────────────────────────────────────────────────────────────────────────────────────

    def needs_content(self, event: events.Event) -> bool:
        return not self._checks and super().needs_content(event)

    def _show(self) -> None:
        rows = [self._row(check) for check in self._checks.values()]
        self.query_one(Rows).set_rows(rows or [Row("", Line((Piece("None found: n adds one", "muted"),)))])
        self._say()

    def _row(self, check: CheckCommand) -> Row:
        ticked = check.name in self._ticked
        left = (
            Piece("[x] " if ticked else "[ ] ", "accent" if ticked else "muted"),
            Piece(f"{check.name}: ", "" if ticked else "muted"),
            Piece(check.command, "" if ticked else "muted", "end"),
        )
        found = self._attempts.get(check.command)
        slow = ["slow"] if check.slow else []
        if check.command == self._trying:
            right = (Piece("  " + " · ".join([*slow, "…"]), "accent"),)
        elif found is not None:
            ink, short = _INKS[found.state], found.words.partition(" · ")[0]
            right = tuple(Piece("  " + " · ".join([*slow, words]), ink) for words in (found.words, short))
        else:
            right = tuple(Piece(f"  {word}", "muted") for word in slow)
        return Row(check.name, Line(left, right), marked=True)

    def _say(self, words: str = "", ink: str = "") -> None:
        """Say this, or else what the keys do."""
        if not words:
            if self._writing:
                words = "Enter keep the command   Esc leave it as it was"
            else:
                leave = "Esc stop trying" if self._trying else "Esc decide later"
                go = "run the ticked ones on every proposal" if self._ticked else "run none here"
                words = f"{_KEYS}\nEnter {go}  {leave}"
        self.query_one(".said", Static).update(plain(words, ink))


async def choose_checks(app: App[object], session: Session) -> None:
    """Let the person choose which checks run on every proposal in this folder."""
    await app.push_screen_wait(ChecksDialog(session))
