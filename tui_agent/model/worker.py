"""The model child's program: counts tokens, describes models, and streams replies, directly or through
litellm.

tiktoken and litellm are imported on demand, litellm on a thread. Run as `python -m
tui_agent.model.worker`.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from tui_agent.model.client import (
    Abilities,
    JoinedChunks,
    ModelRequest,
    SentChunk,
    TokenCount,
    Vocabulary,
    estimate,
    vocabulary,
)
from tui_agent.processes.background import finding_first
from tui_agent.processes.serve import Announce, Handler, Send, run

if TYPE_CHECKING:
    from collections.abc import Generator

    import tiktoken

    from tui_agent.model.direct_client import DirectTransport
    from tui_agent.model.litellm_client import LitellmTransport
    from tui_agent.model.model_listing import ListAnswer


#: tiktoken's vocabularies, which it caches under the SHA-1 of their address.
_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_THREADS = 2


def count_tokens(model: str, texts: Sequence[str]) -> TokenCount:
    """Does not use the network."""
    name, own = vocabulary(model)
    encoding = load_vocabulary(name)
    if encoding is None:
        return TokenCount(tuple(estimate(text) for text in texts), exact=False)
    encoded = encoding.encode_ordinary_batch(list(texts), num_threads=_THREADS)
    return TokenCount(tuple(len(tokens) for tokens in encoded), exact=own)


@cache
def load_vocabulary(name: Vocabulary) -> tiktoken.Encoding | None:
    """Returns None if its file is missing, because tiktoken would download it."""
    folder = vocabulary_folder()
    if folder is None or not (folder / hashlib.sha1(_ADDRESS.format(name).encode()).hexdigest()).is_file():
        return None
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    import tiktoken

    return tiktoken.get_encoding(name)


def vocabulary_folder() -> Path | None:
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"


#: Maximum pause in seconds, and maximum added delay after `hurry`.
LONGEST_PAUSE = 0.05


class ThrottledImports:
    """Pauses after each module for as long as its import took, until `hurry` is called."""

    def __init__(self, sleep: Callable[[float], Any] | None = None) -> None:
        self._wanted = threading.Event()
        self._sleep = sleep or self._wanted.wait
        self._thread = 0
        self._since = 0.0

    def hurry(self) -> None:
        """Thread-safe; valid before and after the import."""
        self._wanted.set()

    @contextmanager
    def importing(self) -> Generator[None, None, None]:
        self._thread, self._since = threading.get_ident(), time.monotonic()
        with finding_first(self):
            yield

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if threading.get_ident() != self._thread or self._wanted.is_set():
            return
        self._sleep(min(time.monotonic() - self._since, LONGEST_PAUSE))
        self._since = time.monotonic()


class _BlockedImports:
    def __init__(self, *names: str) -> None:
        self._names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in self._names:
            raise ModuleNotFoundError(f"{name} is not imported here", name=name)


def import_httpx() -> None:
    """Imports httpx without HTTP/2 and its optional command line, which imports Rich, Pygments and Click
    (0.1 s of processor time; the rest takes 0.07 s).
    """
    if "httpx" in sys.modules:
        return
    with finding_first(_BlockedImports("click", "h2")):
        import httpcore  # noqa: F401, which httpx imports only for its first client
        import httpx  # noqa: F401


class Transports:
    """Each is imported with its first use, one at a time."""

    def __init__(self) -> None:
        self._importing = asyncio.Lock()
        self._throttled = ThrottledImports()
        self._direct: DirectTransport | None = None

    async def directly(self) -> DirectTransport:
        from tui_agent.model import direct_client

        async with self._importing:
            self._direct = self._direct or await direct_client.ready()
            return self._direct

    async def through_litellm(self, warm: str = "") -> LitellmTransport:
        """Imports litellm once, on a thread, so that counting continues; slowly to only `warm` up."""
        if not warm:
            self._throttled.hurry()
        async with self._importing:
            return await asyncio.to_thread(self._import_litellm, warm)

    def _import_litellm(self, model: str) -> LitellmTransport:
        from tui_agent.model import litellm_client

        with self._throttled.importing():
            litellm_client.litellm()
            if model:
                litellm_client.warm(model)
        return litellm_client.LitellmTransport()


def build(announce: Announce) -> Mapping[str, Handler]:
    import_httpx()
    from tui_agent.model import completion, direct_client, litellm_client
    from tui_agent.model.provider_errors import with_retries

    refusals, transports = completion.Refusals(), Transports()
    directly, through_litellm = transports.directly, transports.through_litellm

    async def ping(params: dict[str, Any], send: Send) -> str:
        return "pong"

    async def count(params: dict[str, Any], send: Send) -> TokenCount:
        return await asyncio.to_thread(count_tokens, params["model"], params["texts"])

    async def warm(params: dict[str, Any], send: Send) -> None:
        await (directly() if params["direct"] else through_litellm(warm=params["model"]))

    async def connect(params: dict[str, Any], send: Send) -> None:
        await (await directly()).connect(params["model"])

    async def models(params: dict[str, Any], send: Send) -> ListAnswer:
        await directly()
        client, provider = direct_client.client(), params["provider"]
        return await direct_client.list_models(client, provider, again=params["again"])

    async def abilities(params: dict[str, Any], send: Send) -> Abilities:
        transport = await (directly() if params["direct"] else through_litellm())
        return await transport.abilities(params["model"])

    async def stream(params: dict[str, Any], send: Send) -> None:
        request = msgspec.convert(params["request"], ModelRequest)
        request = replace(request, messages=tuple(litellm_client.with_files(request.messages, request.files)))
        transport = await (directly() if params["direct"] else through_litellm())
        await send(SentChunk())
        attempts = with_retries(lambda: completion.complete(transport, request, refusals), params["retries"])
        out = JoinedChunks(send)
        async with aclosing(attempts) as chunks:
            try:
                async for chunk in chunks:
                    await out.add(chunk)
            finally:
                await out.flush()

    async def reach(params: dict[str, Any], send: Send) -> None:
        os.environ.update(params)

    async def upload(params: dict[str, Any], send: Send) -> str:
        await through_litellm()
        return await litellm_client.upload(params["model"], params["name"], params["text"])

    async def delete(params: dict[str, Any], send: Send) -> None:
        await through_litellm()
        await litellm_client.delete(params["model"], params["ids"])

    handlers = (ping, count, warm, connect, abilities, models, stream, reach, upload, delete)
    return {handler.__name__: handler for handler in handlers}


if __name__ == "__main__":
    run(build)
