"""Runs turns sequentially: queues messages, stops turns, asks questions."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from tui_agent.context.memory import GO_ON
from tui_agent.debug_log import fault
from tui_agent.edits.change import Change
from tui_agent.errors import EditFailed, LimitReached, SessionError, TuiAgentError
from tui_agent.log.journal import Journal
from tui_agent.processes.background import standstill
from tui_agent.settings.schema import Effort
from tui_agent.store import events as e
from tui_agent.store.state import Decision, State
from tui_agent.turn.model_choice import split_effort, with_effort

_log = logging.getLogger(__name__)
STOPPED = "Stopped: all so far is saved; send “continue” to resume it."
ASK_FOR_THE_REST = "before it was complete: send “continue” for the rest"
#: Maximum processor priority of a turn's first request, in seconds.
REQUEST_FIRST = 0.1
#: Seconds between stream updates: one or two frames.
TOLD_EVERY = 0.03
Part = Literal["summary", "message", "reasoning", ""]
if TYPE_CHECKING:
    from tui_agent.tools.tool import Emit
    from tui_agent.turn.context import TurnContext

    #: The work of a turn, as events; returns the limit that ended it, or "".
    Steps = Callable[[TurnContext, Emit], Awaitable[str]]


class Turns:
    """`begins` is awaited before each turn of the model, after `get_ready`. `submitted` is awaited with each
    message, and whether it is automatic; it returns text for the model, and a `TuiAgentError` stops the
    message. `after` runs after each successful turn and returns the next message or "".
    """

    def __init__(
        self,
        journal: Journal,
        context: Callable[[], TurnContext],
        *,
        get_ready: Callable[[], Awaitable[None]],
        begins: Callable[[], Awaitable[object]],
        tell_level: Callable[[], Awaitable[None]],
        submitted: Callable[[str, bool], Awaitable[str]],
        stopping: Callable[[], Awaitable[None]],
        after: Callable[[], Awaitable[str]],
    ) -> None:
        self._journal = journal
        self._context = context
        self.get_ready = get_ready
        self._begins, self._tell_level, self._submitted = begins, tell_level, submitted
        self._stopping, self._after = stopping, after
        #: A whole turn, from first to last record. Only `_work`, the part between them, is cancelled.
        self._task: asyncio.Task[None] | None = None
        self._work: asyncio.Task[str] | None = None
        self._stopped = False
        self._batch_awaited = False
        self._question: tuple[str, asyncio.Future[Decision]] | None = None
        self._decisions: list[Decision] = []
        #: Sent to the model after the running turn.
        self._conflicts: list[Change] = []
        self._unasked = 0
        self._attended = True
        #: Next message and success of the last turn that ended without a terminal.
        self._held: tuple[str, bool] | None = None

    @property
    def state(self) -> State:
        return self._journal.store.state

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def submit(self, text: str, attachments: Sequence[str] = (), effort: Effort | None = None) -> None:
        """Returns once the message is on disk. Decides before any await, so that two messages cannot both
        begin a turn.
        """
        if not text.strip():
            return
        draft = self.state.input.draft
        if self.running and self._stopped and self._task is not None:
            await asyncio.wait([self._task])  # the turn is ending; do not add to its queue
        if self.running:
            await self._journal.record(e.MessageQueued(with_effort(effort, text)))
            if not self.running and not self._stopped:
                self._begin_next()
        else:
            await asyncio.shield(self._begin(text, attachments, effort))
        if draft and self.state.input.draft == draft:
            self._journal.publish(e.DraftChanged(""))
            self._journal.forget(["draft"])

    async def submit_to(self, steps: Steps, text: str) -> None:
        """Runs `steps` instead of the model. Raises `SessionError` during a turn."""
        if self.running:
            raise SessionError("A turn is running", "wait, or stop it")
        await asyncio.shield(self._begin(text, others=steps))

    def ask_again(self, conflicts: Sequence[Change]) -> None:
        self._conflicts += conflicts
        if not self.running:
            self._stopped = False
            self._journal.publish(e.PhaseChanged("planning"))
            self._begin_next()

    def send_queue(self) -> None:
        if not self.running:
            self._stopped = False
            self._begin_next()

    def set_attended(self, attended: bool) -> None:
        """Holds queued messages and the next batch while `False`; turns of a goal continue."""
        self._attended = attended
        if attended and self._held is not None and not self.running and not self._stopped:
            (following, ended_well), self._held = self._held, None
            self._begin_next(following, ended_well=ended_well)

    def compact(self) -> None:
        """Raises `SessionError` during a turn."""
        if self.running:
            raise SessionError("A turn is running; messages are summarised between turns", "wait, or stop it")
        from tui_agent.turn.compaction import compact as steps

        self._stopped = False
        self._journal.publish(e.PhaseChanged("planning"))
        self._task = asyncio.create_task(
            self._to_its_end(self.state.turn.number, steps, again=True, is_turn=False), name="compacting"
        )

    async def set_queue(self, queue: Sequence[str]) -> None:
        await self._journal.record(e.QueueChanged(tuple(queue)))

    async def stop(self) -> None:
        if self._task is None or self._task.done():
            return
        self._stopped, self._conflicts = True, []
        if self._work is not None:
            self._work.cancel()
        await self._stopping()
        await asyncio.wait([self._task])

    async def finished(self) -> None:
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def batch_complete(self) -> bool:
        """Waits until the running turn has proposed all changes. `False` if another call already waits.
        Raises `EditFailed` if the turn failed.
        """
        turn, waiting = self.state.turn, self.state.review.open
        if not turn.running or not (turn.proposes or any(change.turn == turn.number for change in waiting)):
            return True
        if self._batch_awaited:
            return False
        self._batch_awaited = True
        try:
            sentence = "The reply is incomplete: everything is applied when it is complete"
            await self._journal.record(e.NoticeGiven("info", sentence))
            await self._journal.store.until(lambda state: not state.turn.running)
        finally:
            self._batch_awaited = False
        if not self.state.turn.ok:
            raise EditFailed(
                "Nothing was applied, because the turn ended before its reply was complete",
                "review the changes, then apply them",
            )
        return True

    async def ask(self, action: str, offered: Sequence[str]) -> Decision:
        if self._decisions:
            return self._decisions.pop(0)
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._question = (action, future)
        try:
            return await future
        finally:
            self._question = None

    async def answer(self, action: str, path: str = "", reason: str = "") -> None:
        """Raises `SessionError` without an open question."""
        decision = Decision(action, path, (reason,) if reason else ())
        if self._question is None and self.state.turn.waiting_for == action:
            self._decisions.append(decision)
            return
        if self._question is None or self._question[0] != action:
            raise SessionError(f"No question about “{action}” is open", "answer while its question is open")
        future = self._question[1]
        if not future.done():
            future.set_result(decision)

    def decided(self) -> Sequence[Decision]:
        decisions, self._decisions = self._decisions, []
        return decisions

    async def decide(self, decision: Decision) -> None:
        """Raises `SessionError` for an unknown action, and for a skip after sending."""
        action = decision.action
        if all(slot.action.name != action for slot in self.state.plan.actions):
            raise SessionError(f"The plan has no action “{action}”", "choose one that it shows")
        if self._question is not None and not self._question[1].done():
            self._question[1].set_result(decision)
            return
        out = self.state.turn.phase not in ("starting", "planning", "finding", "waiting")
        if out and not (decision.path or decision.patterns):
            raise SessionError(f"The request with “{action}” was already sent", "name the file in the chat")
        self._decisions.append(decision)
        if out:
            wanted = decision.path or decision.patterns[0]
            await self._journal.record(
                e.DecisionsKept(tuple(self._decisions)),
                e.NoticeGiven("info", f"{wanted} is sent with the next request"),
            )

    def _begin(
        self,
        text: str,
        attachments: Sequence[str] = (),
        effort: Effort | None = None,
        *,
        queued: bool = False,
        unasked: bool = False,
        others: Steps | None = None,
    ) -> asyncio.Future[None]:
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # No caller awaits a queued message.
        begun.add_done_callback(lambda told: told.cancelled() or told.exception())
        self._stopped = False
        self._unasked = self._unasked + 1 if unasked else 0
        started = e.TurnStarted(self.state.next_turn, text, queued, tuple(attachments), effort, unasked)
        self._task = asyncio.create_task(self._run(started, begun, others), name="turn")
        return begun

    def _begin_next(self, following: str = "", *, ended_well: bool = False) -> None:
        pursued = bool(following and self.state.input.goal)
        if not self._attended and not pursued:
            self._held = following, ended_well
            return
        waiting = [self.state.review.change(change.id) for change in self._conflicts]
        conflicts = [change for change in waiting if change is not None and change.state == "conflict"]
        self._conflicts = []
        if conflicts:
            from tui_agent.turn.turn import retry_conflicts

            self._task = asyncio.create_task(
                self._to_its_end(
                    self.state.turn.number,
                    lambda context, emit: retry_conflicts(context, conflicts, emit),
                    again=True,
                ),
                name="turn",
            )
        elif self.state.input.queue and self._attended:
            effort, text = split_effort(self.state.input.queue[0])
            self._begin(text, effort=effort, queued=True)
        elif ended_well and self._goes_on_by_itself():
            self._begin(GO_ON[0], unasked=True)
        elif following:
            self._begin(following, unasked=True)

    def _goes_on_by_itself(self) -> bool:
        context, state = self._context(), self.state
        auto = context.core.mode == "auto"
        if not (auto or context.part) or state.turn.limit or (auto and state.review.open):
            return False
        return not self._limited and any(batch.left and batch.last > 0 for batch in state.batches[:1])

    @property
    def _limited(self) -> bool:
        """Whether another automatic turn would exceed `limits.turns`."""
        most = self._context().core.settings.limits.turns
        return bool(most and self._unasked + 1 >= most)

    async def _run(self, started: e.TurnStarted, begun: asyncio.Future[None], others: Steps | None) -> None:
        standstill.begin(REQUEST_FIRST)
        try:
            await self._journal.record(started)
        except BaseException as error:
            _log.debug("the turn did not begin", exc_info=True)
            begun.set_exception(error)
            return
        begun.set_result(None)

        async def steps(context: TurnContext, emit: Emit) -> str:
            from tui_agent.turn.turn import run

            added = await self._submitted(started.request, started.unasked)
            if others is not None:
                return await others(context, emit)
            asked, given = started.request, started.attachments
            return await run(context, asked, given, emit, added, unasked=started.unasked)

        await self._to_its_end(started.turn, steps, with_model=others is None)

    async def _to_its_end(
        self, turn: int, steps: Steps, *, again: bool = False, with_model: bool = True, is_turn: bool = True
    ) -> None:
        started = time.monotonic()
        ended = await self._ended(turn, steps, with_model=with_model)
        if again and not ended.ok and not self._stopped:
            sentence = f"The model was asked again without success: {ended.error}"
            await self._journal.record(e.NoticeGiven("warning", sentence))
            ended = e.TurnEnded(turn, True, limit=ended.limit)
        ended = replace(ended, seconds=round(time.monotonic() - started, 3))
        await self._journal.record(*interruption_events(self.state), ended)
        following = await self._after() if ended.ok and is_turn else ""
        if (goal := self.state.input.goal) and (self._stopped or self._limited or not ended.ok):
            following = ""
            failed = "limits.turns is reached" if ended.ok else "its turn failed"
            why = "it was stopped" if self._stopped else failed
            words = f"The goal was abandoned because {why}: {goal}"
            await self._journal.record(e.GoalSet(""), e.NoticeGiven("warning", words, in_chat=True))
        if not self._stopped:
            self._begin_next(following, ended_well=ended.ok)

    async def _ended(self, turn: int, steps: Steps, *, with_model: bool) -> e.TurnEnded:
        self._work = asyncio.create_task(self._drive(steps, with_model=with_model), name=f"turn {turn}")
        if self._stopped:  # stopped during its first write
            self._work.cancel()
        try:
            limit = await self._work
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if not self._stopped and not (task and task.cancelling()):
                found = fault("Work that the turn waited for was cancelled", error)
                return e.TurnEnded(turn, False, str(found), "Fault")
            self._stopped = True
            return e.TurnEnded(turn, False, STOPPED, "Interrupted", stopped=True)
        except TuiAgentError as error:
            _log.debug("the turn ended", exc_info=True)
            limit = error.limit if isinstance(error, LimitReached) else ""
            return e.TurnEnded(turn, False, str(error), type(error).__name__, limit=limit)
        except Exception as error:  # an internal error must not end the session
            found = fault("An error in tui-agent ended the turn", error)
            return e.TurnEnded(turn, False, str(found), "Fault")
        finally:
            self._work = None
        last = self.state.chat.messages[-1]
        if last.kind == "agent" and last.cut and not last.changes:
            from tui_agent.turn.exchange import cut_off

            sentence = f"{cut_off(last.why)} {ASK_FOR_THE_REST}"
            return e.TurnEnded(turn, False, sentence, "ReplyCut", limit=limit)
        return e.TurnEnded(turn, True, limit=limit)

    async def _drive(self, steps: Steps, *, with_model: bool) -> str:
        # The phase informs the user if a message precedes the model's start.
        if with_model and self.state.model.status == "starting":
            self._journal.publish(e.PhaseChanged("starting"))
        if with_model:
            await self.get_ready()
            await self._begins()
        self._journal.publish(e.PhaseChanged("planning"))
        if with_model:
            await self._tell_level()
        kept = self.state.input.decisions
        self._decisions = [*kept, *(one for one in self._decisions if one not in kept)]
        pieces = ReplyChunks(self._journal)

        async def emit(event: e.Event) -> None:
            if isinstance(event, e.ReplyStreamed):
                pieces.add(event)
                return
            pieces.tell()
            if isinstance(event, e.Passing):
                self._journal.publish(event)
            elif isinstance(event, e.Lasting):
                await self._journal.record_soon(event)
                if isinstance(event, e.RequestSent):
                    standstill.end()
                    left = tuple(self._decisions)
                    if event.purpose == "main" and self.state.input.decisions != left:
                        await self._journal.record_soon(e.DecisionsKept(left))
            else:
                await self._journal.record(event)

        try:
            return await steps(self._context(), emit)
        finally:
            pieces.tell()


class ReplyChunks:
    """Emits at most every `TOLD_EVERY` seconds: each event costs a new state and a call of every listener."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._part: Part = ""
        self._texts: list[str] = []
        self._letters = 0
        self._writing = "", 0
        self._due: asyncio.TimerHandle | None = None

    def add(self, piece: e.ReplyStreamed) -> None:
        if self._texts and piece.part not in ("", self._part):
            self.tell()
        if piece.part:
            self._part = piece.part
            self._texts.append(piece.text)
        self._letters += piece.letters or len(piece.text)
        if piece.writing:
            self._writing = piece.writing, piece.files
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(TOLD_EVERY, self.tell)

    def tell(self) -> None:
        if self._due is None:
            return
        self._due.cancel()
        self._due = None
        piece = e.ReplyStreamed(self._part, "".join(self._texts), self._letters, *self._writing)
        self._part, self._texts, self._letters, self._writing = "", [], 0, ("", 0)
        self._journal.publish(piece)
        reply = self._journal.store.state.reply
        self._journal.grow(
            e.ReplyGrew(reply.turn, reply.summary, reply.message, reply.reasoning, reply.letters)
        )


def interruption_events(state: State) -> list[e.Event]:
    reply, paid = state.reply, state.usage.open
    events: list[e.Event] = []
    if paid is not None and state.turn.phase not in ("starting", "retrying"):
        events.append(e.UsageCounted(paid.estimate(reply.letters), paid.purpose))
    if reply.summary or reply.message or reply.reasoning:
        events.append(e.ReplyLeftOff(reply.turn, reply.summary, reply.message, reply.reasoning))
    return events
