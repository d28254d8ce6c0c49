"""Connections to a provider through TLS: how many there are, and that each that was closed is replaced."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import ExitStack, aclosing, asynccontextmanager
from pathlib import Path

import pytest
from httpcore._async.http11 import AsyncHTTP11Connection
from support.asking import answer, text
from support.certificates import certificate, needs_openssl
from support.strict import Call, Reply, Say, StrictServer, View

from tui_agent.errors import ModelError
from tui_agent.model import certificates, httpcore_patch
from tui_agent.model.child_model import ChildModel
from tui_agent.model.client import CallChunk, EndChunk, ModelRequest, TextChunk
from tui_agent.model.parts import Message, message_of

pytestmark = [pytest.mark.asyncio(loop_scope="session"), needs_openssl]
TOOL = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Reads.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
MODELS = {
    "anthropic": "claude-opus-5-5",
    "openai": "gpt-5.4",
    "gemini": "gemini-3-pro-preview",
    "deepseek": "deepseek-v4-flash",
}
#: Requests of a tool loop.
ROUNDS = 10


def loop(view: View) -> Reply:
    """Calls a tool until it was called often enough."""
    done = sum(1 for _ in view.results)
    return Reply((Say("All is read."),)) if done >= ROUNDS - 1 else Reply((Call("read", {"path": "a"}),))


def said(view: View) -> Reply:
    return Reply((Say("Hello."),))


EVENTS = (
    b'data: {"choices": [{"index": 0, "delta": {"content": "Hello."}}]}\n\n',
    b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n',
    b"data: [DONE]\n\n",
)
#: A chat completion, as bytes.
REPLY = b"".join(
    (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        *(b"%x\r\n%s\r\n" % (len(event), event) for event in EVENTS),
        b"0\r\n\r\n",
    )
)
ASKED = ModelRequest("openai/test-model", ({"role": "user", "content": "Hi"},), timeout=30.0)


async def head(reader: asyncio.StreamReader) -> int:
    """The length of the body of a request, after its head is read. Raises `IncompleteReadError` for none."""
    lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
    return next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:"))


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve, tls: tuple[Path, ssl.SSLContext]) -> AsyncGenerator[ChildModel]:
    """A child whose provider is a server of the test."""

    async def quietly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            writer.close()

    async with await asyncio.start_server(quietly, "127.0.0.1", 0, ssl=tls[1]) as server:
        variables = {
            "OPENAI_API_BASE": f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1",
            "OPENAI_API_KEY": "test",
            "SSL_CERT_FILE": str(tls[0]),
        }
        model = ChildModel(environment=variables, retries=0)
        try:
            yield model
        finally:
            await model.close()


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    return certificate(tmp_path_factory.mktemp("certificate"))


@asynccontextmanager
async def child(server: StrictServer, trusted: Path, **options: object) -> AsyncGenerator[ChildModel]:
    variables = {**server.environment, "SSL_CERT_FILE": str(trusted)}
    model = ChildModel(environment=variables, retries=0, **options)  # ty: ignore[invalid-argument-type]
    try:
        yield model
    finally:
        await model.close()


def asked(server: StrictServer, messages: tuple[Message, ...] = ()) -> ModelRequest:
    messages = messages or ({"role": "user", "content": "Read a."},)
    return ModelRequest(f"{server.provider}/{server.model}", messages, tools=(TOOL,), timeout=30.0)


async def tool_loop(model: ChildModel, server: StrictServer) -> None:
    messages = asked(server).messages
    for _ in range(ROUNDS):
        async with aclosing(model.stream(asked(server, messages))) as stream:
            chunks = [chunk async for chunk in stream]
        end = chunks[-1]
        assert isinstance(end, EndChunk)
        calls = [chunk for chunk in chunks if isinstance(chunk, CallChunk) and chunk.name]
        if not calls:
            break
        results = ({"role": "tool", "tool_call_id": call.id, "content": "x"} for call in calls)
        messages = (*messages, message_of(end.parts, end.origin), *results)


@pytest.mark.parametrize(
    ("provider", "transport"), [*((provider, "auto") for provider in MODELS), ("anthropic", "litellm")]
)
async def test_a_tool_loop_has_one_connection(
    provider: str, transport: str, tls: tuple[Path, ssl.SSLContext]
) -> None:
    with StrictServer(provider, brain=loop, model=MODELS[provider], tls=tls[1]) as server:
        async with child(server, tls[0], transport=transport) as model:
            await tool_loop(model, server)
        assert (server.violations, len(server.requests), server.connections) == ([], ROUNDS, 1)


async def test_what_is_opened_ahead_carries_the_first_request(tls: tuple[Path, ssl.SSLContext]) -> None:
    with StrictServer("openai", brain=said, model="gpt-5.4", tls=tls[1]) as server:
        async with child(server, tls[0]) as model:
            await model.start()
            assert server.connections == 0, "a mere start reaches nobody"
            await model.warm("openai/gpt-5.4")
            await model.warm("openai/gpt-5.4")
            (head,) = server.heads
            assert (head.method, head.path, server.connections) == ("HEAD", "/", 1)
            assert not any(server.key in value for value in head.headers.values())
            assert text(await answer(model, asked(server))) == "Hello."
            await model.warm("openai/gpt-5.4")
        assert (len(server.heads), len(server.requests), server.connections) == (1, 1, 1)
        assert server.violations == []


async def test_nobody_is_reached_ahead_without_a_key_or_a_server(tls: tuple[Path, ssl.SSLContext]) -> None:
    with StrictServer("openai", brain=said, model="gpt-5.4", tls=tls[1]) as server:
        async with child(server, tls[0]) as model:
            await model.reach({"OPENAI_API_KEY": ""})
            await model.warm("openai/gpt-5.4")
            assert server.connections == 0
            await model.reach({"OPENAI_API_KEY": server.key, "OPENAI_API_BASE": "https://127.0.0.1:9/v1"})
            await model.warm("openai/gpt-5.4")


async def test_a_connection_that_was_closed_meanwhile_is_replaced(tls: tuple[Path, ssl.SSLContext]) -> None:
    """The server ends it with the next request, and without a word of it."""
    heard: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for number in range(2):
                length = await head(reader)
                heard.append(length)
                if number and len(heard) == 2:
                    return
                await reader.readexactly(length)
                writer.write(REPLY)
                await writer.drain()
        finally:
            writer.close()

    async with listening(serve, tls) as model:
        assert text(await answer(model, ASKED)) == "Hello."
        assert text(await answer(model, ASKED)) == "Hello."
        assert len(heard) == 3


async def test_a_server_that_dies_between_two_requests_is_an_error(tls: tuple[Path, ssl.SSLContext]) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(StrictServer("openai", brain=said, model="gpt-5.4", tls=tls[1]))
        async with child(server, tls[0]) as model:
            assert text(await answer(model, asked(server))) == "Hello."
            stack.close()
            with pytest.raises(ModelError, match="cannot be reached"):
                await answer(model, asked(server))


async def test_a_request_that_breaks_on_a_new_connection_is_sent_once(
    tls: tuple[Path, ssl.SSLContext],
) -> None:
    heard: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await head(reader))
        writer.close()

    async with listening(serve, tls) as model:
        with pytest.raises(ModelError):
            await answer(model, ASKED)
        assert len(heard) == 1


@pytest.mark.parametrize("more", [b"", b": " + b"x" * 60_000 + b"\n\n"])
async def test_a_body_without_an_end_is_closed(tls: tuple[Path, ssl.SSLContext], more: bytes) -> None:
    """After the word that all is done nothing is waited for; the connection is closed for its sake."""
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(await head(reader))
        writer.write(REPLY.removesuffix(b"0\r\n\r\n"))
        if more:
            writer.write(b"%x\r\n%s\r\n" % (len(more), more))
        await reader.read()
        closed.set()
        writer.close()

    async with listening(serve, tls) as model:
        assert text(await answer(model, ASKED)) == "Hello."
        await asyncio.wait_for(closed.wait(), 20)
        assert text(await answer(model, ASKED)) == "Hello."


async def test_a_stream_that_is_stopped_closes_its_connection(tls: tuple[Path, ssl.SSLContext]) -> None:
    stopped = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(await head(reader))
        if stopped.is_set():
            writer.write(REPLY)
        else:
            writer.write(REPLY.partition(b'\r\ndata: {"choices": [{"index": 0, "delta": {}')[0])
            await reader.read()
            stopped.set()
        writer.close()

    async with listening(serve, tls) as model:
        async with aclosing(model.stream(ASKED)) as stream:
            async for chunk in stream:
                if isinstance(chunk, TextChunk):
                    break
        await asyncio.wait_for(stopped.wait(), 20)
        assert text(await answer(model, ASKED)) == "Hello."


async def test_certificates_are_read_for_the_first_connection_that_needs_them() -> None:
    context = certificates.verification()
    assert isinstance(context, ssl.SSLContext)
    assert not context.cert_store_stats()["x509_ca"], "a server on this machine needs none"
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="example.com")
    assert context.cert_store_stats()["x509_ca"]


async def test_another_httpcore_is_left_as_it_is() -> None:
    class Renamed(AsyncHTTP11Connection):
        async def _receive_event(self, seconds: float | None = None) -> None: ...  # ty: ignore

    assert httpcore_patch._is_known(AsyncHTTP11Connection), "what is installed is known"
    assert not httpcore_patch._is_known(Renamed)
    assert not httpcore_patch._is_known(object)
