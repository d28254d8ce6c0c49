"""Turns one after the other: what is sent while one runs waits; one can be stopped; one can ask."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tui_agent.context.memory import GO_ON
from tui_agent.debug_log import fault
from tui_agent.edits.change import Change
from tui_agent.errors import EditFailed, LimitReached, SessionError, TuiAgentError
from tui_agent.log.journal import Journal
from tui_agent.processes.background import standstill
from tui_agent.session.effort_words import split_effort, with_effort
from tui_agent.settings.schema import Effort
from tui_agent.store import events as e
from tui_agent.store.state import Decision, State

_log = logging.getLogger(__name__)
STOPPED = "Stopped: what came so far is kept."
ASK_FOR_THE_REST = "before it was complete: send “continue” to ask for the rest"
#: Seconds for which the first request of a turn has the processor for itself, at the most.
REQUEST_FIRST = 0.1
#: Seconds between two tellings of what streams: a frame or two of the screen.
TOLD_EVERY = 0.03
Part = Literal["summary", "message", "reasoning", ""]
if TYPE_CHECKING:
    from tui_agent.tools.context import Emit
    from tui_agent.turn.context import TurnContext

    #: What a turn does, told as events; the limit that ended it, "" for none.
    Steps = Callable[[TurnContext, Emit], Awaitable[str]]


class Turns:
    """Runs the turns of one session, one at a time; `after` is called when one has ended well."""

    def __init__(
        self,
        journal: Journal,
        context: Callable[[], TurnContext],
        get_ready: Callable[[], Awaitable[None]],
        tell_level: Callable[[], Awaitable[None]],
        after: Callable[[], Awaitable[None]],
    ) -> None:
        self._journal = journal
        self._context = context
        self.get_ready = get_ready
        self._tell_level = tell_level
        self._after = after
        #: A turn from its first record to its last; only `_work`, the part between them, is ever cancelled.
        self._task: asyncio.Task[None] | None = None
        self._work: asyncio.Task[str] | None = None
        self._stopped = False
        self._batch_awaited = False
        self._question: tuple[str, asyncio.Future[Decision]] | None = None
        self._decisions: list[Decision] = []
        #: What conflicted when it was applied, and the model is asked about when the turn that runs has ended.
        self._conflicts: list[Change] = []
        #: How many turns in a row nobody asked for.
        self._unasked = 0

    @property
    def state(self) -> State:
        return self._journal.store.state

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def submit(self, text: str, attachments: Sequence[str] = (), effort: Effort | None = None) -> None:
        """Begin a turn, or queue the message. It is on disk when this returns.

        Which of the two is decided before anything is waited for, so that no two messages begin a turn each.
        """
        if not text.strip():
            return
        draft = self.state.input.draft
        if self.running and self._stopped and self._task is not None:
            await asyncio.wait([self._task])  # it is ending: what is sent now is not meant for its queue
        if self.running:
            await self._journal.record(e.MessageQueued(with_effort(effort, text)))
            if not self.running and not self._stopped:
                self._begin_next()  # the turn ended while the message was written
        else:
            await asyncio.shield(self._begin(text, attachments, effort))
        if draft and self.state.input.draft == draft:
            self._journal.tell(e.DraftChanged(""))
            self._journal.forget(["draft"])

    def ask_again(self, conflicts: Sequence[Change]) -> None:
        """Go on with the last turn for changes that conflicted when they were applied, at once or when it has ended."""
        self._conflicts += conflicts
        if not self.running:
            self._stopped = False
            self._journal.tell(e.PhaseChanged("planning"))
            self._begin_next()

    def send_queue(self) -> None:
        """Begin with the messages that a stopped turn left waiting; nothing happens while a turn runs."""
        if not self.running:
            self._stopped = False
            self._begin_next()

    def compact(self) -> None:
        """Let older messages give way to a summary. Raises `SessionError` while a turn runs."""
        if self.running:
            raise SessionError("A turn is running: messages are summarised between turns", "wait, or stop it")
        from tui_agent.turn.window import compact as steps

        self._stopped = False
        self._journal.tell(e.PhaseChanged("planning"))
        self._task = asyncio.create_task(
            self._to_its_end(self.state.turn.number, steps, again=True), name="compacting"
        )

    async def set_queue(self, queue: Sequence[str]) -> None:
        await self._journal.record(e.QueueChanged(tuple(queue)))

    async def stop(self) -> None:
        """End the running turn; what came so far stays. The queue is not begun."""
        if self._task is None or self._task.done():
            return
        self._stopped, self._conflicts = True, []
        if self._work is not None:
            self._work.cancel()
        await asyncio.wait([self._task])

    async def finished(self) -> None:
        """Wait until nothing runs, queued messages included."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def batch_complete(self) -> bool:
        """Wait while the running turn is still proposing changes: a batch is all that one turn proposes.

        False where another call waits for the same already. Raises EditFailed where the turn did not end well, since
        nobody knows then what else would have belonged to the batch.
        """
        if not _is_proposing(self.state):
            return True
        if self._batch_awaited:
            return False
        self._batch_awaited = True
        try:
            sentence = "The reply is still being proposed: all of it is applied when it is complete"
            await self._journal.record(e.NoticeGiven("info", sentence))
            ended = asyncio.Event()
            done = self._journal.store.subscribe(
                lambda event, _: ended.set() if isinstance(event, e.TurnEnded) else None
            )
            try:
                if self.state.turn.running:
                    await ended.wait()
            finally:
                done()
        finally:
            self._batch_awaited = False
        if not self.state.turn.ok:
            raise EditFailed(
                "Nothing was applied, the turn ended before its reply was complete",
                "look at what there is, then apply it",
            )
        return True

    async def ask(self, action: str, offered: Sequence[str]) -> Decision:
        """Put a question to the person and wait for a decision, on this action or another; called by the turn."""
        if self._decisions:
            return self._decisions.pop(0)
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._question = (action, future)
        try:
            return await future
        finally:
            self._question = None

    async def answer(self, action: str, path: str = "", reason: str = "") -> None:
        """The person's answer to the open question about `action`. Raises `SessionError` when none is open."""
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
        """What was decided unasked since this was last called; called by the turn."""
        decisions, self._decisions = self._decisions, []
        return decisions

    async def decide(self, decision: Decision) -> None:
        """The person's word on an action of the plan: done at once, or with the next request.

        Raises `SessionError` for an action that is not there, and for one that has gone out and is to be let go.
        """
        action = decision.action
        if all(slot.action.name != action for slot in self.state.plan.actions):
            raise SessionError(f"The plan has no action “{action}”", "choose one that it shows")
        if self._question is not None and not self._question[1].done():
            self._question[1].set_result(decision)
            return
        out = self.state.turn.phase not in ("starting", "planning", "finding", "waiting")
        if out and not (decision.path or decision.patterns):
            raise SessionError(
                f"The request with “{action}” has gone out already", "say in the chat what to leave alone"
            )
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
        attachments: Sequence[str],
        effort: Effort | None,
        *,
        queued: bool = False,
        unasked: bool = False,
    ) -> asyncio.Future[None]:
        """Begin a turn, which runs from here on; what comes back is done when the message is on disk."""
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        begun.add_done_callback(
            lambda told: told.cancelled() or told.exception()
        )  # of a queued one nobody asks
        self._stopped = False
        self._unasked = self._unasked + 1 if unasked else 0
        started = e.TurnStarted(self.state.next_turn, text, queued, tuple(attachments), effort, unasked)
        self._task = asyncio.create_task(self._run(started, begun), name="turn")
        return begun

    def _begin_next(self, *, ended_well: bool = False) -> None:
        waiting = [self.state.review.change(change.id) for change in self._conflicts]
        conflicts = [change for change in waiting if change is not None and change.state == "conflict"]
        self._conflicts = []
        if conflicts:
            self._task = asyncio.create_task(self._run_again(conflicts), name="turn")
        elif self.state.input.queue:
            effort, text = split_effort(self.state.input.queue[0])
            self._begin(text, (), effort, queued=True)
        elif ended_well and self._goes_on_by_itself():
            self._begin(GO_ON[0], (), None, unasked=True)

    def _goes_on_by_itself(self) -> bool:
        """Whether a batch is carried on without the person, after a turn that did some of it: not where what was to be
        applied waits for the person."""
        settings, state = self._context().settings, self.state
        if settings.autonomy != "auto" or state.turn.limit or (settings.auto_apply and state.review.open):
            return False
        if settings.limits.turns and self._unasked + 1 >= settings.limits.turns:
            return False
        return any(batch.left and batch.last > 0 for batch in state.batches[:1])

    async def _run(self, started: e.TurnStarted, begun: asyncio.Future[None]) -> None:
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

            return await run(context, started.request, started.attachments, emit)

        await self._to_its_end(started.turn, steps)

    async def _run_again(self, conflicts: Sequence[Change]) -> None:
        from tui_agent.turn.turn import run_again

        turn = self.state.turn.number
        await self._to_its_end(turn, lambda context, emit: run_again(context, conflicts, emit), again=True)

    async def _to_its_end(self, turn: int, steps: Steps, *, again: bool = False) -> None:
        """Run the turn, and say how it ended. One that goes on for conflicts had ended well before: where the model
        cannot be asked again, the person is left to settle them."""
        started = time.monotonic()
        ended: dict[str, Any] = await self._ended(turn, steps)
        if again and not ended["ok"] and not self._stopped:
            sentence = f"The model was asked again without success: {ended['error']}"
            await self._journal.record(e.NoticeGiven("warning", sentence))
            ended = {"ok": True, "limit": ended.get("limit", "")}
        seconds = round(time.monotonic() - started, 3)
        await self._journal.record(*left_off(self.state), e.TurnEnded(turn, seconds=seconds, **ended))
        if ended["ok"]:
            await self._after()
        if not self._stopped:
            self._begin_next(ended_well=ended["ok"])

    async def _ended(self, turn: int, steps: Steps) -> dict:
        """Run the turn to its end; how it ended, as fields of `TurnEnded`."""
        self._work = asyncio.create_task(self._drive(steps), name=f"turn {turn}")
        if self._stopped:  # while its beginning was written
            self._work.cancel()
        try:
            limit = await self._work
        except asyncio.CancelledError:
            self._stopped = True
            return {"ok": False, "error": STOPPED, "kind": "Interrupted", "stopped": True}
        except TuiAgentError as error:
            _log.debug("the turn ended", exc_info=True)
            limit = error.limit if isinstance(error, LimitReached) else ""
            return {"ok": False, "error": str(error), "kind": type(error).__name__, "limit": limit}
        except Exception as error:  # the turn's outer edge: a fault of ours must not take the session with it
            found = fault("A fault in tui-agent ended the turn", error)
            return {"ok": False, "error": str(found), "kind": "Fault"}
        finally:
            self._work = None
        last = self.state.chat.messages[-1]
        if last.kind == "agent" and last.cut and not last.changes:
            from tui_agent.turn.exchange import cut_off

            sentence = f"{cut_off(last.why)} {ASK_FOR_THE_REST}"
            return {"ok": False, "error": sentence, "kind": "ReplyCut", "limit": limit}
        return {"ok": True, "limit": limit}

    async def _drive(self, steps: Steps) -> str:
        # a message that is sent before the model is known says so by its phase
        if self.state.model.status == "starting":
            self._journal.tell(e.PhaseChanged("starting"))
        await self.get_ready()
        self._journal.tell(e.PhaseChanged("planning"))
        await self._tell_level()
        kept = self.state.input.decisions
        self._decisions = [*kept, *(one for one in self._decisions if one not in kept)]
        pieces = Pieces(self._tell)

        async def emit(event: e.Event) -> None:
            if isinstance(event, e.ReplyStreamed):
                pieces.add(event)
                return
            pieces.tell()
            if isinstance(event, e.Passing):
                self._journal.tell(event)
            elif isinstance(event, e.Lasting):
                await self._journal.record_soon(event)
                await self._let_go(event)
            else:
                await self._journal.record(event)

        try:
            return await steps(self._context(), emit)
        finally:
            pieces.tell()

    async def _let_go(self, event: e.Event) -> None:
        """Decisions that went out with a request wait no more, and other work goes on."""
        if isinstance(event, e.RequestSent):
            standstill.end()
        left = tuple(self._decisions)
        if (
            isinstance(event, e.RequestSent)
            and event.purpose == "main"
            and self.state.input.decisions != left
        ):
            await self._journal.record_soon(e.DecisionsKept(left))

    def _tell(self, event: e.ReplyStreamed) -> None:
        self._journal.tell(event)
        reply = self.state.reply
        self._journal.grow(
            e.ReplyGrew(reply.turn, reply.summary, reply.message, reply.reasoning, reply.letters)
        )


class Pieces:
    """Pieces of an answer that come faster than anybody looks, told together after `TOLD_EVERY` seconds at most.

    A reply of two million letters comes in half a million pieces. Told one by one, each costs a new state, a look of
    every listener and a copy of all that was said before it.
    """

    def __init__(self, tell: Callable[[e.ReplyStreamed], None]) -> None:
        self._tell = tell
        self._part: Part = ""
        self._texts: list[str] = []
        self._letters = 0
        self._writing = "", 0
        self._due: asyncio.TimerHandle | None = None

    def add(self, piece: e.ReplyStreamed) -> None:
        """Keep a piece; what is shown nowhere counts with what is."""
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
        """Tell what is kept, if there is anything."""
        if self._due is None:
            return
        self._due.cancel()
        self._due = None
        piece = e.ReplyStreamed(self._part, "".join(self._texts), self._letters, *self._writing)
        self._part, self._texts, self._letters, self._writing = "", [], 0, ("", 0)
        self._tell(piece)


def _is_proposing(state: State) -> bool:
    """Whether the turn that runs has begun a batch: it has read a reply with changes, or proposed some."""
    if not state.turn.running:
        return False
    turn = state.turn.number
    return state.turn.proposes or any(change.turn == turn for change in state.review.open)


def left_off(state: State) -> list[e.Event]:
    """What keeps the part of an answer that has come and will not go on, and counts what it cost by our own count;
    nothing where there is none."""
    reply, paid = state.reply, state.usage.open
    events: list[e.Event] = []
    if paid is not None and state.turn.phase not in ("starting", "retrying"):
        events.append(e.UsageCounted(paid.estimate(reply.letters), paid.purpose))
    if reply.summary or reply.message or reply.reasoning:
        events.append(e.ReplyLeftOff(reply.turn, reply.summary, reply.message, reply.reasoning))
    return events
