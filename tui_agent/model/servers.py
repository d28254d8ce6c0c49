"""Properties of model servers on this machine or its network, learned and stored.

A server is examined only while it processes none of our requests: some abort the current request for
another.
"""

from __future__ import annotations

import asyncio
import fcntl
import ipaddress
import os
import re
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import md5
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_agent.files.lazy_regex import late
from tui_agent.files.numbers import based_number, whole_number
from tui_agent.files.operating_system import read_start
from tui_agent.files.private import make_private, open_private, replace_private
from tui_agent.model import model_table
from tui_agent.model.model_table import LOCAL_ADDRESSES, provider_of
from tui_agent.model.parts import Message, Origin
from tui_agent.model.rules import Rules
from tui_agent.model.wires.conversation import SchemaForm, conversation, response_format

Kind = Literal["", "Ollama", "LM Studio", "llama.cpp", "llama-cpp-python", "vLLM"]
_TRIED: dict[Kind, tuple[SchemaForm, ...]] = {
    "llama-cpp-python": ("json_object",),
    "vLLM": ("json_schema", "guided_json"),
}
#: Placeholder key for a local server.
NO_KEY = "none"
_NO_KEYS = late(
    r"(?:sk-)?(?:none|null|nil|n/?a|empty|dummy|fake|placeholder|local(?:host)?|unused|ignored?|anything|whatever|changeme|"
    r"x+|0+|no[-_ ]?(?:api[-_ ]?)?key(?:[-_ ]?(?:required|needed))?|not[-_ ]?(?:needed|required|used|set|real)|"
    r"(?:your|my)[-_ ](?:api[-_ ])?key(?:[-_ ]here)?|ollama|lm[-_ ]?studio|llama(?:[-_. ]?cpp)?|llamafile|vllm)",
    re.IGNORECASE,
)
#: A local server responds within this time.
TIMEOUT_SECONDS = 0.5
#: Includes the time to load the model.
TRIAL_SECONDS = 600.0
#: Minimum window requested from Ollama: a different size reloads the model.
FIRST_WINDOW = 8_192
_MOST_BYTES = 1 << 20
_LOCAL_NAMES = (".local", ".lan", ".internal", ".home.arpa")


class ServerModel(Struct, frozen=True):
    """`window` and its maximum `most` are in tokens (0: unknown, fixed). `slots` is the number of parallel
    requests (0: unknown). `ratio` is the server's token count divided by ours.
    """

    kind: Kind = ""
    window: int = 0
    most: int = 0
    slots: int = 0
    tools: bool = False
    schema: SchemaForm = ""
    ratio: float = 1.0


class ServerRefusal(Exception):
    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


def address_of(model: str, environ: Mapping[str, str]) -> str:
    """Returns "" if the model is not local."""
    provider = provider_of(model)
    if provider is None or provider.name not in (*LOCAL_ADDRESSES, "openai"):
        return ""
    if model.removeprefix("openai/") in model_table.table().models["openai"]:
        return ""
    fallback = LOCAL_ADDRESSES.get(provider.name, "")
    names = (provider.address, "OPENAI_BASE_URL") if provider.name == "openai" else (provider.address,)
    address = next((environ[name] for name in names if name and environ.get(name)), fallback)
    return address.rstrip("/") if address and (fallback or is_local(address)) else ""


def is_local(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(_LOCAL_NAMES))


def is_here(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    found = getattr(found, "ipv4_mapped", None) or found
    return found.is_loopback or found.is_unspecified


def is_no_key(key: str) -> bool:
    """Recognizes placeholders such as `dummy` or `sk-xxx`."""
    return _NO_KEYS.fullmatch(key.strip("<>[]{}\"' ")) is not None


def root_of(address: str) -> str:
    return address.removesuffix("/").removesuffix("/v1")


async def fetch(
    url: str, body: Any = None, *, key: str = "", timeout: float = TIMEOUT_SECONDS, decode: bool = True
) -> Any:
    """Returns JSON, or bytes without `decode`. Posts a `body`. Raises `OSError`, `TimeoutError`,
    `ValueError` for an invalid response, and `ServerRefusal` for an error status.
    """
    parts = urlsplit(url)
    secure = ssl.create_default_context() if parts.scheme == "https" else None
    port = parts.port or (443 if secure else 80)
    data = b"" if body is None else msgspec.json.encode(body)
    head = [
        f"{'GET' if body is None else 'POST'} {parts.path or '/'} HTTP/1.0",
        f"Host: {parts.hostname}:{port}",
        "Accept: application/json",
        *([] if body is None else ["Content-Type: application/json", f"Content-Length: {len(data)}"]),
        *([f"Authorization: Bearer {key}"] if key else []),
    ]
    async with asyncio.timeout(timeout):
        reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=secure)
        try:
            writer.write(("\r\n".join(head) + "\r\n\r\n").encode() + data)
            raw = b""
            while len(raw) < _MOST_BYTES and (more := await reader.read(_MOST_BYTES - len(raw))):
                raw += more
        finally:
            writer.close()
    begun, _, rest = raw.partition(b"\r\n\r\n")
    status = re.match(rb"HTTP/1\.\d (\d{3})", begun)
    if status is None:
        raise ValueError("not HTTP")
    if b"chunked" in begun.lower():
        rest = _unchunked(rest)
    if status[1] != b"200":
        raise ServerRefusal(whole_number(status[1]), rest.decode("utf-8", "replace"))
    return msgspec.json.decode(rest) if decode else rest


def _unchunked(raw: bytes) -> bytes:
    body = b""
    while match := re.match(rb"([0-9a-fA-F]+)[^\r\n]*\r\n", raw):
        length = based_number(match[1].decode(), 16)
        if not length:
            break
        body += raw[match.end() : match.end() + length]
        raw = raw[match.end() + length + 2 :]
    return body


async def examine(address: str, name: str, key: str = "") -> ServerModel | None:
    """`None` if the server does not respond."""
    root = root_of(address)
    version = await read(f"{root}/api/version", key)
    if isinstance(version, Mapping) and isinstance(version.get("version"), str):
        try:
            shown = await fetch(f"{root}/api/show", {"model": name})
        except (OSError, TimeoutError, ValueError, ServerRefusal):
            return ServerModel("Ollama", slots=1)
        facts = shown.get("model_info") or {}
        # `window` is set in the Modelfile; `most` is the trained context length
        most = next((_number(value) for key, value in facts.items() if key.endswith(".context_length")), 0)
        own = re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters") or ""), re.MULTILINE)
        tools = "tools" in (shown.get("capabilities") or ())
        return ServerModel("Ollama", whole_number(own[1]) if own else 0, most, slots=1, tools=tools)
    listing = await listed(address, key)
    models = entries(listing)
    if not models:
        return None if version is None and listing is None else ServerModel()
    entry = next((one for one in models if one.get("id") == name), models[0])
    owner = str(entry.get("owned_by") or "")
    if owner == "vllm" or "max_model_len" in entry:
        return ServerModel("vLLM", window=_number(entry.get("max_model_len")))
    if owner == "me":
        return ServerModel("llama-cpp-python", slots=1)
    if owner == "organization_owner":
        for model in entries(await read(f"{root}/api/v0/models")):
            if model.get("id") == name:
                tools = "tool_use" in (model.get("capabilities") or ())
                return ServerModel(
                    "LM Studio", _number(model.get("loaded_context_length")), slots=1, tools=tools
                )
        return ServerModel("LM Studio", slots=1)
    props = await read(f"{root}/props", key)
    if isinstance(props, Mapping) and "default_generation_settings" in props:
        made = props["default_generation_settings"]
        window = _number(made.get("n_ctx")) if isinstance(made, Mapping) else 0
        window = window or _number((entry.get("meta") or {}).get("n_ctx"))
        return ServerModel("llama.cpp", window=window, slots=_number(props.get("total_slots")))
    if owner == "llamacpp":
        return ServerModel("llama.cpp", window=_number((entry.get("meta") or {}).get("n_ctx")))
    return ServerModel()


async def listed(address: str, key: str = "") -> Any:
    """Reads the list under `/v1`, or beside the chat completions."""
    listing = await read(f"{root_of(address)}/v1/models", key)
    if entries(listing) or listing is None or address.rstrip("/").endswith("/v1"):
        return listing
    return await read(f"{address.rstrip('/')}/models", key)


async def read(url: str, key: str = "") -> Any:
    """`None` if unreadable, {} for an error response."""
    try:
        return await fetch(url, key=key)
    except ServerRefusal:
        return {}
    except (OSError, TimeoutError, ValueError):
        return None


def entries(listing: Any) -> list[dict[str, Any]]:
    """The models in `{"models": [{"name": …}]}` (Ollama) or `{"data": [{"id": …}]}` (OpenAI)."""
    models = (
        (listing.get("data") if isinstance(listing.get("data"), list) else listing.get("models"))
        if isinstance(listing, Mapping)
        else None
    )
    return [model for model in models or () if isinstance(model, dict)]


def display_address(root: str) -> str:
    parts = urlsplit(root)
    here = parts.hostname in ("127.0.0.1", "localhost", "::1")
    return f"on port {parts.port}" if here and parts.port else f"at {parts.netloc}"


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


_TRIAL_SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
_TRIAL_WORDS = [{"role": "user", "content": "Say hello."}]
_TRIAL_TOKENS = 24


async def try_out(address: str, name: str, server: ServerModel, key: str = "") -> ServerModel:
    """Tests schema methods with small requests and returns `server` with the first that works. Raises
    `OSError`, `TimeoutError`, `ValueError` and `ServerRefusal`.
    """
    for form in _TRIED.get(server.kind, ("json_schema", "json_object")):
        try:
            try:
                keeps_to_it = isinstance(
                    msgspec.json.decode(await _try_request(address, name, server, key, form)).get("ok"), bool
                )
            except (ValueError, AttributeError):
                keeps_to_it = False
            if keeps_to_it:
                return replace(server, schema=form)
        except ServerRefusal:
            continue
    await _try_request(address, name, server, key, "none")
    return replace(server, schema="none")


async def _try_request(address: str, name: str, server: ServerModel, key: str, form: SchemaForm) -> str:
    body: dict[str, Any] = {"model": name, "messages": _TRIAL_WORDS, "stream": False}
    if server.kind == "Ollama":
        body["options"] = {"num_predict": _TRIAL_TOKENS, "num_ctx": FIRST_WINDOW}
        if form != "none":
            body["format"] = _TRIAL_SCHEMA
        answer = await fetch(f"{root_of(address)}/api/chat", body, timeout=TRIAL_SECONDS)
        return str((answer.get("message") or {}).get("content") or "")
    body["max_tokens"] = _TRIAL_TOKENS
    if form == "guided_json":
        body["guided_json"] = _TRIAL_SCHEMA
    elif form != "none":
        body["response_format"] = response_format(_TRIAL_SCHEMA, form)
    answer = await fetch(f"{address}/chat/completions", body, key=key, timeout=TRIAL_SECONDS)
    match answer:
        case {"choices": [{"message": {"content": str(said)}}, *_]}:
            return said
    return ""


async def why_silent(address: str, name: str, messages: Sequence[Message], key: str = "") -> str:
    """Repeats a request without streaming to explain its empty stream; "" without explanation."""
    from tui_agent.model.wires import chat

    talk = conversation(messages, Rules(), Origin(), sees=False)
    body = {"model": name, "messages": chat.messages(talk, Rules()), "stream": False, "max_tokens": 1}
    try:
        await fetch(f"{address}/chat/completions", body, key=key, timeout=TRIAL_SECONDS)
    except ServerRefusal as error:
        return str(error)
    except (OSError, TimeoutError, ValueError):
        pass
    return ""


_WINDOW = late(
    r"(?i)(?:context[ _](?:window|length|size)|n_ctx)\W{1,4}(?:of |is |only |tokens? )*\(?(\d{3,})"
    r"|context length of only (\d{3,})|maximum context length is (\d{3,})"
    r"|tokens? > (\d{3,}) max|maximum number of tokens allowed:? ?\(?(\d{3,})"
)
_ASKED = late(
    r"(?i)(?:requested(?: tokens)?|request|n_prompt_tokens\W{1,4}|resulted in|keep the first|too long:|token count)"
    r" ?\(?(\d{3,})"
)
_THOUSANDS = late(r"(?<=\d),(?=\d{3})")


def sizes_in(words: str) -> tuple[int, int]:
    """The window and the request size in an error message; 0 if missing."""
    words = _THOUSANDS.sub("", words)
    window, asked = _WINDOW.search(words), _ASKED.search(words)
    named = next(filter(None, window.groups())) if window else ""
    return whole_number(named), whole_number(asked[1]) if asked else 0


LOOK_SECONDS = 0.1


class _StoredProperties(Struct):
    models: dict[str, ServerModel] = {}
    found: dict[str, dict[str, str]] = {}


class ServerMemory:
    """In `folder`, or only in memory without one."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._kept: _StoredProperties | None = None

    @property
    def _path(self) -> Path | None:
        return self._folder / "servers.json" if self._folder else None

    def _read(self) -> _StoredProperties:
        if self._kept is None:
            self._kept = _StoredProperties()
            try:
                if self._path is not None:
                    self._kept = msgspec.json.decode(read_start(self._path), type=_StoredProperties)
            except (OSError, msgspec.MsgspecError):
                pass
        return self._kept

    def learned(self, address: str, name: str) -> ServerModel:
        return self._read().models.get(f"{address} {name}", ServerModel())

    def learn(self, address: str, name: str, server: ServerModel) -> None:
        self._read().models[f"{address} {name}"] = server
        self._write()

    def variables(self, model: str) -> dict[str, str]:
        return self._read().found.get(model, {})

    def found(self, model: str, variables: Mapping[str, str]) -> None:
        if self._read().found.get(model, {}) != variables:
            self._read().found[model] = dict(variables)
            self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        try:
            make_private(self._path.parent)
            replace_private(self._path, msgspec.json.encode(self._kept), sync=False)
        except OSError:
            pass  # they can be learned again

    @asynccontextmanager
    async def place(self, address: str, slots: int, last: bool = False) -> AsyncGenerator[int]:
        """Waits for a slot free of our processes' requests and yields its number, 0 if unlimited. `last`
        prefers the last slot, for requests beside a conversation.
        """
        numbers = range(slots) if slots else range(1)
        while True:
            for number in reversed(numbers) if last else numbers:
                held = self._hold(address, number, fcntl.LOCK_EX if slots else fcntl.LOCK_SH)
                if held is not None:
                    try:
                        yield number
                    finally:
                        os.close(held)
                    return
            await asyncio.sleep(LOOK_SECONDS)

    def is_full(self, address: str, slots: int) -> bool:
        for number in range(slots or 1):
            held = self._hold(address, number, fcntl.LOCK_EX if slots else fcntl.LOCK_SH)
            if held is not None:
                os.close(held)
                return False
        return True

    def is_busy(self, address: str) -> bool:
        """Whether any of our processes has a request at the server."""
        if self._folder is None:
            return False
        for path in (self._folder / "servers").glob(f"{_digest(address)}-*"):
            held = self._hold(address, whole_number(path.name.rpartition("-")[2]), fcntl.LOCK_EX)
            if held is None:
                return True
            os.close(held)
        return False

    def _hold(self, address: str, number: int, how: int) -> int | None:
        """`None` if another process holds the lock."""
        if self._folder is None:
            return os.open(os.devnull, os.O_RDONLY)
        folder = self._folder / "servers"
        try:
            make_private(folder)
            held = open_private(folder / f"{_digest(address)}-{number}", os.O_RDWR | os.O_CREAT)
        except OSError:
            return os.open(os.devnull, os.O_RDONLY)
        try:
            fcntl.flock(held, how | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            return None
        return held


def _digest(address: str) -> str:
    return md5(root_of(address).encode(), usedforsecurity=False).hexdigest()[:16]
