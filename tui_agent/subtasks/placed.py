"""A sub-task in a place: the value sent there, and its session on the parent's side. The worker
(`session.worker`) runs the session; its events are applied here and stored in the run's log. The model is
asked here, so keys, pace and limits stay with the parent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_agent.edits.change import Pick
from tui_agent.errors import ModelError, PlaceLost, RequestRejected, TuiAgentError
from tui_agent.files.blobs import Blobs
from tui_agent.log.journal import Journal
from tui_agent.log.snapshot import messages_before
from tui_agent.log.storage import mark_closed
from tui_agent.model.client import Abilities, Chunk, JoinedChunks, Model, ModelRequest, TokenCount, estimate
from tui_agent.model.parts import Message
from tui_agent.places.link import Channel, EventHappened, Link, TextStored
from tui_agent.processes.serve import Send
from tui_agent.settings.schema import Settings, build, entries
from tui_agent.settings.values import checked
from tui_agent.store import events as e
from tui_agent.store.events import LASTING, Event, Lasting, Listener
from tui_agent.store.graph import SubTask
from tui_agent.store.state import ChatMessage, State

#: Settings for a worker; all others keep their defaults there. Names of a group end with a dot.
SHARED = (
    *("protocol", "effort", "max_output", "temperature", "max_steps", "request_timeout", "outline_tokens"),
    *("base_files", "planner_model", "mode", "files.", "known.", "context.", "instructions.", "bundling."),
    *("models.options", "models.local_window", "limits.", "commands.", "checks.", "permissions."),
    *("trial.env", "trial.memory", "trial.processes", "tools.off", "subtasks.max_seconds", "undo."),
)
_PASSING = (
    *(e.ReplyStreamed, e.PhaseChanged, e.RetryCounted, e.PromptRead, e.AttemptStarted, e.CallStarted),
    *(e.CommandPreparing, e.CommandWithdrawn, e.CommandPrinted, e.ChecksOutdated, e.ModelStatusChanged),
)
SENT: Mapping[str, type[Event]] = {**LASTING, **{kind.__name__: kind for kind in _PASSING}}


class Assignment(Struct, frozen=True):
    """`paths` are the files of its copy; in `place` the worker runs its checks, and `commands` allows those
    of the model there. `instructions` are the user's own, by file name.
    """

    task: SubTask
    part: str
    model: str
    settings: dict[str, Any]
    prompts: dict[str, dict[str, Any]]
    paths: list[str]
    place: str
    commands: bool = False
    start_folder: str = "."
    trusted: bool = False
    only: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    efforts: dict[str, str] = {}
    instructions: dict[str, str] = {}


def shared_settings(settings: Settings) -> dict[str, Any]:
    found = {}
    groups = tuple(one for one in SHARED if one.endswith("."))
    for key in entries():
        if key in SHARED or key.startswith(groups):
            group, _, name = key.rpartition(".")
            value = getattr(getattr(settings, group) if group else settings, name)
            found[key] = msgspec.to_builtins(value)
    return found


def settings_from(values: Mapping[str, Any]) -> Settings:
    """Raises `ValueError` for a value of another version."""
    return build({key: checked(key, value) for key, value in values.items()})


class Growth:
    """Requests of one purpose mostly extend each other: only new messages are sent."""

    def __init__(self) -> None:
        self._before: dict[str, list[Message]] = {}

    def shortened(self, request: ModelRequest) -> dict[str, Any]:
        before, now = self._before.get(request.purpose, []), list(request.messages)
        same = next(
            (n for n, (one, other) in enumerate(zip(before, now, strict=False)) if one != other), None
        )
        kept = min(len(before), len(now)) if same is None else same
        self._before[request.purpose] = now
        rest = replace(request, messages=tuple(now[kept:]))
        return {"kept": kept, "request": msgspec.to_builtins(rest)}

    def whole(self, params: Mapping[str, Any]) -> ModelRequest:
        """Raises a `msgspec.ValidationError`."""
        rest = msgspec.convert(params["request"], ModelRequest)
        kept = msgspec.convert(params["kept"], int)
        messages = [*self._before.get(rest.purpose, [])[: max(0, kept)], *rest.messages]
        self._before[rest.purpose] = messages
        return replace(rest, messages=tuple(messages))


class LinkModel:
    def __init__(self, link: Callable[[], Link]) -> None:
        self._link = link
        self._growth = Growth()

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def abilities(self, model: str) -> Abilities:
        return msgspec.convert(await self._link().call("abilities", {"model": model}), Abilities)

    async def count(self, model: str, texts: Sequence[str], *, wait: bool = False) -> TokenCount:
        return TokenCount(tuple(estimate(text) for text in texts), exact=False)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        items = self._link().stream("stream", self._growth.shortened(request))
        try:
            async for item in items:
                yield msgspec.convert(item, Chunk)
        except PlaceLost as error:
            raise ModelError(error.what, error.remedy) from error
        finally:
            await items.aclose()


class PlacedSession:
    """See `RunSession`. Raises `PlaceLost` if the worker is lost."""

    def __init__(
        self,
        channel: Channel,
        journal: Journal,
        blobs: Blobs,
        model: Model,
        models: Collection[str],
    ) -> None:
        """`models` are the names that the worker may ask."""
        self.link = Link(channel, {"abilities": self._abilities, "stream": self._stream}, self._taken)
        self._journal, self._blobs = journal, blobs
        self._model, self._models, self._growth = model, frozenset(models), Growth()

    @property
    def state(self) -> State:
        return self._journal.store.state

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        return self._journal.store.subscribe(listener)

    async def begin(self, assignment: Assignment, packed: AsyncGenerator[bytes, None] | None = None) -> None:
        """`packed` are pieces of the copy, if the worker has none."""
        await self.link.greeted()
        try:
            if packed is not None:
                async for piece in packed:
                    await self.link.call("unpack", {"piece": msgspec.to_builtins(piece)})
            await self.link.call("begin", msgspec.to_builtins(assignment))
        except PlaceLost:
            raise
        except TuiAgentError as error:
            raise PlaceLost(error.what, error.remedy) from error

    def start(self, paths: list[str]) -> None:
        """The worker has begun."""

    async def run_turn(self, text: str, attachments: Sequence[str] = ()) -> None:
        await self.link.call("turn", {"text": text, "attachments": list(attachments)})

    async def apply(self, picks: Sequence[Pick]) -> None:
        await self.link.call("apply", {"picks": msgspec.to_builtins(list(picks))})

    async def subtasks_settled(self) -> None:
        """It has none: a worker does not split its part."""

    async def earlier(self, before: int, count: int = 50) -> tuple[ChatMessage, ...]:
        log = self._journal.log
        if log is None:
            return ()
        return await asyncio.to_thread(messages_before, log.path, before, count, False, [])

    async def close(self) -> None:
        try:
            await self.link.close()
        finally:
            await self._journal.close()
            await asyncio.to_thread(self._blobs.flush)
            if self._journal.log is not None:
                await asyncio.to_thread(mark_closed, self._journal.log.path)

    async def _abilities(self, params: dict[str, Any], send: Send) -> Any:
        return msgspec.to_builtins(await self._model.abilities(self._allowed(params["model"])))

    async def _stream(self, params: dict[str, Any], send: Send) -> None:
        request = self._growth.whole(params)
        self._allowed(request.model)

        async def passed_on(chunk: Chunk) -> None:
            await send(msgspec.to_builtins(chunk))

        out = JoinedChunks(passed_on)
        stream = self._model.stream(replace(request, files=()))
        try:
            async for chunk in stream:
                await out.add(chunk)
        finally:
            with suppress(PlaceLost):
                await out.flush()
            await stream.aclose()

    def _allowed(self, model: str) -> str:
        if model not in self._models:
            raise RequestRejected(f"The worker may not ask {model[:100]}", "use the model of the sub-task")
        return model

    async def _taken(self, frame: EventHappened | TextStored) -> None:
        if isinstance(frame, TextStored):
            await asyncio.to_thread(self._blobs.hold, frame.data)
            return
        kind = SENT.get(str(frame.event.get("type")))
        if kind is None:
            raise ValueError(f"unknown event {str(frame.event.get('type'))[:40]}")
        event = msgspec.convert(frame.event, kind)
        if isinstance(event, Lasting):
            await self._journal.record_soon(event)
        else:
            self._journal.publish(event)
