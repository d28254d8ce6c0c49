"""Lines above the prompt: questions, progress, next steps, queue, model setup, and what other panes wait for."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.answers.values import NextStep
from tui_agent.context.memory import asks_to_go_on
from tui_agent.edits.change import Change
from tui_agent.files.text import one_line
from tui_agent.store.conversation import estimated_tokens
from tui_agent.store.graph import SubTask
from tui_agent.store.state import PermissionQuestion, State
from tui_agent.ui.graph.facts import clock, dollars, short_count, silence
from tui_agent.ui.host import keys_of
from tui_agent.ui.keys.keymap import view_bindings
from tui_agent.ui.safe_text import counted, label, parts, plain
from tui_agent.ui.widgets.line_view import fit
from tui_agent.ui.widgets.messages import WORDS
from tui_agent.ui.widgets.pane import Pane, Ticker

if TYPE_CHECKING:
    from tui_agent.model.discovery import Suggestion
    from tui_agent.session.session import Session
    from tui_agent.settings.schema import CheckCommand


class PromptLine(Static):
    """Visible while non-empty."""

    ID = ""

    def __init__(self, id: str = "") -> None:
        super().__init__("", id=id or self.ID, markup=False)
        self._words = Content()
        self.display = False

    def say(self, words: str | Content, *, layout: bool = True) -> None:
        words = label(words) if isinstance(words, str) else words
        self.display = bool(words)
        if not words.is_same(self._words):  # each update lays out the whole screen
            self._words = words
            self.update(words, layout=layout)


class ApprovalLine(PromptLine):
    ID = "approving"
    SLICES: ClassVar[tuple[str, ...]] = ("subtasks",)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def show(self, state: State) -> None:
        tasks = state.subtasks.tasks
        waiting = [task for task in tasks if task.state in ("pending", "ready") and not task.wanted]
        ticked = sum(task.auto_execute for task in waiting)
        begin = self._session.loaded.settings.subtasks.begin
        go, run, one = (keys_of(self).shown(name) for name in _KEYS)
        if not waiting or begin == "auto":
            self.say("")
        elif begin == "ticked" and ticked:
            self.say(f"{_count(waiting)} · {run} runs {ticked} ticked · {go} shows them")
        elif any(task.wanted or task.state == "running" for task in tasks):
            self.say("")
        else:
            now = [task for task in waiting if task.state == "ready"] or waiting
            them, which = ("it", "it") if len(now) == 1 else ("them", "one")
            self.say(f"{_count(now)} for you · {go} shows {them}, then {one} runs {which}")

    def on_click(self) -> None:
        self.post_message(Pane.GoneTo("subtasks"))


#: Maximum lines of an effect, and the seconds before a digit answers.
SHOWN_LINES, SEEN_FROM = 3, 0.5


class QuestionLine(PromptLine, can_focus=True):
    """A click or a key asks for `ACTION`."""

    ACTION = ""
    BINDINGS = view_bindings("block")

    def on_click(self) -> None:
        self.action_press()

    def action_press(self) -> None:
        self.post_message(Pane.ActionAsked(self.ACTION))


class PermissionLine(QuestionLine):
    ID = "permission"
    ACTION = "session.permission"

    def __init__(self) -> None:
        super().__init__()
        self._question: PermissionQuestion | None = None
        self._since = 0.0

    def show(self, question: PermissionQuestion | None) -> None:
        if question != self._question:
            self._question, self._since = question, time.monotonic()
        key = keys_of(self).shown(self.ACTION)
        go = f" · {key} shows and answers it" if key else ""
        if question is None or not self._answers:
            self.say(f"{question.words}{go}" if question else "")
            return
        rows = [
            label(f"{question.words}{go}"),
            *(label(f"  {line}") for line in question.preview.splitlines()),
        ]
        told = "   ".join(f"{at} {words}" for at, (_, words) in enumerate(self._answers, 1))
        self.say(Content("\n").join([*rows, parts((f"  {told}", "$accent"))]))

    @property
    def _answers(self) -> Sequence[tuple[str, str]]:
        """Answers by digit; none if the effect is too long for the line, or if an answer is being written."""
        question = self._question
        if question is None or question.answers or len(question.preview.splitlines()) > SHOWN_LINES:
            return ()
        if not question.tool:
            return ("once", "continue"), ("no", "stop")
        return ("once", "allow once"), ("session", "in this session"), ("always", "always"), ("no", "deny")

    def answer_of(self, number: int) -> str:
        """Returns "" if there is none, or if the question has just appeared: the digit may belong to a
        message.
        """
        if time.monotonic() - self._since < SEEN_FROM or not 0 < number <= len(self._answers):
            return ""
        return self._answers[number - 1][0]


class OfferLine(QuestionLine):
    ID = "offer"
    ACTION = "checks.accept"

    def show(self, checks: Sequence[CheckCommand]) -> None:
        key = keys_of(self).shown(self.ACTION)
        go = f" · {key} runs them on every proposal" if key else ""
        self.say(f"Checks found: {', '.join(check.name for check in checks)}{go}" if checks else "")


_KEYS = ("pane.subtasks", "turn.run_ticked", "subtasks.run")


def _count(tasks: Sequence[SubTask]) -> str:
    return "1 sub-task waits" if len(tasks) == 1 else f"{len(tasks)} sub-tasks wait"


_ELEMENT = re.compile(r"</?[A-Za-z][^<>]*>")


class NextSteps(Static):
    class StepPressed(Message):
        def __init__(self, step: NextStep) -> None:
            super().__init__()
            self.step = step

    def __init__(self) -> None:
        super().__init__("", id="choices", markup=False)
        self.steps: tuple[NextStep, ...] = ()
        self.display = False

    def show(self, steps: tuple[NextStep, ...]) -> None:
        if steps is self.steps:
            return
        self.steps = steps[:9]
        self.display = bool(steps)
        rows = [
            parts((f"{n} ", "bold $accent"), step_text(step.label)) for n, step in enumerate(self.steps, 1)
        ]
        self.update(Content("\n").join(rows))

    def text_of(self, number: int) -> str | None:
        return self.steps[number - 1].input_text if 0 < number <= len(self.steps) else None

    def on_click(self, event: events.Click) -> None:
        number = event.get_content_offset_capture(self).y + 1
        if 0 < number <= len(self.steps):
            self.post_message(self.StepPressed(self.steps[number - 1]))


_PHASES = {
    "starting": "preparing the model",
    "planning": "making a plan",
    "finding": "finding files",
    "waiting": "waiting for your answer",
    "asking": "asking the model",
    "streaming": "answering",
    "checking": "running the checks",
}


MARK = 5
#: Minimum cells of a path in progress.
_SHORTEST_PATH = 12
#: Seconds before the elapsed time, and before the model's silence, is shown.
SHOWN_FROM, SILENT = 2, 10


class ProgressLine(PromptLine):
    ID = "progress"

    def __init__(self) -> None:
        super().__init__()
        self._state: State | None = None
        self._counting = Ticker(self, self._count)
        #: Number of the running turn and its first `time.monotonic` timestamp.
        self._turn, self._since = 0, 0.0
        self._rows = 0
        #: The last part of the answer, and its time.
        self._heard: tuple[object, ...] = ()
        self._heard_at = 0.0

    def show(self, state: State) -> None:
        self._state = state
        running = [one for one in state.commands.running if not one.background]
        self._counting.run(bool(running) or state.turn.running)
        lines = []
        if running:
            one, stop = running[-1], self._stop_key
            more = f" and {len(running) - 1} more" if len(running) > 1 else ""
            facts = [" · begins"] if one.preparing else []
            facts.append(f" · {max(0, int(time.time() - one.since))} s")
            stops = f" · {stop} stops" if stop else ""
            words = fitted(one_line(f"{one.command}{more}"), facts, stops, self._across - MARK)
            lines = [parts(("● ", "$running"), words, (f"  {one.line}", "$muted"))]
        if state.turn.running:
            if state.turn.number != self._turn:
                self._turn, self._since = state.turn.number, time.monotonic()
            seconds = time.monotonic() - self._since
            lines = [*(lines or self._live(state, seconds)), *so_far(state)]
        else:
            self._turn = 0
        layout = len(lines) != self._rows
        self._rows = len(lines)
        self.say(Content("\n").join(lines), layout=layout)

    def _live(self, state: State, seconds: float) -> list[Content]:
        turn, reply = state.turn, state.reply
        stop, across = self._stop_key, self._across
        if turn.phase == "retrying":
            gives_up = f" · {stop} gives up" if stop else ""
            rows = wrap(turn.retry_why, max(across - 6, 20), max_lines=3, placeholder=" …")
            what = "Rate limit" if "rate limit" in turn.retry_why.lower() else "No answer"
            again = fitted(f"{what} · again in {turn.retry_seconds} s", (), gives_up, across - MARK)
            return [
                parts(("● ", "$warning"), (again, "$muted")),
                *(parts((f"  {row}", "$muted")) for row in rows),
            ]
        heard = (turn.number, turn.phase, reply.letters, len(reply.reasoning))
        if heard != self._heard:
            self._heard, self._heard_at = heard, time.monotonic()
        quiet = time.monotonic() - self._heard_at
        files = reply.files or sum(change.turn == turn.number for change in state.review.changes)
        of = sum(len(batch.now) for batch in state.batches)
        asks = turn.phase in ("asking", "streaming") and not turn.reading and not turn.calls
        silent = asks and quiet >= SILENT
        reads = turn.phase == "asking" and turn.reading  # already includes its seconds
        letters = max(reply.letters, len(reply.reasoning)) if turn.phase == "streaming" else 0
        count = f"{files:,} of {of:,}" if of >= files and of > 1 else f"{files:,}"
        facts = [
            f"no response for {clock(quiet)}" if silent else "",
            f"{count} file{'s' if max(files, of) > 1 else ''}" if files and turn.phase == "streaming" else "",
            clock(seconds) if seconds >= SHOWN_FROM and not silent and not reads else "",
            f"~{short_count(estimated_tokens(letters))} tokens" if letters else "",
        ]
        thinks = turn.phase == "streaming" and reply.reasoning and not (reply.message or reply.summary)
        facts = [f" · {fact}" for fact in facts if fact]
        stops = f" · {stop} stops" if stop else ""
        if reads:
            of_all = f" · {turn.read:,} of {turn.read_of:,} tokens" if turn.read_of else ""
            doing = f"{turn.read_waits or 'reading the prompt'}, {turn.reading} s{of_all}"
        elif thinks:
            doing = "thinking"
        elif turn.phase == "streaming" and reply.writing:
            told = len("".join(facts) + stops)
            path = fit(one_line(reply.writing), max(across - told - 14, _SHORTEST_PATH), "start")
            doing = f"writing {path}"
        else:
            call = next(iter(turn.calls.values()), "")
            name, _, shown = call.partition(" ")
            called = f"{WORDS[name].doing} {shown}".strip() if name in WORDS else call
            words = called or _PHASES.get(turn.phase, turn.phase)
            who = state.model.name if turn.phase == "asking" else ""
            doing = one_line(words.replace(" the model", f" {who or 'the model'}"))
        return [parts(("● ", "$running"), (fitted(doing, facts, stops, across - MARK), "$muted"))]

    @property
    def _stop_key(self) -> str:
        return keys_of(self).shown("app.close")

    @property
    def _across(self) -> int:
        return (self.parent.size.width if isinstance(self.parent, Widget) else 0) or 1000

    def _count(self) -> None:
        if self._state is not None:
            self.show(self._state)


def fitted(doing: str, facts: Sequence[str], stops: str, room: int) -> str:
    """Drops the last facts, then cuts the activity; keeps the key that `stops` it."""
    facts = list(facts)
    while facts and cell_len(doing + "".join(facts) + stops) > room:
        facts.pop()
    behind = "".join(facts) + stops
    return fit(doing, max(room - cell_len(behind), 1)) + behind


def so_far(state: State) -> list[Content]:
    turn, used = state.turn, state.usage.turn
    if turn.step < 2:
        return []
    tokens = used.input + used.output
    facts = [f"step {turn.step}", *([f"{short_count(tokens)} tokens", dollars(used.cost)] if tokens else [])]
    return [parts((f"  {' · '.join(fact for fact in facts if fact)}{' so far' if tokens else ''}", "$muted"))]


class QueuedMessages(Static):
    class Removed(Message):
        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self) -> None:
        super().__init__("", id="waiting", markup=False)
        self._shown: Sequence[str] = ()
        self.display = False

    def show(self, queue: Sequence[str]) -> None:
        if queue == self._shown:
            return
        self._shown = queue
        self.display = bool(queue)
        rows = [parts(("waits  ", "$running"), (text, "$muted")) for text in queue[:6]]
        self.update(Content("\n").join(rows))

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Removed(event.get_content_offset_capture(self).y))


def step_text(label: str) -> str:
    """Strips tags and decodes entities of a next step, which can contain HTML."""
    from html import unescape  # loads a table of two thousand entities

    return unescape(_ELEMENT.sub("", label)).strip() or label


class ContinueLine(PromptLine):
    ID = "going-on"

    def show(self, text: str, state: State) -> None:
        key = keys_of(self).shown("chat.go_on")
        sent = "your text" if state.input.memory else "your progress"
        asks = asks_to_go_on(text, state.next_turn)
        self.say(f"{sent} is sent, too{f' · {key} edits it' if key else ''}" if asks else "")


class NoModelLine(Static):
    """Without a model: checks environment variables and local servers once. Sends no model request."""

    class ModelsFound(Message):
        def __init__(self, models: Sequence[Suggestion]) -> None:
            super().__init__()
            self.models = models

    def __init__(self, session: Session) -> None:
        super().__init__("", id="no-model", markup=False)
        self._session = session
        self._looked = False
        self.display = False

    def show(self, *, told: bool) -> None:
        """Visible without a model, unless another widget has `told` the user."""
        missing = not self._session.models.name
        self.display = missing and not told
        if missing and not self._looked:
            self._looked = True
            self.run_worker(self._look())

    async def _look(self) -> None:
        found = await self._session.models.find()
        self.update(plain(no_model_words(found, keys_of(self).shown("session.model"))))
        self.post_message(self.ModelsFound(found))


def no_model_words(found: Sequence[Suggestion], key: str) -> str:
    places = list(dict.fromkeys(it.because for it in found))
    choose = f"{key} chooses a model" if key else "Choose a model"
    if not places:
        none = "No model is chosen yet. No API key or local server was found."
        return f"{none}\n{choose}; `tui-agent demo` starts the rehearsal."
    found_at = " · ".join(places)
    uses = f"{key} uses it" if key and len(places) == 1 else choose
    return f"{found_at[0].upper()}{found_at[1:]}: {uses}\n`tui-agent demo` starts the rehearsal."


class NewBelow(PromptLine):
    ID = "new-below"

    class NewPressed(Message):
        pass

    def show(self, count: int) -> None:
        self.say(f"↓ {count} new" if count > 0 else "")

    def on_click(self) -> None:
        self.post_message(self.NewPressed())


class WaitingItem(NamedTuple):
    sign: str
    words: str
    pane: str


def waiting_for_person(state: State, now: float, silent_after: int) -> list[WaitingItem]:
    """`now` is in seconds since 1970; a sub-task is stalled after `silent_after` seconds without output."""
    found = []
    if state.turn.phase == "waiting" and state.asked is None:
        asking = next((it.action.name for it in state.plan.actions if it.state == "asking"), "")
        found.append(
            WaitingItem("?", f"Which file is “{asking}”?" if asking else "The plan has a question", "plan")
        )
    changes = broken_now(state)
    for kind, one, sign in (
        ("conflict", "Conflict in", "⚠"),
        ("failed", "Could not place the change to", "✗"),
    ):
        paths = [change.path for change in changes if change.state == kind]
        if paths:
            more = f" and {counted(len(paths) - 1, 'more file')}" if len(paths) > 1 else ""
            found.append(WaitingItem(sign, f"{one} {paths[0]}{more}", "review"))
    for task, quiet in stalled(state, now, silent_after).items():
        found.append(WaitingItem("◌", f"Sub-task {task} has been silent for {clock(quiet)}", "subtasks"))
    return found


def stalled(state: State, now: float, silent_after: int) -> dict[str, float]:
    quiet = {task: silence(it, now, silent_after) for task, it in state.subtasks.running.items()}
    return {task: seconds for task, seconds in quiet.items() if seconds}


def broken_now(state: State) -> list[Change]:
    changes, turn = state.review.changes, state.turn.number
    conflicts = [change for change in changes if change.state == "conflict"]
    return [*conflicts, *(change for change in changes if change.state == "failed" and change.turn == turn)]


class WaitingLines(Static):
    MOST = 4

    def __init__(self, session: Session) -> None:
        super().__init__("", id="elsewhere", markup=False)
        self._session = session
        self._lines: tuple[WaitingItem, ...] = ()
        self._ticker = Ticker(self, lambda: self.show(session.state), 5)
        self.display = False

    def show(self, state: State) -> None:
        """While sub-tasks run, a timer repeats this to detect stalls."""
        self._ticker.run(bool(state.subtasks.running))
        silent_after = self._session.loaded.settings.subtasks.silent_after
        lines = tuple(waiting_for_person(state, time.time(), silent_after)[: self.MOST])
        if lines == self._lines:
            return
        self._lines = lines
        self.display = bool(lines)
        keys = keys_of(self)
        rows = [
            parts(
                (f"{line.sign} ", "$failed" if line.sign == "✗" else "$warning"),
                line.words,
                (f" · {key}" if key else "", "$accent"),
                (f" {'answers' if line.sign == '?' else 'shows'} it" if key else "", "$muted"),
            )
            for line in lines
            for key in (keys.shown(f"pane.{line.pane}"),)
        ]
        self.update(Content("\n").join(rows))

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset_capture(self).y
        if 0 <= at < len(self._lines):
            self.post_message(Pane.ActionAsked(f"pane.{self._lines[at].pane}"))
