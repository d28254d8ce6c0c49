"""Adapts requests to local servers: context windows, slots, options, diagnosis of empty replies. Uploads
files. Requests to remote providers are unchanged.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import ChainMap
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.errors import (
    ContextTooLong,
    EmptyReply,
    ModelError,
    Overloaded,
    RequestRejected,
    SchemaRefused,
    Unreachable,
)
from tui_agent.model import servers
from tui_agent.model.client import (
    Abilities,
    CallChunk,
    CanReach,
    CanWarm,
    Chunk,
    Model,
    ModelRequest,
    ProgressChunk,
    ReasoningChunk,
    TextChunk,
    TokenCount,
    UsageChunk,
    reply_room,
)
from tui_agent.model.model_listing import ListAnswer, ListsModels
from tui_agent.model.model_table import LOCAL_ADDRESSES, provider_of
from tui_agent.model.parts import calls_of, text_of
from tui_agent.model.servers import FIRST_WINDOW, ServerMemory, ServerModel

_log = logging.getLogger(__name__)
#: A local server can process a long prompt for minutes.
LOCAL_TIMEOUT_SECONDS = 900.0
#: Seconds before an unresponsive server is examined again.
ASK_AGAIN_SECONDS = 10.0
#: Share of our estimate; a lower reported input count means a truncated prompt.
READ_SHARE = 0.6
#: Smaller requests do not calibrate token counts, and smaller counts do not reveal windows: some servers
#: exclude cached tokens.
LEAST_COUNTED, LEAST_WINDOW = 500, 1_000
MOST_RATIO = 6.0
WAITS = "waiting for the server to answer another request"
LEAST_REPLY = 64
#: Servers that generate until the window is full if there is no output limit. vLLM rejects limits above the
#: window.
_NEEDS_LIMIT = ("llama.cpp", "llama-cpp-python", "Ollama", "LM Studio")


class _Place(Struct, frozen=True):
    address: str
    name: str
    key: str = ""


class LocalModels:
    """`memory` stores learned properties. `window` is the maximum window, in tokens, to request from servers
    with a configurable one.
    """

    def __init__(self, inner: Model, memory: ServerMemory, window: int) -> None:
        self.inner = inner
        self.memory = memory
        self._window = window
        self._environment: dict[str, str] = {}
        self._known: dict[_Place, ServerModel] = {}
        self._examining: dict[_Place, asyncio.Lock] = {}
        self._warmed: set[_Place] = set()
        self._silent: dict[_Place, float] = {}
        #: The last requested window: a smaller one would reload the model.
        self._asked_for: dict[_Place, int] = {}
        self._reporting: set[_Place] = set()

    async def start(self) -> None:
        await self.inner.start()

    async def close(self) -> None:
        await self.inner.close()

    async def reach(self, environment: Mapping[str, str]) -> None:
        self._environment.update(environment)
        if isinstance(self.inner, CanReach):
            await self.inner.reach(environment)

    async def list_models(self, provider: str, *, again: bool = False) -> ListAnswer:
        if not isinstance(self.inner, ListsModels):
            return ListAnswer()
        return await self.inner.list_models(provider, again=again)

    async def upload(self, model: str, name: str, text: str) -> str:
        return await self._uploader().upload(model, name, text)

    async def delete_files(self, model: str, ids: list[str]) -> None:
        await self._uploader().delete_files(model, ids)

    def _uploader(self) -> StoresFiles:
        if not isinstance(self.inner, StoresFiles):
            raise RequestRejected("This model does not accept files", "set files_api to off")
        return self.inner

    async def count(self, model: str, texts: Sequence[str], *, wait: bool = False) -> TokenCount:
        counted = await self.inner.count(model, texts, wait=wait)
        place = self._place(model)
        ratio = self._ratio(place) if place else 1.0
        if ratio == 1.0:
            return counted
        return TokenCount(tuple(round(count * ratio) for count in counted.counts), exact=False)

    async def warm(self, model: str) -> None:
        """Examines a local server, or connects to a remote one. Never raises."""
        try:
            if (place := await self._reached(model)) is not None:
                if place not in self._warmed:
                    self._warmed.add(place)
                    await self.abilities(model)
            elif isinstance(self.inner, CanWarm):
                await self.inner.warm(model)
        except ModelError:
            _log.debug("the server was not reached ahead", exc_info=True)

    async def abilities(self, model: str) -> Abilities:
        place = await self._reached(model)
        if place is None:
            return await self.inner.abilities(model)
        async with self._examining.setdefault(place, asyncio.Lock()):
            server = await self._server(place)
            if server is None:
                return await self.inner.abilities(model)
            # An unidentified server with a key may be a gateway to a paid provider, so it gets no trial request.
            # On this machine a placeholder key does not count: many clients demand one.
            keyed = bool(place.key) and not (servers.is_here(place.address) and servers.is_no_key(place.key))
            kind = server.kind or ("gateway" if keyed else "local")
            if not server.schema and kind != "gateway":
                with suppress(ModelError):  # the request reports the error
                    server = await self._try_out(place, server)
        schema = server.schema in ("json_schema", "json_object", "guided_json")
        if not server.kind:
            known = await self.inner.abilities(model)
            known = replace(known, window=server.window or known.window, server=kind)
            known = known if kind == "gateway" else replace(known, schema=schema)
            return replace(known, known=True, prices=(0.0, 0.0)) if _is_free(model, server) else known
        return Abilities(
            model=model,
            window=self._window_of(server),
            tools=server.tools,
            schema=schema,
            known=True,
            server=kind,
            slots=server.slots,
            prices=(0.0, 0.0),
        )

    async def test(self, model: str, environment: Mapping[str, str]) -> str:
        """Describes a local server after a small request; "" for a remote one. Stores `environment`, which
        has its address. Raises a `ModelError`.
        """
        if environment:
            self.memory.found(model, environment)
        place = await self._reached(model)
        if place is None:
            return ""
        self.memory.learn(place.address, place.name, ServerModel())
        self._known.pop(place, None)
        self._silent.pop(place, None)
        server = await self._server(place)
        if server is None:
            raise Unreachable(
                f"No server responds at {place.address}", "start the server, or choose another model"
            )
        server = await self._try_out(place, server)
        return server_summary(server, self._window_of(server))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        place = await self._reached(request.model)
        server = await self._server(place) if place else None
        if place is None or server is None:
            async with aclosing(self.inner.stream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        beside = request.purpose != "main"
        waits = self.memory.is_full(place.address, server.slots)
        if waits:
            yield ProgressChunk(waits=WAITS)
        async with (
            self.memory.place(place.address, server.slots, last=beside) as slot,
            aclosing(self._watched(request, place, server, slot)) as chunks,
        ):
            if waits:
                yield ProgressChunk()
            async for chunk in chunks:
                yield chunk

    async def _watched(
        self, request: ModelRequest, place: _Place, server: ServerModel, slot: int
    ) -> AsyncGenerator[Chunk, None]:
        """Learns from counts and errors, and fails for a truncated prompt."""
        texts = [
            (text_of(message) + "".join(f"{call.name}{call.arguments}" for call in calls_of(message)))
            for message in request.messages
        ]
        texts += [str(request.tools)] if request.tools else []
        raw = sum((await self.inner.count(request.model, texts)).counts)
        size = round(raw * self._ratio(place))
        prepared = self._prepared(request, place, server, slot, size)
        said = False
        try:
            async with aclosing(self.inner.stream(prepared)) as chunks:
                async for chunk in chunks:
                    said = said or isinstance(chunk, TextChunk | CallChunk | ReasoningChunk)
                    if isinstance(chunk, UsageChunk):
                        self._reporting.add(place)
                        self._check(chunk, place, server, request.model, size, raw)
                        chunk = replace(chunk, cost=0.0 if _is_free(request.model, server) else chunk.cost)
                    yield chunk
        except ContextTooLong as error:
            self._learn_from(str(error.what), place, raw)
            raise
        except SchemaRefused:
            self._learn(place, schema="none")
            raise
        except (Unreachable, EmptyReply) as error:
            dispensable = request.purpose == "condense"
            if said or dispensable or server.kind == "vLLM" or isinstance(error, Overloaded):
                raise
            why = await servers.why_silent(place.address, place.name, request.messages, place.key)
            window = self._known.get(place, ServerModel()).window
            if any(servers.sizes_in(why)):
                self._learn_from(why, place, raw)
                why = " ".join(why.split())[:200]
            elif window and size > window:
                why = f"the server said nothing, and {size:,} tokens were sent"
            else:
                why = ""
            if why:
                raise ContextTooLong(
                    f"The request is too long for {request.model} ({why})",
                    "close files or start a new session, or start the server with a larger window",
                ) from error
            raise

    def _prepared(
        self, request: ModelRequest, place: _Place, server: ServerModel, slot: int, size: int
    ) -> ModelRequest:
        options: dict[str, Any] = {}
        if server.kind == "llama.cpp":
            options = {"cache_prompt": True, "return_progress": True}
            if server.slots > 1:
                options["id_slot"] = slot
        window = self._window_of(server)
        if server.kind == "Ollama":
            largest = window
            window = max(self._asked_for.get(place, 0), server.window, FIRST_WINDOW)
            while window < size + reply_room(largest) and window < largest:
                window *= 2
            self._asked_for[place] = options["num_ctx"] = window = min(window, largest)
        most = max(LEAST_REPLY, window - size) if window and server.kind in _NEEDS_LIMIT else 0
        return replace(
            request,
            timeout=max(request.timeout, LOCAL_TIMEOUT_SECONDS),
            options=options,
            most=most,
            schema=None if server.schema == "none" else request.schema,
            schema_form=server.schema if request.schema else "",
        )

    def _window_of(self, server: ServerModel) -> int:
        if server.kind == "Ollama":
            return min(max(server.window, self._window), server.most or self._window)
        return server.window

    def _check(
        self, usage: UsageChunk, place: _Place, server: ServerModel, model: str, size: int, raw: int
    ) -> None:
        """Raises `ContextTooLong` if the server truncated the prompt."""
        if size < LEAST_COUNTED or not usage.input or raw < LEAST_COUNTED:
            return
        cut = usage.input < READ_SHARE * size and server.kind in ("Ollama", "LM Studio")
        if (
            cut
            and usage.input >= LEAST_WINDOW
            and (not server.window or usage.input >= READ_SHARE / 2 * server.window)
        ):
            # Ollama's window is the one requested, up to its maximum.
            known = server.most if server.kind == "Ollama" else server.window
            learned = min(known or usage.input, usage.input)
            self._learn(place, **{"most" if server.kind == "Ollama" else "window": learned})
            raise ContextTooLong(
                f"{model} read only {usage.input:,} of about {size:,} tokens: the server left out the rest",
                "close files or start a new session, or start the server with a larger window",
            )

    def _learn_from(self, words: str, place: _Place, raw: int) -> None:
        window, asked = servers.sizes_in(words)
        if window:
            self._learn(place, window=window)
        # Reported counts already correct our estimate.
        if asked > raw >= LEAST_COUNTED / 2 and place not in self._reporting:
            self._learn(place, ratio=min(MOST_RATIO, asked / raw))

    def _learn(self, place: _Place, **facts: Any) -> None:
        learned = replace(self.memory.learned(place.address, place.name), **facts)
        self.memory.learn(place.address, place.name, learned)
        if place in self._known:
            self._known[place] = replace(self._known[place], **facts)

    def _ratio(self, place: _Place) -> float:
        return self.memory.learned(place.address, place.name).ratio

    async def _try_out(self, place: _Place, server: ServerModel) -> ServerModel:
        try:
            async with self.memory.place(place.address, server.slots, last=True):
                tried = await servers.try_out(place.address, place.name, server, place.key)
        except (OSError, TimeoutError) as error:
            raise Unreachable(
                f"No server responds at {place.address} ({error})",
                "start the server, or choose another model",
            ) from error
        except (ValueError, servers.ServerRefusal) as error:
            what = " ".join(str(error).split())[:200]
            raise RequestRejected(
                f"The server at {place.address} does not answer ({what})", "check the server's log"
            ) from error
        self._learn(place, schema=tried.schema)
        return tried

    async def _server(self, place: _Place) -> ServerModel | None:
        if place in self._known:
            return self._known[place]
        learned = self.memory.learned(place.address, place.name)
        if time.monotonic() - self._silent.get(place, -ASK_AGAIN_SECONDS) < ASK_AGAIN_SECONDS:
            return None
        if self.memory.is_busy(place.address):
            return learned
        found = await servers.examine(place.address, place.name, place.key)
        if found is None:
            self._silent[place] = time.monotonic()
            return None
        server = replace(
            found,
            window=min(found.window or learned.window, learned.window or found.window),
            most=min(found.most or learned.most, learned.most or found.most),
            schema=learned.schema,
            ratio=learned.ratio,
        )
        self._known[place] = server
        self._learn(place, kind=found.kind, slots=found.slots)
        return server

    async def _reached(self, model: str) -> _Place | None:
        place, provider = self._place(model), provider_of(model)
        if place is None or provider is None:
            return place
        needed = {provider.address: place.address}
        if provider.keys and not place.key:  # local servers require no key, but their clients do
            needed[provider.keys[0]] = servers.NO_KEY
        missing = {
            name: value
            for name, value in needed.items()
            if not os.environ.get(name) and self._environment.get(name) != value
        }
        if missing:
            await self.reach(missing)
        return place

    def _place(self, model: str) -> _Place | None:
        environment = ChainMap(os.environ, self.memory.variables(model), self._environment)
        address, provider = servers.address_of(model, environment), provider_of(model)
        if not address or provider is None:
            return None
        key = environment.get(provider.address.replace("_BASE", "_KEY"), "")
        key = "" if key == servers.NO_KEY else key
        return _Place(address, model.removeprefix(f"{provider.name}/"), key)


def _is_free(model: str, server: ServerModel) -> bool:
    return bool(server.kind) or model.partition("/")[0] in LOCAL_ADDRESSES


def server_summary(server: ServerModel, window: int) -> str:
    """`llama.cpp, 4,096 tokens, one request at a time`."""
    parts = [server.kind or "a local server", *([f"{window:,} tokens"] if window else [])]
    if server.slots:
        parts.append("one request at a time" if server.slots == 1 else f"{server.slots} requests at a time")
    return ", ".join(parts)


@runtime_checkable
class StoresFiles(Protocol):
    async def upload(self, model: str, name: str, text: str) -> str: ...

    async def delete_files(self, model: str, ids: list[str]) -> None:
        """Raises a `ModelError` if a deletion fails."""
        ...


class ProviderFiles:
    """Belongs to the session's loop. A failure adds the model to `refused`; its prompts then contain the
    files.
    """

    def __init__(self, model: StoresFiles) -> None:
        self._model = model
        self._ids: dict[tuple[str, str], str] = {}
        self._orphans: list[tuple[str, str]] = []
        self.refused: set[str] = set()

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._ids.values())

    def has(self, model: str, md5: str) -> bool:
        return (model, md5) in self._ids

    async def upload(self, model: str, path: str, md5: str, text: str) -> str:
        """Uploads each content once. Raises a `ModelError` and adds `model` to `refused`."""
        if (model, md5) not in self._ids:
            try:
                self._ids[model, md5] = await self._model.upload(model, path.rpartition("/")[2], text)
            except ModelError:
                self.refused.add(model)
                raise
        return self._ids[model, md5]

    def adopt(self, model: str, ids: Iterable[str]) -> None:
        """Takes over files that an earlier process failed to delete."""
        self._orphans += [(model, file_id) for file_id in ids]

    async def close(self) -> str:
        """Returns a sentence about failed deletions, or ""."""
        by_model: dict[str, list[str]] = {}
        for model, file_id in (*((key[0], value) for key, value in self._ids.items()), *self._orphans):
            by_model.setdefault(model, []).append(file_id)
        self._ids, self._orphans = {}, []
        left = 0
        for model, ids in by_model.items():
            try:
                await self._model.delete_files(model, ids)
            except ModelError:
                left += len(ids)
        return f"{left} uploaded files could not be deleted at the provider" if left else ""
