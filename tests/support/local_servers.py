"""Servers of local models on loopback, as their documented interfaces answer: what they say of themselves, and chat.

    async with local_server("Ollama", models=("qwen3:8b",)) as server:
        server.port, server.root, server.asked    # every request as (method, path, body)

Each counts a token for three letters and has a window; a request that does not fit meets what that server does with
one: an error in its own words, an empty stream (llama-cpp-python), or silence about what it left out (Ollama).
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from tui_agent.model.child_model import RETRIES
from tui_agent.model.client import (
    Abilities,
    Chunk,
    EndChunk,
    ModelRequest,
    TextChunk,
    TokenCount,
    UsageChunk,
    estimate,
)
from tui_agent.model.completion import Refusals, complete
from tui_agent.model.direct_client import DirectTransport
from tui_agent.model.parts import Origin
from tui_agent.model.provider_errors import with_retries
from tui_agent.model.rules import Rules
from tui_agent.model.servers import Kind, address_of, fetch, root_of
from tui_agent.model.wires import chat
from tui_agent.model.wires.conversation import conversation

#: A model of each, the variable of its address, and what is behind the port in it.
NAMES = {
    "Ollama": ("ollama_chat/tiny", "OLLAMA_API_BASE", ""),
    "LM Studio": ("lm_studio/tiny", "LM_STUDIO_API_BASE", "/v1"),
    "llama.cpp": ("llamafile/tiny", "LLAMAFILE_API_BASE", "/v1"),
    "llama-cpp-python": ("llamafile/tiny", "LLAMAFILE_API_BASE", "/v1"),
    "vLLM": ("hosted_vllm/tiny", "HOSTED_VLLM_API_BASE", "/v1"),
}
#: In what way a server holds a reply to a schema, where it does.
_FORMS = {
    "llama.cpp": "json_schema",
    "LM Studio": "json_schema",
    "vLLM": "json_schema",
    "llama-cpp-python": "json_object",
    "": "json_schema",
}


@dataclass
class LocalFake:
    """One server. `answer` makes the reply to the messages of a chat."""

    kind: Kind
    models: tuple[str, ...] = ("tiny",)
    window: int = 4096
    slots: int = 1
    answer: Callable[[list[dict[str, Any]]], str] = lambda messages: "Hello."
    #: Whether it can hold a reply to a schema; `refusal` is the status with which it says that it cannot.
    constrains: bool = True
    refusal: int = 500
    #: Where its OpenAI API is, and whether that has a list of its models (of an unknown kind).
    base: str = "/v1"
    lists: bool = True
    #: Whether it takes the window that it is asked for (Ollama).
    obeys: bool = True
    port: int = 0
    #: How many requests did not fit, whether it said so or not.
    over: int = 0
    asked: list[tuple[str, str, Any]] = field(default_factory=list)

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        return [path for _, path, _ in self.asked]

    def reply(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """The status and the JSON, or the events of a stream, for one request."""
        self.asked.append((method, path, body))
        told = self._facts(path, body)
        if told is not None:
            return 200, told
        if path == f"{self.base}/chat/completions":
            return self._chat(body)
        if path == "/api/chat" and self.kind == "Ollama":
            said = self._said(body["messages"], bool(body.get("format")))
            window = (body.get("options") or {}).get("num_ctx", 4096) if self.obeys else self.window
            self.over += size_of(body["messages"]) > window
            read = min(window, size_of(body["messages"]))  # it leaves out what does not fit, and says nothing
            answer = {"model": body["model"], "created_at": "2025-10-01T10:00:00Z", "done": True}
            answer["message"] = {"role": "assistant", "content": said}
            return 200, {**answer, "prompt_eval_count": read}
        if self.kind == "LM Studio":
            return 200, {"error": f"Unexpected endpoint or method. ({method} {path})"}
        return 404, {"error": {"message": "Not Found", "code": 404}}

    def _facts(self, path: str, body: Any) -> Any:
        match self.kind, path:
            case "Ollama", "/api/version":
                return {"version": "0.12.3"}
            case "Ollama", "/api/tags":
                return {"models": [{"name": name, "model": name} for name in self.models]}
            case "Ollama", "/api/show":
                facts = {"general.architecture": "qwen3", "qwen3.context_length": 40_960}
                return {"parameters": "stop <|im_end|>", "model_info": facts, "capabilities": ["tools"]}
            case "LM Studio", "/api/v0/models":
                facts = {"object": "model", "state": "loaded", "max_context_length": 131_072}
                return {
                    "data": [{"id": n, **facts, "loaded_context_length": self.window} for n in self.models]
                }
            case "llama.cpp", "/props":
                return {"default_generation_settings": {"n_ctx": self.window}, "total_slots": self.slots}
            case _, path if path == f"{self.base}/models" and self.lists:
                return {"object": "list", "data": [self._entry(name) for name in self.models]}
        return None

    def _entry(self, name: str) -> dict[str, Any]:
        entry: dict[str, Any] = {"id": name, "object": "model"}
        match self.kind:
            case "vLLM":
                return {**entry, "owned_by": "vllm", "max_model_len": self.window}
            case "llama.cpp":
                return {**entry, "owned_by": "llamacpp", "meta": {"n_ctx_train": 131_072}}
            case "llama-cpp-python":
                return {**entry, "owned_by": "me", "permissions": []}
            case "LM Studio":
                return {**entry, "owned_by": "organization_owner"}
        return {**entry, "owned_by": "library"}

    def _chat(self, body: dict[str, Any]) -> tuple[int, Any]:
        form = (body.get("response_format") or {}).get("type", "")
        if form and (form != _FORMS.get(self.kind) or not self.constrains):
            return self.refusal, {"error": {"message": "failed to parse grammar", "code": self.refusal}}
        size = size_of(body["messages"])
        if size > self.window:
            self.over += bool(body.get("stream"))
            return self._too_long(size, body)
        said = self._said(body["messages"], bool(form))
        usage = {"prompt_tokens": size, "completion_tokens": len(said) // 4}
        if not body.get("stream"):
            return 200, {"choices": [{"message": {"role": "assistant", "content": said}}], "usage": usage}
        made = [{"choices": [{"index": 0, "delta": {"content": said}}]}]
        made.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage})
        return 200, [json.dumps(event) for event in made] + ["[DONE]"]

    def _too_long(self, size: int, body: dict[str, Any]) -> tuple[int, Any]:
        words = {
            "llama.cpp": f"request ({size} tokens) exceeds the available context size ({self.window} tokens)",
            "LM Studio": f"Trying to keep the first {size} tokens when context the overflows. However, the model is "
            f"loaded with context length of only {self.window} tokens",
            "vLLM": f"This model's maximum context length is {self.window} tokens. However, you requested "
            f"{size} tokens in the messages",
            "llama-cpp-python": f"This model's maximum context length is {self.window} tokens. However, you requested "
            f"{size} tokens ({size} in the messages, 0 in the completion)",
        }[self.kind]
        if self.kind == "llama-cpp-python" and body.get("stream"):
            return 200, []
        return 400, {"error": {"message": words, "type": "invalid_request_error"}}

    def _said(self, messages: list[dict[str, Any]], constrained: bool) -> str:
        trial = messages[-1]["content"] == "Say hello."
        return json.dumps({"ok": True}) if trial and constrained else self.answer(messages)


def size_of(messages: list[dict[str, Any]]) -> int:
    """Tokens as such a server counts them: more than we do."""
    return sum(len(json.dumps(message)) for message in messages) // 3


@asynccontextmanager
async def local_server(kind: Kind, **options: Any) -> AsyncGenerator[LocalFake]:
    """A server that listens on a port of its own until the end of the block."""
    fake = LocalFake(kind, **options)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            method, path, _ = (await reader.readline()).decode().split(" ", 2)
            length = 0
            while header := (await reader.readline()).decode().strip():
                name, _, value = header.partition(":")
                length = int(value) if name.lower() == "content-length" else length
            body: Any = json.loads(await reader.readexactly(length)) if length else None
            status, told = fake.reply(method, path, body)
            # Ollama streams lines of JSON; its answer here is one
            kind_of = "application/x-ndjson" if path == "/api/chat" and body["stream"] else "application/json"
            raw = json.dumps(told).encode() + b"\n"
            if isinstance(told, list):
                kind_of, raw = "text/event-stream", "".join(f"data: {event}\n\n" for event in told).encode()
            head = f"HTTP/1.1 {status} .\r\ncontent-type: {kind_of}\r\nconnection: close\r\n\r\n"
            writer.write(head.encode() + raw)
            await writer.drain()
        except (ValueError, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as listening:
        fake.port = listening.sockets[0].getsockname()[1]
        yield fake


class WireModel:
    """A `Model` that asks such a server over its own wire, in this process, as the model's child does; it knows nothing
    of models."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self._reached: dict[str, str] = {}
        self._refusals = Refusals()

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def reach(self, environment: Mapping[str, str]) -> None:
        self._reached.update(environment)

    async def abilities(self, model: str) -> Abilities:
        return Abilities(model)

    async def count(self, model: str, texts: Sequence[str], *, wait: bool = False) -> TokenCount:
        return TokenCount(tuple(estimate(text) for text in texts), exact=False)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        self.requests.append(request)
        with mock.patch.dict(os.environ, self._reached):
            if request.model.startswith("ollama"):
                async for chunk in _ollama(request):
                    yield chunk
                return
            attempts = with_retries(lambda: complete(DirectTransport(), request, self._refusals), RETRIES)
            async with aclosing(attempts) as chunks:
                async for chunk in chunks:
                    yield chunk


async def _ollama(request: ModelRequest) -> AsyncGenerator[Chunk]:
    """Ollama's own API, for which the program has litellm."""
    address = root_of(address_of(request.model, os.environ))
    talk = conversation(request.messages, Rules(), Origin(), sees=False)
    messages = chat.messages(talk, Rules())
    body = {"model": request.model.partition("/")[2], "messages": messages, "stream": False}
    told = await fetch(
        f"{address}/api/chat", {**body, "options": request.options, "format": request.schema}, timeout=10
    )
    yield TextChunk(told["message"]["content"])
    yield UsageChunk(told["prompt_eval_count"], 5)
    yield EndChunk("stop")
