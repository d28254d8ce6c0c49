"""The `Model` backed by the child process, which talks to providers directly or through litellm."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal

import msgspec

from tui_agent.errors import ChildFailed, ModelError, RequestRejected, install_command
from tui_agent.model import model_table
from tui_agent.model.client import (
    Abilities,
    CallChunk,
    Chunk,
    EndChunk,
    ModelRequest,
    RetryChunk,
    TextChunk,
    TokenCount,
    estimate,
)
from tui_agent.model.login.services import by_login
from tui_agent.model.model_listing import ListAnswer
from tui_agent.processes.child import ChildProcess, ChildState
from tui_agent.processes.environment import for_models

WORKER = "tui_agent.model.worker"


def model_process(environment: Mapping[str, str] | None = None) -> ChildProcess:
    """`environment` supplements our own provider variables."""
    return ChildProcess(WORKER, name="model", env={**for_models(), **(environment or {})})


ModelStatus = Literal["idle", "starting", "ready", "failed"]
Transport = Literal["auto", "litellm", "direct"]
_log = logging.getLogger(__name__)
#: Maximum numbers of retries of a request, and of a request for a summary.
RETRIES, SUMMARY_RETRIES = 5, 1


LITELLM = "litellm<2"


def has_litellm() -> bool:
    return importlib.util.find_spec("litellm") is not None


class ChildModel:
    """A `Model`, `ready` once the child has imported the modules that `model` needs. Earlier requests wait
    in the child.

    `transport` is the setting `models.transport`. `on_status` is called on the loop. `retries` applies to
    rate limits and server errors. `environment` supplements this process's provider variables. `process`
    is a child started in advance.
    """

    def __init__(
        self,
        *,
        on_status: Callable[[ModelStatus], None] | None = None,
        retries: int = RETRIES,
        environment: Mapping[str, str] | None = None,
        transport: Transport = "auto",
        model: str = "",
        process: ChildProcess | None = None,
    ) -> None:
        self.status: ModelStatus = "idle"
        self._on_status = on_status or (lambda status: None)
        self._retries = retries
        self._transport = transport
        self._model = model
        self._counts = False
        self._abilities: dict[str, Abilities] = {}
        self._warming: asyncio.Task[None] | None = None
        self._child = process or model_process(environment)
        self._child.listen(self._child_is)

    async def start(self) -> None:
        """Errors are reported by the status and by the first request."""
        if self._warming is None or (self._warming.done() and self._child.state != "ready"):
            self._warming = asyncio.create_task(self._warm(), name="model: warm up")

    async def warm(self, model: str) -> None:
        """Opens a TLS connection if `model` is reached directly. Never raises."""
        try:
            if self._route(model) is not None:
                await self.start()
                await self._child.ask("connect", {"model": model})
        except (ModelError, ChildFailed):
            _log.debug("no connection was opened ahead", exc_info=True)

    async def abilities(self, model: str) -> Abilities:
        route = self._route(model)
        if route is not None and (
            route.known is not None or not route.rules.listing or not (route.own or route.rules.lists_models)
        ):
            return model_table.abilities(model, route)
        if model not in self._abilities:
            await self.start()
            answer = await self._ask("abilities", {"model": model, "direct": route is not None})
            self._abilities[model] = msgspec.convert(answer, Abilities)
        return self._abilities[model]

    async def list_models(self, provider: str, *, again: bool = False) -> ListAnswer:
        try:
            await self.start()
            return msgspec.convert(
                await self._child.ask("models", {"provider": provider, "again": again}), ListAnswer
            )
        except ChildFailed as error:
            return ListAnswer(error=error.what)

    async def count(self, model: str, texts: Sequence[str], *, wait: bool = False) -> TokenCount:
        """Never raises. Estimates on failure, and without `wait` until the vocabulary is loaded."""
        if wait or self._counts:
            try:
                answer = await self._child.ask("count", {"model": model, "texts": list(texts)})
                self._counts = True
                return msgspec.convert(answer, TokenCount)
            except ChildFailed:
                self._counts = False  # the next request restarts the counter
        return TokenCount(tuple(estimate(text) for text in texts), exact=False)

    def _route(self, model: str) -> model_table.Route | None:
        """Returns None for litellm. Raises a `ModelError` if that is not allowed or not installed."""
        litellm_only = self._transport == "litellm" and not by_login(model)
        route = None if litellm_only else model_table.route(model, self._child.environment)
        if route is None and self._transport == "direct":
            raise RequestRejected(
                f"The direct transport does not support {model}",
                'set models.transport to "auto", or choose another model',
            )
        if route is None and not has_litellm():
            raise RequestRejected(
                f"{model} is reached through litellm, which is not installed",
                f"install it with `{install_command(LITELLM)}`, or choose another model",
            )
        return route

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        route = self._route(request.model)
        direct = route is not None and (self._transport == "direct" or not request.files or not has_litellm())
        await self.start()
        said = False
        # Without a summary the newest messages are kept, and the user waits for the answer.
        retries = min(self._retries, SUMMARY_RETRIES) if request.purpose == "condense" else self._retries
        params = {"request": msgspec.to_builtins(request), "retries": retries, "direct": direct}
        try:
            async with aclosing(self._child.stream("stream", params)) as items:
                async for item in items:
                    chunk = msgspec.convert(item, Chunk)
                    said = said or isinstance(chunk, TextChunk | CallChunk)
                    said = said and not isinstance(chunk, RetryChunk)
                    yield chunk
        except ChildFailed as error:
            if not said:
                raise ModelError(error.what, error.remedy) from error
            yield EndChunk("cut", f"{error.what} during the answer")

    async def reach(self, environment: Mapping[str, str]) -> None:
        """Adds variables, even to a running child. Raises a `ModelError`."""
        self._child.environment.update(environment)
        if self._warming is not None or self._child.pid is not None:
            await self._ask("reach", dict(environment))

    async def upload(self, model: str, name: str, text: str) -> str:
        """Returns the file's id at the provider. Raises a `ModelError`."""
        if not has_litellm():
            raise ModelError(
                "Files are uploaded by litellm, which is not installed", f"run `{install_command(LITELLM)}`"
            )
        await self.start()
        return str(await self._ask("upload", {"model": model, "name": name, "text": text}))

    async def delete_files(self, model: str, ids: list[str]) -> None:
        await self._ask("delete", {"model": model, "ids": ids})

    async def close(self) -> None:
        if self._warming is not None:
            self._warming.cancel()
        await self._child.close()
        self._enter("idle")

    @property
    def stderr(self) -> tuple[str, ...]:
        return self._child.stderr

    @property
    def pid(self) -> int | None:
        return self._child.pid

    async def _ask(self, method: str, params: dict[str, Any]) -> Any:
        try:
            return await self._child.ask(method, params)
        except ChildFailed as error:
            raise ModelError(error.what, error.remedy) from error

    async def _warm(self) -> None:
        try:
            try:
                warms_directly = (
                    self._route(self._model) is not None if self._model else self._transport != "litellm"
                )
            except ModelError:
                warms_directly = True  # the first request reports the error
            await self._child.ask("warm", {"direct": warms_directly, "model": self._model})
            self._enter("ready")
        except ChildFailed:
            self._enter("failed")

    def _child_is(self, state: ChildState) -> None:
        match state:
            case "starting":
                self._enter("starting")
            case "failed":
                self._counts = False
                self._enter("failed")

    def _enter(self, status: ModelStatus) -> None:
        if status != self.status:
            self.status = status
            self._on_status(status)
