"""The model child's program: counts tokens, knows models, and streams their answers through litellm.

Methods: `ping`, `count`, `warm`, `abilities`, `stream`, `reach`, `upload`, `delete`. tiktoken is ready first;
litellm is imported, on a thread, only when a model is asked for. Run as `python -m tui_agent.model.worker`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from tui_agent.model import completion, counter, uploading
from tui_agent.model.client import Abilities, ModelRequest, SentChunk, TokenCount
from tui_agent.model.retrying import with_retries
from tui_agent.processes.serve import Announce, Handler, Send, run

if TYPE_CHECKING:
    from collections.abc import Generator

#: The longest pause, in seconds: whoever then begins to wait waits so much longer at most.
LONGEST_PAUSE = 0.05


class Politely:
    """Pauses between two modules for as long as the last one took, until `hurry` is called."""

    def __init__(self, sleep: Callable[[float], Any] | None = None) -> None:
        self._wanted = threading.Event()
        self._sleep = sleep or self._wanted.wait
        self._thread = 0
        self._since = 0.0

    def hurry(self) -> None:
        """Somebody waits now. May be called from any thread, also before and after the import."""
        self._wanted.set()

    @contextmanager
    def importing(self) -> Generator[None, None, None]:
        """While this lasts the imports of this thread are polite."""
        self._thread, self._since = threading.get_ident(), time.monotonic()
        sys.meta_path.insert(0, self)
        try:
            yield
        finally:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Asked for each module before anybody else; finds none, and takes its pause here."""
        if threading.get_ident() != self._thread or self._wanted.is_set():
            return
        self._sleep(min(time.monotonic() - self._since, LONGEST_PAUSE))
        self._since = time.monotonic()


def build(announce: Announce) -> Mapping[str, Handler]:
    schema_rejected: set[str] = set()
    importing, politely = asyncio.Lock(), Politely()

    def import_litellm() -> None:
        with politely.importing():
            completion.litellm()

    async def ready(wanted: bool = True) -> None:
        """litellm is imported once, and not on the loop: counting goes on meanwhile. It hurries once it is `wanted`."""
        if wanted:
            politely.hurry()
        async with importing:
            await asyncio.to_thread(import_litellm)

    async def ping(params: dict[str, Any], send: Send) -> str:
        return "pong"

    async def count(params: dict[str, Any], send: Send) -> TokenCount:
        return await asyncio.to_thread(counter.count, params["model"], params["texts"])

    async def warm(params: dict[str, Any], send: Send) -> None:
        await asyncio.to_thread(counter.count, params.get("model", ""), ["warm"])
        await send("counts")
        await ready(wanted=False)

    async def abilities(params: dict[str, Any], send: Send) -> Abilities:
        await ready()
        return await asyncio.to_thread(completion.abilities, params["model"])

    async def stream(params: dict[str, Any], send: Send) -> None:
        request = msgspec.convert(params["request"], ModelRequest)
        messages = tuple(uploading.with_files(request.messages, request.files))
        await ready()
        messages = tuple(await asyncio.to_thread(completion.with_images, messages, request.model))
        request = replace(request, messages=messages)
        await send(SentChunk())
        attempts = with_retries(lambda: completion.complete(request, schema_rejected), params["retries"])
        async with aclosing(attempts) as chunks:
            async for chunk in chunks:
                await send(chunk)

    async def reach(params: dict[str, Any], send: Send) -> None:
        os.environ.update(params)

    async def upload(params: dict[str, Any], send: Send) -> str:
        await ready()
        return await uploading.upload(params["model"], params["name"], params["text"])

    async def delete(params: dict[str, Any], send: Send) -> None:
        await ready()
        await uploading.delete(params["model"], params["ids"])

    handlers = (ping, count, warm, abilities, stream, reach, upload, delete)
    return {handler.__name__: handler for handler in handlers}


if __name__ == "__main__":
    run(build)
