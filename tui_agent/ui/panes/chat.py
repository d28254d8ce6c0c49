"""The chat pane: conversation, streamed response, continuation hint and prompt."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace
from textual import on, work
from textual.timer import Timer
from textual.widget import Widget

from tui_agent.context.memory import asks_to_go_on
from tui_agent.errors import PasteTooLong, TuiAgentError
from tui_agent.store.state import State
from tui_agent.turn.model_choice import split_effort, with_effort
from tui_agent.turn.pastes import PASTED
from tui_agent.ui.actions import SLASH, why_not
from tui_agent.ui.keys.keyboard import store_waiting
from tui_agent.ui.panes.review_rows import restored_position, shown_changes, title
from tui_agent.ui.safe_text import one_line, parts
from tui_agent.ui.slash_commands import COMMANDS, Call, call_of, text_command
from tui_agent.ui.widgets.command_output import PlacePressed
from tui_agent.ui.widgets.line_view import Hint, HintLine
from tui_agent.ui.widgets.messages import TextBlock
from tui_agent.ui.widgets.pane import Pane, open_file
from tui_agent.ui.widgets.prompt import CompletionList, Prompt
from tui_agent.ui.widgets.prompt_lines import (
    ApprovalLine,
    ContinueLine,
    NewBelow,
    NextSteps,
    NoModelLine,
    OfferLine,
    PermissionLine,
    ProgressLine,
    PromptLine,
    QueuedMessages,
    WaitingLines,
)
from tui_agent.ui.widgets.transcript import ScrollPosition, Transcript, read_position
from tui_agent.ui.widgets.welcome import Welcome

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.ui.editor.vim import VimDisplay
    from tui_agent.ui.host import Host

#: Seconds between the first key and the stored draft.
DRAFT_AFTER = 0.1

_NAMED = 24

_MODE_INK = {"ask": "$accent", "edit": "$muted", "auto": "$warning"}
_OFFERS = (Hint("chat.send", "send"), Hint("chat.unqueue", "edit the last"), Hint("chat.drop_queue", "drop"))


class ChatPane(Pane):
    ID = "chat"
    SLICES = (
        *("chat", "reply", "turn", "input", "review", "model", "commands", "asked", "checks"),
        *("plan", "subtasks", "usage", "session", "conversation"),
    )

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._draft = self._unsent = ""  # typed text; text waiting for a model choice
        self._draft_timer: Timer | None = None
        #: Last displayed end of a turn: a turn can start and fail between two frames.
        self._ended = session.state.turn
        self._vim: VimDisplay | None = None
        self._writes = False

    @cached_property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        return {
            "send": self._send_prompt,
            "newline": lambda: self.prompt.insert("\n"),
            "older": lambda: self.prompt.older(),
            "newer": lambda: self.prompt.newer(),
            "page_up": lambda: self.transcript.page(-1),
            "page_down": lambda: self.transcript.page(1),
            "bottom": lambda: self.transcript.follow(),
            "go_on": lambda: self._go_on(),
            "reasoning": lambda: self.transcript.unfold_reasoning(),
            "copy": self._copy_answer,
            "blocks": lambda: self.transcript.walk(),
            "search": lambda: self._find_message(),
            "history": lambda: self._find_sent(),
            "retry": self._retry,
            "tell_output": self._insert_output,
            "unqueue": partial(self._unqueue, -1),
            "drop_queue": lambda: self.act(self.session.chat.set_queue(()), text_waits=False),
            "outside": lambda: self._write_outside(),
            "paste_picture": lambda: self._paste_picture(),
            "btw": lambda: self.prompt.set_value("/btw "),
            "goal": lambda: self.prompt.set_value("/goal "),
        }

    def compose(self) -> Iterable[Widget]:
        state = self.session.state
        yield Transcript(self.session.chat, read_position(state.layout.place.get(self.ID), state.chat.total))
        yield Welcome()
        yield NewBelow()
        yield ProgressLine()
        yield QueuedMessages()
        yield HintLine(id="queue-offers")
        yield PromptLine("walking")
        yield NextSteps()
        yield CompletionList(self.session)
        yield NoModelLine(self.session)
        yield ContinueLine()
        yield WaitingLines(self.session)
        yield ApprovalLine(self.session)
        yield PermissionLine()
        yield OfferLine()
        yield Prompt(self._digit, self.session.chat.keep_paste)
        yield PromptLine("mode")

    def _digit(self, number: int) -> str | None:
        """Returns "" for an answer to the open question, or words for the empty prompt."""
        state = self.session.state
        if state.asked is not None:
            answer = self.query_one(PermissionLine).answer_of(number)
            if answer:
                self.act(self.session.chat.permit(state.asked.call, answer, ""))
            return "" if answer else None
        if state.turn.phase == "waiting":
            asking = next((it for it in state.plan.actions if it.state == "asking"), None)
            if asking is not None and 0 < number <= len(asking.nearest):
                self.act(self.session.chat.answer(asking.action.name, asking.nearest[number - 1]))
                return ""
        found = self.query_one(Welcome).text_of(number)
        return self.query_one(NextSteps).text_of(number) if found is None else found

    def on_mount(self) -> None:
        self.session.extensions.built_in = frozenset((*SLASH, *COMMANDS))
        if self.keys.modal:
            self.prompt.use_vim()

    @property
    def prompt(self) -> Prompt:
        return self.query_one(Prompt)

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    @property
    def entry(self) -> Widget:
        return self.prompt

    # ── showing ──────────────────────────────────────────────────────────────────────────────────────────

    def show(self, state: State) -> None:
        self.transcript.display = not self.query_one(Welcome).show(state, self.session.models.name)
        self.transcript.show(state)
        self.prompt.set_history(state.input.history)
        self.query_one(NextSteps).show(() if state.turn.running else state.chat.next_steps)
        self.query_one(QueuedMessages).show(state.input.queue)
        offers = self.query_one("#queue-offers", HintLine)
        offers.display = bool(state.input.queue) and not state.turn.running
        offers.set_words(_OFFERS if offers.display else ())
        self.query_one(ProgressLine).show(state)
        self._show_going_on()
        self.query_one(NoModelLine).show(told=self.query_one(Welcome).offers)
        self.query_one(PermissionLine).show(state.asked)
        self.query_one(OfferLine).show(state.checks.offered)
        self.query_one(WaitingLines).show(state)
        self._show_mode()
        if state.input.draft != self._draft and self.prompt.value == self._draft:
            self._draft = state.input.draft
            self.prompt.set_value(state.input.draft)
        turn, ended = state.turn, self._ended
        if not turn.running:
            self._ended = turn
            failed = turn != ended and not turn.ok and turn.kind != "Interrupted"
            asked = turn.number == turn.first  # not by the program itself
            # An unanswered message returns to the empty prompt.
            if (failed and asked and not self.prompt.text) and not any(
                message.turn == turn.number and message.kind == "agent" for message in state.chat.messages
            ):
                self.prompt.set_value(with_effort(turn.effort, turn.request))
        if self._unsent and self._unsent == self.prompt.value and state.model.name and not self._missing():
            self._unsent = ""
            self._send_prompt()

    @on(NoModelLine.ModelsFound)
    def _offer_models(self, message: NoModelLine.ModelsFound) -> None:
        self.query_one(Welcome).offer(message.models)
        self.query_one(NoModelLine).show(told=self.query_one(Welcome).offers)

    @on(Prompt.BelowAsked)
    def _open_models(self) -> None:
        if self.query_one(Welcome).offers:
            self.post_message(self.ActionAsked("session.model"))

    @on(Welcome.WayPressed)
    @work(exclusive=True)
    async def _take_way(self, message: Welcome.WayPressed) -> None:
        from tui_agent.ui.dialogs.models import use_model_option

        await use_model_option(cast("Host", self.app), self.session, message.value)

    @on(Prompt.VimShown)
    def _show_vim(self, message: Prompt.VimShown) -> None:
        message.stop()
        self._vim = message.shown
        self._show_mode()

    def _show_mode(self) -> None:
        mode, state = self.session.mode, self.session.state
        if goal := one_line(state.input.goal):
            words = f"goal: {goal[:_NAMED]}{'…' * (len(goal) > _NAMED)} · /goal off"
        elif not self.prompt.text and not why_not("changes.apply_one", state):
            changes = shown_changes(state.review)
            place = title(changes, restored_position(changes, state.layout.place.get("review")))
            apply, skip = (self.keys.shown(f"changes.{verb}_one") for verb in ("apply", "skip"))
            words = f"{apply} apply, {skip} skip: {place[3:]}"
        elif mode == "ask" and state.has_plan:
            words = f"{self.keys.shown('prompt.carry_out')} carries out the plan"
        else:
            words = f"{self.keys.shown('prompt.mode')} changes the mode"
        line = parts((mode, _MODE_INK[mode]), (f"   {words}", "$muted"))
        if self._vim is not None and self._vim.mode != "insert":
            from tui_agent.ui.editor.vim import mode_words

            line = mode_words(self._vim) + "   " + line
        self.query_one("#mode", PromptLine).say(line, layout=False)

    def _show_going_on(self) -> None:
        self.query_one(ContinueLine).show(self.prompt.text, self.session.state)

    # ── draft ──────────────────────────────────────────────────────────────────────────────────────────────

    def on_descendant_focus(self) -> None:
        self._show_mode()

    def on_text_area_changed(self) -> None:
        if bool(self.prompt.text) != self._writes:
            self._writes = not self._writes
            self._show_mode()
        self._show_going_on()
        self.query_one(Welcome).show_typed(bool(self.prompt.text))
        if self._draft_timer is None:
            self._draft_timer = self.set_timer(DRAFT_AFTER, self._hand_over_draft)

    def _hand_over_draft(self) -> None:
        self._draft_timer = None
        value = self.prompt.value
        if value != self._draft:
            self._draft = value
            self.session.chat.set_draft(value)
            store_waiting(self.app, self.session)

    async def flush(self) -> None:
        if self._draft_timer is not None:
            self._draft_timer.stop()
        self._hand_over_draft()
        self._keep_position(self.transcript.scroll_place)

    # ── sending ──────────────────────────────────────────────────────────────────────────────────────────

    def _send_prompt(self) -> None:
        text = self.prompt.value
        name, words = text_command(text)
        command, state = self.prompt.command if words else name, self.session.state
        if not text.strip() and (state.turn.phase == "waiting" or state.asked is not None):
            where = "session.permission" if state.asked is not None else "pane.plan"
            self.post_message(self.ActionAsked(where))
        elif not text.strip() and state.input.queue and not state.turn.running:
            self.act(self.session.chat.send_queue(), text_waits=False)
        elif command in SLASH:
            self._do_command(command)
        elif not name and text[:1] == "/" and (first := text.split(maxsplit=1)[0])[1:] in SLASH:
            said = f"{first} has no arguments; to send it as a message, type a space before it"
            self.ask(self.session.notice(said, "warning"))
        elif command and not self.session.extensions.may_have(command):
            said = f"There is no command /{command}; to send it as a message, type a space before it"
            self.ask(self.session.notice(said, "warning"))
        elif name == "agent":
            try:
                cast("Host", self.app).agents.begin(shlex.split(words))
            except ValueError as error:
                said = f"The arguments cannot be read ({error}): correct their quotes"
                self.ask(self.session.notice(said, "error"))
            else:
                self.prompt.set_value("")
        elif (call := call_of(self.session, text)) is not None:
            self.prompt.set_value("")
            self.act(self._carry_out(text, call), text_waits=False)
        elif text.strip() and not text.startswith("!") and (missing := self._missing()):
            self._unsent = text
            if self.session.models.name:  # otherwise the model list shows the reason
                self.ask(self.session.notice(missing, "warning"))
            self.post_message(self.ActionAsked("session.model"))
        elif text.strip():
            self.prompt.set_value("")
            self.transcript.follow()
            if text.startswith("!"):
                self._run(text)
            else:
                self.act(self.send(text), text_waits=False, opens=PASTED.search(text) is not None)

    def _missing(self) -> str:
        """Why no message can be sent, or ""."""
        try:
            self.session.models.check()
        except TuiAgentError as error:
            return str(error)
        return ""

    async def send(self, text: str) -> None:
        effort, message = split_effort(text)
        try:
            await self.session.chat.submit(message, (), effort)
        except TuiAgentError as error:
            self.prompt.insert_before(text)
            if not isinstance(error, PasteTooLong):
                raise
            self._offer_files(error)

    async def _carry_out(self, text: str, call: Call) -> None:
        try:
            await self.session.notice(await call)
        except TuiAgentError:
            self.prompt.insert_before(text)
            raise

    @work
    async def _offer_files(self, refused: PasteTooLong) -> None:
        from tui_agent.ui.dialogs.questions import save_pastes

        for line, path in (await save_pastes(self.app, self.session, refused)).items():
            self.prompt.set_value(self.prompt.value.replace(line, path))

    @work
    async def _run(self, text: str) -> None:
        """Runs on the pending tree, or (`!!`) in the real folder after a question."""
        from tui_agent.ui.dialogs.questions import may_run_here, run_asked

        try:
            if not text.startswith("!!"):
                done = await run_asked(self.app, partial(self.session.commands.run, text[1:]))
            elif done := not text[2:].strip() or await may_run_here(self.app, self.session, text[2:].strip()):
                await self.session.commands.run_here(text[2:])
            if not done:
                self.prompt.insert_before(text)
        except TuiAgentError as error:
            self.prompt.insert_before(text)
            await self.session.notice(str(error), "error")

    @work(exclusive=True)
    async def _go_on(self) -> None:
        from tui_agent.ui.dialogs.context import edit_memory

        text = self.prompt.value
        sent = await edit_memory(self.app, self.session, text)
        if sent and asks_to_go_on(text, 2) and self.prompt.value == text:
            self.prompt.set_value("")

    def _retry(self) -> None:
        turn = self.session.state.turn
        if turn.running or turn.ok or not turn.request:
            self.ask(self.session.notice("No message has failed"))
            return
        text = with_effort(turn.effort, turn.request)
        if self.prompt.value == text:
            self.prompt.set_value("")
        self.act(self.send(text), text_waits=False)

    @on(Prompt.PictureAsked)
    @work(exclusive=True, group="picture")
    async def _paste_picture(self) -> None:
        from tui_agent.ui.desktop import keep_picture

        try:
            path = await keep_picture(self.session.storage.folder / "pictures")
        except TuiAgentError as error:
            await self.session.notice(str(error), "warning")
        else:
            self.prompt.insert(f'@"{path}" ')
            self.prompt.focus()

    @on(Prompt.EditorAsked)
    @work(exclusive=True)
    async def _write_outside(self) -> None:
        from tui_agent.ui.desktop import edited_text

        before = self.prompt.value
        try:
            text = await edited_text(cast("Host", self.app), before)
        except TuiAgentError as error:
            await self.session.notice(str(error), "error")
            return
        if text is None:
            await self.session.notice("The editor ended with an error; the message is unchanged", "warning")
        elif text != before:
            self.prompt.set_value(text)

    def _insert_output(self) -> None:
        try:
            text = self.session.commands.last_output()
        except TuiAgentError as error:
            self.ask(self.session.notice(str(error), "error"))
        else:
            self.prompt.insert_before(text)
            self.prompt.focus()

    @on(PlacePressed)
    def _open_place(self, message: PlacePressed) -> None:
        root = f"{self.session.workspace.root}/"
        path = message.path.removeprefix(root).removeprefix("./")
        open_file(self, path, message.line)

    def _unqueue(self, index: int) -> None:
        if queue := list(self.session.state.input.queue):
            self.prompt.insert_before(queue.pop(index))
            self.act(self.session.chat.set_queue(queue), text_waits=False)

    def on_queued_messages_removed(self, message: QueuedMessages.Removed) -> None:
        if message.index < len(self.session.state.input.queue):
            self._unqueue(message.index)
            self.prompt.focus()

    def on_next_steps_step_pressed(self, message: NextSteps.StepPressed) -> None:
        self.prompt.choose(message.step.input_text)
        self.prompt.focus()

    # ── pickers ────────────────────────────────────────────────────────────────────────────────────────────

    @on(Prompt.Picking)
    def _offer(self, message: Prompt.Picking) -> None:
        picker = self.query_one(CompletionList)
        picker.offer(message.sign, message.query)
        self.prompt.picking, self.prompt.picked_for = picker.display, (message.sign, message.query)

    @on(Prompt.PickerKey)
    def _press_in_list(self, message: Prompt.PickerKey) -> None:
        picker = self.query_one(CompletionList)
        if message.meant == "take" and picker.sign == "/":
            self.prompt.set_value(f"/{picker.chosen}" + ("" if picker.chosen in SLASH else " "))
        elif not picker.move(message.meant):
            self._take_chosen()
        self.prompt.picking = picker.display

    def on_option_list_option_selected(self) -> None:
        self._take_chosen()
        self.prompt.focus()

    def _take_chosen(self) -> None:
        picker = self.query_one(CompletionList)
        sign, chosen = picker.sign, picker.chosen
        picker.close()
        if sign == "/" and chosen in SLASH:
            self._do_command(chosen)
        elif chosen and sign == "/" and self.prompt.command == chosen:
            self._send_prompt()
        elif chosen and sign == "/":
            self.prompt.set_value(f"/{chosen} ")
        elif chosen:
            self.prompt.complete(chosen)

    def _do_command(self, name: str) -> None:
        self.prompt.set_value("")
        self.post_message(self.ActionAsked(SLASH[name].id))

    # ── transcript ─────────────────────────────────────────────────────────────────────────────────────────

    @work
    async def _find_message(self) -> None:
        from tui_agent.ui.dialogs.sessions import find_in_transcript

        if (number := await find_in_transcript(self.app, self.session)) is not None:
            self.transcript.go_to(number)

    @work
    async def _find_sent(self) -> None:
        from tui_agent.ui.dialogs.sessions import find_in_history

        if (text := await find_in_history(self.app, self.session)) is not None:
            self.prompt.insert_before(text)

    def _copy_answer(self) -> None:
        answers = [message for message in self.session.state.chat.messages if message.kind == "agent"]
        if answers:
            self.app.copy_to_clipboard(answers[-1].text or answers[-1].summary)

    @on(Transcript.PositionChanged)
    def _on_scrolled(self, message: Transcript.PositionChanged) -> None:
        self._keep_position(message.stand)

    def _keep_position(self, stand: ScrollPosition | None) -> None:
        layout = self.session.state.layout
        others = {pane: place for pane, place in layout.place.items() if pane != self.ID}
        self.session.set_layout(
            replace(layout, place={**others, self.ID: stand.saved()} if stand else others)
        )

    @on(NewBelow.NewPressed)
    def _follow(self) -> None:
        self.transcript.follow()

    @on(Transcript.NewMessagesBelow)
    def _count_new(self, message: Transcript.NewMessagesBelow) -> None:
        self.query_one(NewBelow).show(message.count)

    @on(Transcript.BlockSelected)
    def _tell_walk(self, message: Transcript.BlockSelected) -> None:
        line, block = self.query_one("#walking", PromptLine), message.block
        unfold, copy, open_, previous, following, leave = (
            self.keys.shown(f"blocks.{name}")
            for name in ("unfold", "copy", "open", "previous", "next", "leave")
        )
        enter = f" · {unfold} unfolds" if block is not None and block.line >= 0 else ""
        keys = f"{enter} · {copy} copies · {open_} opens as a file · {previous} {following} · {leave} back"
        name = one_line(block.words) if block is not None else ""
        line.say(f"{name[:_NAMED]}{'…' * (len(name) > _NAMED)}{keys}" if name else "")

    @on(Transcript.BlockAsked)
    def _take_block(self, message: Transcript.BlockAsked) -> None:
        if message.what == "leave":
            self.prompt.focus()
        elif message.what == "copy":
            self.app.copy_to_clipboard(message.block.text)
        else:
            self.act(self._open_block(message.block), changes=("buffers",))

    async def _open_block(self, block: TextBlock) -> None:
        files = self.session.files
        taken = {*files.paths(), *(buffer.path for buffer in self.session.state.buffers.open)}
        names = (f"block-{number}.{block.ending}" for number in itertools.count(1))
        name = next(name for name in names if name not in taken)
        await files.open(name)
        files.edit(name, block.text, (0, 0), (0, 0))
        self.go_to("buffers", focus=self.has_focus_within)
