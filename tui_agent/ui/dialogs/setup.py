"""Setup: the first steps as a list, and the checks of a folder."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from textual import events, on
from textual.app import App
from textual.content import Content
from textual.widget import Widget

from tui_agent.errors import TuiAgentError
from tui_agent.session.baselines import BaselineResult
from tui_agent.session.session import Session
from tui_agent.settings.files import save
from tui_agent.settings.schema import CheckCommand
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow, question
from tui_agent.ui.dialogs.dialog import Form, tick_box
from tui_agent.ui.dialogs.models import use_model_option
from tui_agent.ui.dialogs.palette import choose_theme
from tui_agent.ui.editor.writing_area import KeptInput
from tui_agent.ui.host import keys_of
from tui_agent.ui.safe_text import label, parts, plain
from tui_agent.ui.widgets.line_view import Line, Piece, Row, Rows
from tui_agent.ui.widgets.welcome import ModelOption, ways

if TYPE_CHECKING:
    from tui_agent.session.checks import ListedCheck
    from tui_agent.ui.host import Host

#: Maximum characters of a name derived from a command.
MOST_OF_NAME = 40
_INKS = {"passed": "done", "failed": "warning", "missing": "muted", "ended": "warning"}


class ChecksDialog(Form[None]):
    """Runs no project code before the trial key."""

    ID = "check_list"
    DEFAULT_CSS = """
    ChecksDialog {
        & > Vertical { width: 110; max-height: 80%; margin-top: 2; }
        & Rows { height: auto; min-height: 3; max-height: 16; margin: 1 0; }
        & KeptInput { padding: 0; background: $background; display: none; }
        & .hint { max-height: 4; }
        &.-writing KeptInput { display: block; }
    }
    """

    def __init__(self, session: Session) -> None:
        super().__init__(f"Checks in {session.workspace.root.name}")
        self._session = session
        self._checks: dict[str, CheckCommand] = {}
        #: Results by command, the running one, and the name being edited.
        self._attempts: dict[str, BaselineResult] = {}
        self._trying = self._editing = ""

    def body(self) -> Iterable[Widget]:
        yield Rows()
        yield KeptInput(compact=True, select_on_focus=False)

    def hint(self) -> Content:
        if self._writing:
            return label(self.keys_for(("answer.accept", "save the command"), ("dialog.close", "cancel")))
        edits = self.keys_for(
            *(("ticks.tick", "tick"), ("ticks.tick_all", "all")),
            *(("check_list.edit", "edit"), ("check_list.new", "new"), ("check_list.slow", "slow")),
            ("check_list.attempt", "try all on the current files"),
            gap="  ",
        )
        leave = "stop trying" if self._trying else "decide later"
        go = "use the ticked checks" if self.ticked else "use no checks here"
        ends = self.keys_for(("answer.accept", go), ("dialog.close", leave), gap="  ")
        return plain(f"{edits}\n{ends}")

    @on(events.Mount)
    def _mounted(self) -> None:
        self.query_one(Rows).focus()
        self.draw()
        self.fill(self._load())

    async def _load(self) -> None:
        listed = await asyncio.to_thread(self._session.checks.listed)
        self._checks = {one.check.name: one.check for one in listed}
        self.ticked = {one.check.name for one in listed if one.accepted}
        self.draw()
        for name in ("", *self._checks):
            if f"check {name}" in self._session.state.input.typed:
                self._write(name, self._checks[name].command if name else "")

    def tickable(self) -> Collection[str]:
        return self._checks

    def action_slow(self) -> None:
        """Slow checks run by key, and before an apply without one."""
        if name := self.query_one(Rows).cursor:
            check = self._checks[name]
            self._checks[name] = replace(check, slow=not check.slow)
            self.draw()

    async def action_keep(self) -> None:
        if not self._writing:
            self.run_worker(super().action_keep(), group="accept", exclusive=True)
            return
        command, name = self.query_one(KeptInput).value.strip(), self._editing
        if not command:
            self.say(plain("Enter a command, or cancel with Esc", "$warning"))
            return
        if name:
            self._checks[name] = replace(self._checks[name], command=command)
        else:
            printable = "".join(sign for sign in command.split()[0] if sign.isprintable())
            name = word = printable[: MOST_OF_NAME - 4] or "check"
            count = 2
            while name in self._checks:
                name, count = f"{word} {count}", count + 1
            self._checks[name] = CheckCommand(name, command)
        self.ticked.add(name)
        self._end_writing()
        self.query_one(Rows).move_to(name)

    async def keep(self) -> None:
        await self._session.checks.accept(
            [check for name, check in self._checks.items() if name in self.ticked]
        )

    def action_close(self) -> None:
        if self._writing:
            self._end_writing()
        elif self._trying:
            self._end_attempts()
        else:
            self.dismiss(None)

    def action_attempt(self) -> None:
        if self._trying:
            self._end_attempts()
        elif self._checks:
            self._attempts = {}
            self.run_worker(self._attempt_all(), group="attempts", exclusive=True)

    def _end_attempts(self) -> None:
        self.workers.cancel_group(self, "attempts")
        self._trying = ""
        self.draw()

    async def _attempt_all(self) -> None:
        for check in list(self._checks.values()):
            self._trying = check.command
            self.draw()
            try:
                found = await self._session.checks.attempt(check)
            except TuiAgentError as error:
                self._trying = ""
                self.draw()
                self.say(plain(str(error), "$error"))
                return
            self._attempts[check.command] = found
            if found.state == "missing":
                self.ticked.discard(check.name)
        self._trying = ""
        self.draw()

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
        self.say()

    def _end_writing(self) -> None:
        self.query_one(KeptInput).give_up()
        self.remove_class("-writing")
        self.query_one(Rows).focus()
        self.draw()

    def needs_content(self, event: events.Event) -> bool:
        return not self._checks and super().needs_content(event)

    def draw(self) -> None:
        rows = []
        for check in self._checks.values():
            ticked, found = check.name in self.ticked, self._attempts.get(check.command)
            ink = "" if ticked else "muted"
            left = (tick_box(ticked), Piece(f"{check.name}: ", ink), Piece(check.command, ink, "end"))
            slow = ["slow"] if check.slow else []
            if check.command == self._trying:
                right = (Piece("  " + " · ".join([*slow, "…"]), "accent"),)
            elif found is not None:
                ink, short = _INKS[found.state], found.words.partition(" · ")[0]
                right = tuple(Piece("  " + " · ".join([*slow, words]), ink) for words in (found.words, short))
            else:
                right = tuple(Piece(f"  {word}", "muted") for word in slow)
            rows.append(Row(check.name, Line(left, right), marked=True))
        if not rows:
            key = keys_of(self).shown("check_list.new")
            rows = [
                Row("", Line((Piece("No checks found" + (f": {key} adds one" if key else ""), "muted"),)))
            ]
        self.query_one(Rows).set_rows(rows)
        self.say()


async def choose_checks(app: App[Any], session: Session) -> None:
    await app.push_screen_wait(ChecksDialog(session))


#: Row values that are not model options.
_LIST, _CHECKS, _THEME, _INIT, _DONE = "list:", "checks:", "theme:", "init:", "done:"


async def set_up(app: Host, session: Session) -> None:
    checks: list[ListedCheck] = []
    options: list[ModelOption] = []
    first = ""

    async def find() -> None:
        rehearses = app.reopen is not None and not session.state.session.rehearsal
        found, checks[:] = await asyncio.gather(
            session.models.find(), asyncio.to_thread(session.checks.listed)
        )
        options[:] = ways(found, rehearses=rehearses)
        name = session.models.name
        if name and name not in {option.value for option in options}:
            options.insert(0, ModelOption(name, f"use {name}", ""))

    def rows(words: str) -> list[ChooserRow]:
        names = ", ".join(it.check.name for it in checks) or "none found: add a command"
        in_use = f"{sum(it.accepted for it in checks)} in use" if checks else ""
        if session.state.checks.offered:
            in_use = "found here, not in use"
        steps = [
            *(
                (it.value, "Model", it.words, "in use" if it.value == session.models.name else it.why)
                for it in options
            ),
            (_LIST, "Model", "more models, and keys for other providers", ""),
            (_CHECKS, "Checks", names, in_use),
            (_THEME, "Theme", app.theme, "in use"),
            (_INIT, "Files", "let the model propose an AGENTS.md", "/init"),
            (_DONE, "Done", "begin to work", ""),
        ]
        shown, before = [], ""
        for value, step, does, mark in steps:
            if words.lower().strip() in f"{step} {does} {mark}".lower():
                name = "" if step == before else step
                shown.append(
                    ChooserRow(value, parts((f"{name:<8}", "$accent"), f"{does}  ", (mark, "$muted")))
                )
                before = step
        return shown

    while True:
        to_type = "each step can be skipped · {choose} selects"
        chooser = Chooser("Set up", rows, to_type, find(), first=lambda at=first: at)
        match await app.push_screen_wait(chooser):
            case None | "done:":
                return
            case "checks:":
                await choose_checks(app, session)
                first = _THEME
            case "theme:":
                first = _INIT
                name = await choose_theme(app)
                answers = {"save": "Save as the default for new sessions", "": "Use it for this session only"}
                asked = question(f"The theme is {name}", answers)
                if not name or await app.push_screen_wait(asked) != "save":
                    continue
                try:
                    where = await asyncio.to_thread(save, session.folders.config, "theme", name)
                    await session.notice(f"{name} is now the default theme: {where}")
                except TuiAgentError as error:
                    await session.notice(str(error), "error")
            case "init:":
                await session.propose_instructions()
                return
            case model:
                await use_model_option(app, session, "" if model == _LIST else model)
                if app.next is not None:  # the rehearsal replaces this session
                    return
                first = _CHECKS
