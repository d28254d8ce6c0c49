"""Requests and file uploads through litellm. Runs in the model child only."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any, Final

from msgspec.structs import replace

from tui_agent.errors import ModelError, RequestRejected, install_command
from tui_agent.model.client import Abilities, Chunk, ModelRequest, UsageChunk
from tui_agent.model.completion import KEPT_ALIVE
from tui_agent.model.event_stream import Wire
from tui_agent.model.http_clients import use_client_of_loop, watch_litellm
from tui_agent.model.login.services import by_login, service_of
from tui_agent.model.model_table import LOCAL_ADDRESSES
from tui_agent.model.parts import CallPart, Origin, ThinkingPart
from tui_agent.model.provider_errors import explain
from tui_agent.model.rules import Rules, accepts_temperature, family_of, level_of, rules_of
from tui_agent.model.wires import chat, reader
from tui_agent.model.wires.conversation import ReplyTurn, cache_marks, conversation
from tui_agent.model.wires.reader import ReplyReader

_log = logging.getLogger(__name__)
_MARKED = ("anthropic", "bedrock", "bedrock_converse", "vertex_ai-anthropic_models", "databricks")
#: Added to litellm's limit, so that our time-out expires first.
_LITELLM_MARGIN_SECONDS = 30.0
_logged: Final[set[tuple[str, str]]] = set()


@cache
def litellm() -> ModuleType:
    """Imports litellm with its local price table, without telemetry, callbacks, `.env` and retries."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # avoids reading an untrusted .env file
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.drop_params = True
    litellm.num_retries = 0
    litellm.callbacks = []
    litellm.disable_streaming_logging = True
    # When a connection breaks, aiohttp discards unread data; httpx delivers it first.
    litellm.disable_aiohttp_transport = True
    litellm.disable_hf_tokenizer_download = True
    # Its limit would end replies with a hundred equal chunks, such as a row of dashes.
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = sys.maxsize
    watch_litellm(litellm)
    return litellm


#: Providers that send requests only to the given address.
_PLAIN = frozenset(
    (
        "openai",
        "azure",
        "anthropic",
        "gemini",
        "mistral",
        "groq",
        "deepseek",
        "openrouter",
        "xai",
        "ollama_chat",
    )
)
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def warm(model: str) -> None:
    """Imports about 500 modules by sending a completion to a closed port."""
    proxied = any(os.environ.get(name) or os.environ.get(name.lower()) for name in _PROXIES)
    if model.partition("/")[0] in _PLAIN and not proxied:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            asking = litellm().acompletion(
                model=model,
                messages=[{"role": "user", "content": "hello"}],
                stream=True,
                api_base=f"http://127.0.0.1:{nobody.getsockname()[1]}/v1",
                api_key="none",
                num_retries=0,
                max_retries=0,
                **_plain_tools(),
            )
            try:
                asyncio.run(asking)
            except Exception as error:  # expected; litellm also raises plain exceptions
                _log.debug("warm: %s", type(error).__name__)


def refuse_login(model: str) -> None:
    """Raises `RequestRejected` if litellm would start a login of its own."""
    service = service_of(model.lower())
    if service is not None and by_login(model):
        raise RequestRejected(
            f"{model} cannot be used through litellm",
            f"write it as {service.provider}/NAME, and run `tui-agent login {service.name}`",
        )


class LitellmTransport:
    async def abilities(self, model: str) -> Abilities:
        refuse_login(model)
        return await asyncio.to_thread(abilities, model)

    async def open(self, request: ModelRequest, wire: Wire, shape: dict[str, Any] | None) -> LitellmStream:
        refuse_login(request.model)
        provider, rules, origin = await asyncio.to_thread(_served, request.model)
        options: dict[str, Any] = {}
        if request.tools:
            options["tools"] = list(request.tools)
            options |= _plain_tools()
        if shape is not None:
            options["response_format"] = chat.schema_format(shape, request)
        if request.most:
            options["max_tokens"] = request.most
        if request.temperature is not None and accepts_temperature(rules, request.effort):
            options["temperature"] = request.temperature
        local = provider in LOCAL_ADDRESSES
        level = level_of(rules, request.effort)
        if level and "effort" not in request.without and not (local and request.effort == "auto"):
            options["reasoning_effort"] = level
        if rules.body:
            options["extra_body"] = rules.body
        if request.options:
            # litellm uses Ollama's native API and knows its options by name
            options |= request.options if provider.startswith("ollama") else {"extra_body": request.options}
        use_client_of_loop(litellm())
        try:
            pieces = await litellm().acompletion(
                model=request.model,
                messages=await asyncio.to_thread(_messages, request, rules, origin),
                stream=True,
                stream_options={"include_usage": True},
                timeout=request.timeout * KEPT_ALIVE + _LITELLM_MARGIN_SECONDS,
                num_retries=0,
                max_retries=0,
                **options,
            )
        except Exception as error:
            if missing := _without_module(request.model, error):
                raise missing from error
            raise
        return LitellmStream(pieces, origin, wire)

    async def cost(self, model: str, usage: UsageChunk) -> float | None:
        if usage.cost is not None:
            return usage.cost
        try:
            return await asyncio.to_thread(_cost, model, usage)
        except Exception as error:
            _unknown(model, "price", error)
            return None


def _served(model: str) -> tuple[str, Rules, Origin]:
    try:
        name, provider = litellm().get_llm_provider(model)[:2]
    except Exception as error:
        _unknown(model, "provider", error)
        provider, _, name = model.rpartition("/")
    return provider, rules_of(provider, name), Origin("litellm", provider, family_of(provider, name))


def _messages(request: ModelRequest, rules: Rules, origin: Origin) -> list[dict[str, Any]]:
    known = abilities(request.model)
    marked = known.cache_marks or rules.cache == "marks"
    marks = cache_marks(request.messages) if marked else frozenset()
    sees = known.sees or not known.known
    words = "calls" in request.without
    talk = conversation(request.messages, rules, origin, sees=sees, words=words, marks=marks)
    rules = replace(rules, cache="marks" if marked else "")
    rendered = chat.messages(talk, rules, request.cache)
    said = iter([turn for turn in talk.turns if isinstance(turn, ReplyTurn) and (turn.text or turn.calls)])
    calls = (call for turn in talk.turns if isinstance(turn, ReplyTurn) for call in turn.calls)
    full = {call.id: call.native["id"] for call in calls if call.native}
    for message in rendered:
        if message["role"] == "tool":
            message["tool_call_id"] = full.get(message["tool_call_id"], message["tool_call_id"])
        if message["role"] == "assistant":
            blocks = [block for part in next(said).thinking for block in reader.items(part.native)]
            # litellm moves all thinking to the front, and its final request is unavailable for comparison
            if blocks and not rules.thinking_bound:
                message["thinking_blocks"] = blocks
            for call in message.get("tool_calls") or ():
                call["id"] = full.get(call["id"], call["id"])
    return rendered


def _without_module(model: str, error: Exception) -> ModelError | None:
    found = _MODULE.search(str(error))
    if found is None:
        return None
    return ModelError(
        f"{model} needs the package {found[1] or found[2]}, which is not installed",
        f"run `{install_command('tui-agent[providers]')}` and start tui-agent again",
    )


_MODULE = re.compile(r"No module named '([\w.]+)'|pip install (?:--upgrade )?['\"]?([\w-]+)")


def _cost(model: str, usage: UsageChunk) -> float:
    from litellm.types.utils import CacheCreationTokenDetails, PromptTokensDetailsWrapper, Usage

    kept = CacheCreationTokenDetails(
        ephemeral_5m_input_tokens=usage.written - usage.written_long,
        ephemeral_1h_input_tokens=usage.written_long,
    )
    counted = Usage(
        prompt_tokens=usage.input,
        completion_tokens=usage.output,
        total_tokens=usage.input + usage.output,
        prompt_tokens_details=PromptTokensDetailsWrapper(
            cached_tokens=usage.cached,
            cache_creation_tokens=usage.written,
            cache_creation_token_details=kept if usage.written_long else None,
        ),
        cache_read_input_tokens=usage.cached,
        cache_creation_input_tokens=usage.written,
    )
    return sum(
        litellm().cost_per_token(
            model=model, prompt_tokens=usage.input, completion_tokens=usage.output, usage_object=counted
        )
    )


class LitellmStream:
    def __init__(self, pieces: Any, origin: Origin, wire: Wire) -> None:
        self._own = LitellmReader(pieces, wire)
        self.reader: ReplyReader = self._own
        self.origin = origin
        self._pieces = pieces

    def __aiter__(self) -> LitellmStream:
        return self

    async def __anext__(self) -> list[Chunk]:
        try:
            return self._own.read(await anext(self._pieces))
        finally:
            self._own.note_reason()

    async def aclose(self) -> None:
        if close := getattr(self._pieces, "aclose", None):
            await close()


#: litellm's separator between a call id and Gemini's signature.
_SIGNATURE = "__thought__"


class LitellmReader(ReplyReader):
    def __init__(self, pieces: Any = None, wire: Wire | None = None) -> None:
        super().__init__()
        self._pieces = pieces
        self._wire = wire or Wire()
        self._blocks: list[dict[str, Any]] = []
        self._unsigned = False
        #: Whether thinking followed text or calls, an order that litellm cannot return.
        self._interleaved = False

    def read(self, event: Any) -> list[Chunk]:
        chunks: list[Chunk] = []
        for choice in event.choices[:1]:
            delta = choice.delta
            for block in getattr(delta, "thinking_blocks", None) or ():
                self._keep_block(dict(block))
            if refusal := getattr(delta, "refusal", None):
                self.refusal += refusal
            chunks += self.think((chat.THINKING, 0), getattr(delta, "reasoning_content", None))
            chunks += self.text((chat.TEXT, 0), delta.content)
            for call in delta.tool_calls or ():
                place, name = (chat.CALLS, call.index or 0), str(call.id or "")
                function = call.function
                chunks += self.call(place, name.partition(_SIGNATURE)[0], function.name, function.arguments)
                if _SIGNATURE in name:
                    self.keep(place, CallPart, {"id": name}, len(name))
        if usage := getattr(event, "usage", None):
            details = getattr(usage, "prompt_tokens_details", None)
            made = getattr(usage, "completion_tokens_details", None)
            given, output = reader.count(usage.prompt_tokens), reader.count(usage.completion_tokens)
            written = min(reader.count(getattr(details, "cache_creation_tokens", None)), given)
            kept = getattr(details, "cache_creation_token_details", None)
            self.usage = UsageChunk(
                given,
                output,
                min(reader.count(getattr(details, "cached_tokens", None)), given),
                chat.dollars(getattr(usage, "cost", None)),
                written=written,
                written_long=min(reader.count(getattr(kept, "ephemeral_1h_input_tokens", None)), written),
                thinking=min(reader.count(getattr(made, "reasoning_tokens", None)), output),
            )
        return chunks

    def note_reason(self) -> None:
        """litellm also reports "stop" for a truncated stream, so only the provider's reason counts."""
        word = getattr(self._pieces, "received_finish_reason", None)
        word = word or getattr(self._pieces, "intermittent_finish_reason", None)
        if word and self._wire.ended is not False:
            self.failure = word if word in chat.FAILURES else ""
            self.reason = None if self.failure else chat.REASONS.get(word, "stop")

    def _keep_block(self, block: dict[str, Any]) -> None:
        size = len(block.get("signature") or "") + len(block.get("data") or "")
        if block.get("type") != "thinking":
            self._blocks.append(block)
            self._unsigned = False
        else:
            if not self._unsigned:
                self._blocks.append({"type": "thinking", "thinking": ""})
            self._interleaved = self._interleaved or self.has_content
            self._blocks[-1]["thinking"] += block.get("thinking") or ""
            if signature := block.get("signature"):
                self._blocks[-1]["signature"] = signature
            self._unsigned = not block.get("signature")
        self.keep((chat.THINKING, 0), ThinkingPart, None if self._interleaved else self._blocks, size)


@cache
def _plain_tools() -> dict[str, bool]:
    name = "_skip_mcp_handler"
    completion = inspect.unwrap(litellm().completion)
    return {name: True} if name in completion.__code__.co_consts else {}


def abilities(model: str) -> Abilities:
    try:
        info = litellm().get_model_info(model)
        provider = str(info.get("litellm_provider") or "")
    except Exception as error:
        _unknown(model, "abilities", error)
        return Abilities(model)
    given, made = info.get("input_cost_per_token"), info.get("output_cost_per_token")
    return Abilities(
        model=model,
        window=info.get("max_input_tokens") or info.get("max_tokens") or 0,
        tools=bool(info.get("supports_function_calling")),
        # litellm requests Claude schemas with a field that some endpoints reject
        schema=bool(info.get("supports_response_schema"))
        and "claude" not in model.lower()
        and rules_of(provider, model).schema,
        cache_marks=provider in _MARKED and bool(info.get("supports_prompt_caching")),
        known=True,
        sees=bool(info.get("supports_vision")),
        prices=None if given is None or made is None else (given, made),
    )


def _unknown(model: str, what: str, error: Exception) -> None:
    if (model, what) not in _logged:
        _logged.add((model, what))
        _log.info("litellm does not know the %s of %s", what, model, exc_info=error)


#: Providers with files in a chat, and the upload purpose.
_PURPOSES: Mapping[str, str] = {"openai": "user_data", "azure": "user_data", "anthropic": "messages"}
TIMEOUT_SECONDS = 60.0


async def upload(model: str, name: str, text: str) -> str:
    provider = _provider(model)
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            made = await litellm().acreate_file(
                file=(name, text.encode(), "text/plain"),
                purpose=_PURPOSES[provider],
                custom_llm_provider=provider,
                max_retries=0,
            )
    except Exception as error:
        raise explain(error, model).error from error
    return str(made.id)


async def delete(model: str, ids: Sequence[str]) -> None:
    """Raises a `ModelError` for the first failure, after trying all."""
    provider = _provider(model)
    deletions = (litellm().afile_delete(file_id=one, custom_llm_provider=provider) for one in ids)
    for result in await asyncio.gather(*deletions, return_exceptions=True):
        if isinstance(result, Exception):
            raise explain(result, model).error from result


def with_files(messages: Sequence[dict[str, Any]], ids: Sequence[str]) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    for message in messages:
        content = message.get("content")
        text = content if message["role"] == "user" and isinstance(content, str) else ""
        parts = [{"type": "file", "file": {"file_id": one}} for one in ids if f'"fileId": "{one}"' in text]
        result.append({**message, "content": [{"type": "text", "text": text}, *parts]} if parts else message)
    return result


def _provider(model: str) -> str:
    refuse_login(model)
    try:
        provider = litellm().get_llm_provider(model)[1]
    except Exception as error:
        raise explain(error, model).error from error
    if provider not in _PURPOSES:
        raise ModelError(f"{provider} has no files that a chat could refer to", 'set files_api = "off"')
    return provider
