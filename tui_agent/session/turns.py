"""Turns one after the other: what is sent while one runs waits; one can be stopped; one can ask."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from tui_agent.errors import SessionError, TuiAgentError
from tui_agent.session.journal import Journal
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.turn.desk import Decision, Desk

STOPPED = "Stopped: what came so far is kept."
CUT = "The answer was cut off before it was complete: send “continue” to ask for the rest"


class Turns:
    """Runs the turns of one session, one at a time; `after` is called when one has ended well."""

    def __init__(
        self,
        journal: Journal,
        desk: Callable[[], Desk],
        get_ready: Callable[[], Awaitable[None]],
        after: Callable[[], Awaitable[None]],
    ) -> None:
        self._journal = journal
        self._desk = desk
        self._get_ready = get_ready
        self._after = after
        self._task: asyncio.Task[None] | None = None
        self._question: tuple[str, asyncio.Future[Decision]] | None = None
        self._decisions: list[Decision] = []

    @property
    def state(self) -> State:
        return self._journal.store.state

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def submit(self, text: str, attachments: Sequence[str] = ()) -> None:
        """Begin a turn, or queue the message. It is on disk when this returns."""
        if not text.strip():
            return
        draft = self.state.input.draft
        if self.running:
            await self._journal.record(e.MessageQueued(text))
        else:
            await self._begin(text, attachments, queued=False)
        if draft and self.state.input.draft == draft:
            self._journal.tell(e.DraftChanged(""))

    async def set_queue(self, queue: Sequence[str]) -> None:
        await self._journal.record(e.QueueChanged(tuple(queue)))

    async def stop(self) -> None:
        """End the running turn; what came so far stays. The queue is not begun."""
        if self._task is None or self._task.done():
            return
        self._task.cancel()
        await asyncio.wait([self._task])

    async def finished(self) -> None:
        """Wait until nothing runs, queued messages included."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

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

    async def answer(self, action: str, path: str = "") -> None:
        """The person's answer to the open question about `action`. Raises `SessionError` when none is open."""
        if self._question is None and self.state.turn.waiting_for == action:
            self._decisions.append(Decision(action, path))
            return
        if self._question is None or self._question[0] != action:
            raise SessionError(f"Nobody asks about “{action}” now", "answer while its question is open")
        future = self._question[1]
        if not future.done():
            future.set_result(Decision(action, path))

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
                e.NoticeGiven("info", f"{wanted} goes with the next request"),
            )

    async def _begin(self, text: str, attachments: Sequence[str], queued: bool) -> None:
        turn = self.state.turn.number + 1
        await self._journal.record(e.TurnStarted(turn, text, queued, tuple(attachments)))
        self._task = asyncio.create_task(self._run(turn, text, tuple(attachments)), name=f"turn {turn}")

    async def _run(self, turn: int, text: str, attachments: Sequence[str]) -> None:
        started = time.monotonic()
        ended = await self._ended(turn, text, attachments)
        seconds = round(time.monotonic() - started, 3)
        await self._journal.record(*left_off(self.state), e.TurnEnded(turn, seconds=seconds, **ended))
        if ended["ok"]:
            await self._after()
        if self.state.input.queue and not ended.get("stopped"):
            await self._begin(self.state.input.queue[0], (), queued=True)

    async def _ended(self, turn: int, text: str, attachments: Sequence[str]) -> dict:
        """Run the turn to its end; how it ended, as fields of `TurnEnded`."""
        try:
            await self._drive(turn, text, attachments)
        except asyncio.CancelledError:
            return {"ok": False, "error": STOPPED, "kind": "Interrupted", "stopped": True}
        except TuiAgentError as error:
            return {"ok": False, "error": str(error), "kind": type(error).__name__}
        except Exception as error:  # the turn's outer edge: a fault of ours must not take the session with it
            return {"ok": False, "error": f"A fault in tui-agent ended the turn: {error!r}", "kind": "Fault"}
        last = self.state.chat.messages[-1]
        if last.kind == "agent" and last.cut and not last.changes:
            return {"ok": False, "error": CUT, "kind": "ReplyCut"}
        return {"ok": True}

    async def _drive(self, turn: int, text: str, attachments: Sequence[str]) -> None:
        from tui_agent.turn.turn import run

        await self._prepare()
        kept = self.state.input.decisions
        self._decisions = [*kept, *(one for one in self._decisions if one not in kept)]
        async for event in run(self._desk(), turn, text, attachments):
            if isinstance(event, e.Passing):
                self._journal.tell(event)
                self._keep_reply(event)
            else:
                await self._journal.record(event)
                await self._let_go(event)

    async def _prepare(self) -> None:
        """Wait for the model to be known; a message that is sent before that says so by its phase."""
        if self.state.model.status == "starting":
            self._journal.tell(e.PhaseChanged("starting"))
        await self._get_ready()
        self._journal.tell(e.PhaseChanged("planning"))

    async def _let_go(self, event: e.Event) -> None:
        """Decisions that went out with a request wait no more."""
        left = tuple(self._decisions)
        if (
            isinstance(event, e.RequestSent)
            and event.purpose == "main"
            and self.state.input.decisions != left
        ):
            await self._journal.record(e.DecisionsKept(left))

    def _keep_reply(self, event: e.Passing) -> None:
        if isinstance(event, e.ReplyStreamed):
            reply = self.state.reply
            self._journal.grow(e.ReplyGrew(reply.turn, reply.summary, reply.message, reply.reasoning))


def left_off(state: State) -> list[e.Event]:
    """What keeps the part of an answer that has come and will not go on; nothing where there is none."""
    reply = state.reply
    if not (reply.summary or reply.message or reply.reasoning):
        return []
    return [e.ReplyLeftOff(reply.turn, reply.summary, reply.message, reply.reasoning)]
