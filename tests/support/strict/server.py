"""A server on loopback that plays one provider and refuses each request that the provider would refuse.

    with StrictServer("anthropic", brain=brain, model="claude-opus-5-5") as server:
        environment = server.environment
        ...
        assert not server.violations

`brain` decides each reply by a `View` of the request, in a thread, so that it may wait. `violations` has a sentence
per refused request. `losses` has a sentence per thing that an accepted request left out although the model works
better with it. Everything here may be called from any thread.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Generator
from dataclasses import replace
from typing import Any, Self
from urllib.parse import urlsplit

from support.strict.dialect import Answering, Dialect, output_of
from support.strict.dialects import dialects_of
from support.strict.frames import disturbed, encoded
from support.strict.reply import Brain, Refusal, Reply, Think
from support.strict.serving import PATIENCE_SECONDS, Loopback, Response, StrictRequest

from tui_agent.model.rules import rules_of


class StrictServer:
    """The server, from `with` to its end."""

    def __init__(
        self,
        provider: str,
        *,
        brain: Brain,
        model: str = "",
        models: tuple[str, ...] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.provider, self.brain, self.model = provider, brain, model
        self.models = [name for name in (model, *models) if name]
        self.key = f"test-key-{provider}"
        rules = rules_of(provider)
        self._addresses, self._keys = rules.addresses, rules.keys
        self._base = urlsplit(rules.address).path
        self.dialects: tuple[Dialect, ...] = dialects_of(provider, self.key)
        for dialect in self.dialects:
            dialect.prefix = self._base
            dialect.losses = self.dialects[0].losses
        self.violations: list[str] = []
        self.requests: list[StrictRequest] = []
        self.counted: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._answers = 0
        #: Questions for headers, by which a client opens a connection ahead of its first request.
        self.heads: list[StrictRequest] = []
        self._scheme = "https" if tls else "http"
        self._loopback = Loopback(self._handle, tls)

    def __enter__(self) -> Self:
        self._loopback.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loopback.stop()

    @property
    def url(self) -> str:
        """The base address, as the environment holds it."""
        return f"{self._scheme}://127.0.0.1:{self._loopback.port}{self._base}"

    @property
    def environment(self) -> dict[str, str]:
        """Variables that lead a client here: every address variable of the provider, and the first of its keys."""
        return {**dict.fromkeys(self._addresses, self.url), self._keys[0]: self.key}

    @property
    def losses(self) -> list[str]:
        return self.dialects[0].losses

    @property
    def connections(self) -> int:
        """The number of connections that were opened so far."""
        return self._loopback.connections

    def wait_for(self, requests: int) -> list[StrictRequest]:
        """Block until so many requests came; raises `AssertionError` after half a minute."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= requests, PATIENCE_SECONDS):
                raise AssertionError(f"{len(self.requests)} requests came, not {requests}")
        return self.requests

    async def _handle(self, request: StrictRequest) -> Response:
        if request.method == "HEAD":
            self.heads.append(request)
            return Response(404)
        dialect = next((one for one in self.dialects if one.takes(request.path)), self.dialects[0])
        try:
            if request.method == "GET" and request.path == f"{dialect.prefix}{dialect.models_path}":
                dialect.authorize(request)
                return Response(200, dialect.listing(self.models))
            return await self._answer(dialect, request)
        except Refusal as refusal:
            self.violations.append(refusal.message)
            return Response(refusal.status, refusal.body, refusal.headers)
        except Exception as error:
            self.violations.append(f"the strict server or its brain failed: {error!r}")
            return Response(500, {"error": {"message": repr(error)}})

    async def _answer(self, dialect: Dialect, request: StrictRequest) -> Response:
        self._read(dialect, request)
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        dialect.authorize(request)
        dialect.check(request)
        reply = await asyncio.to_thread(self.brain, dialect.view(request.body))
        model = dialect.model_of(request)
        if reply.error is not None:
            fault = dialect.fault(reply.error, model)
            return Response(fault.status, fault.body, fault.headers)
        if not dialect.thinks(request):
            reply = replace(reply, parts=tuple(part for part in reply.parts if not isinstance(part, Think)))
        answering = self._counted(dialect, request, model, reply)
        items = dialect.compose(answering)
        if not dialect.streams(request):
            return Response(200, dialect.whole(answering, items))
        pieces = self._pieces(dialect, answering, items)
        return Response(
            200, None, dialect.stream_headers(), pieces, reply.pause, closes="no_done" in reply.misbehave
        )

    def _read(self, dialect: Dialect, request: StrictRequest) -> None:
        if request.method != "POST" or not dialect.takes(request.path):
            message = f"Invalid URL ({request.method} {request.path})"
            dialect.refuse(message, status=404)
        try:
            request.body = json.loads(request.raw)
        except ValueError:
            dialect.refuse("We could not parse the JSON body of your request.", status=400)
        if not isinstance(request.body, dict):
            dialect.refuse("The body of the request is not a JSON object.", status=400)

    def _counted(self, dialect: Dialect, request: StrictRequest, model: str, reply: Reply) -> Answering:
        counted = dialect.count(request)
        counted.output, counted.thinking = output_of(reply.parts)
        for name, value in (reply.usage or {}).items():
            setattr(counted, name, value)
        dialect.price(counted)
        self.counted.append(counted.as_dict())
        self._answers += 1
        return Answering(request, model, reply, counted, self._answers)

    def _pieces(
        self, dialect: Dialect, answering: Answering, items: list[dict[str, Any]]
    ) -> Generator[bytes]:
        misbehave = answering.reply.misbehave
        frames = disturbed(
            dialect.frames(answering, items), misbehave, dialect.unknown_frame(), dialect.error_frame(), 4
        )
        whole = False
        try:
            yield from encoded(frames, misbehave, dialect.comment)
            whole = not misbehave & {"no_done", "error_in_stream"}
        finally:
            if not whole:
                dialect.forget(items)
