"""Providers' model listings: parsing, limits, and a cache on disk.

https://platform.openai.com/docs/api-reference/models/list, https://docs.anthropic.com/en/api/models-list,
https://ai.google.dev/api/models, https://openrouter.ai/docs/api-reference/list-available-models
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_agent.files.operating_system import read_start
from tui_agent.files.private import write_private
from tui_agent.model.model_table import KnownModel, Price, Route
from tui_agent.model.rules import ListingForm
from tui_agent.settings.folders import user_folders

_log = logging.getLogger(__name__)
KEPT_SECONDS = 86_400.0
#: Cache key of an account's listing, because login tokens change.
LOGIN = "login"
#: Limits: entries, characters of a name, bytes of a file.
MOST_MODELS, LONGEST_NAME, MOST_BYTES = 5_000, 200, 16_000_000
_NO_CHAT = re.compile(
    r"embed|image|dall-e|\btts|whisper|transcri|audio|realtime|moderation|rerank|guard|\bsora|\bveo|imagen|lyria"
    r"|\bocr|speech|robotics|computer-use|deep-research|search-(?:api|preview)|babbage|davinci|\baqa\b|\blive\b"
    r"|turbo-instruct|\bcontainer\b|dreamer|-fim\b|-s2s|livetranslate",
    re.IGNORECASE,
)


class ListedModel(Struct, frozen=True, array_like=True):
    """`created` is a Unix time, 0 if unknown."""

    name: str
    known: KnownModel
    created: int = 0


class Listing(Struct, frozen=True):
    """`at` is the Unix time of the request, 0 if there was none."""

    at: float = 0.0
    models: tuple[ListedModel, ...] = ()

    @property
    def fresh(self) -> bool:
        return 0 <= time.time() - self.at <= KEPT_SECONDS


class ListAnswer(Struct, frozen=True):
    """The newest available listing, and the error of a failed update."""

    listing: Listing = Listing()
    error: str = ""


@runtime_checkable
class ListsModels(Protocol):
    async def list_models(self, provider: str, *, again: bool = False) -> ListAnswer: ...


def is_chat(name: str) -> bool:
    return _NO_CHAT.search(name) is None


def models_in(form: ListingForm, answer: Any) -> tuple[ListedModel, ...]:
    """Raises `ValueError` if `answer` is not a listing."""
    entries = answer.get("models" if form == "gemini" else "data") if isinstance(answer, dict) else answer
    if not isinstance(entries, list):
        raise ValueError("the answer is not a list of models")
    found: dict[str, ListedModel] = {}
    for entry in entries:
        model = _model(form, entry) if isinstance(entry, dict) else None
        if model is not None:
            name = model.name
            if 0 < len(name) <= LONGEST_NAME and name.isprintable() and " " not in name and is_chat(name):
                found.setdefault(name, model)
        if len(found) == MOST_MODELS:
            break
    return tuple(found.values())


def _model(form: ListingForm, entry: dict[str, Any]) -> ListedModel | None:
    match form:
        case "gemini":
            name, methods = entry.get("name"), entry.get("supportedGenerationMethods")
            if not isinstance(name, str) or (isinstance(methods, list) and "generateContent" not in methods):
                return None
            window, output = _first(entry, "inputTokenLimit"), _first(entry, "outputTokenLimit")
            made = "r" if entry.get("thinking") is True else ""
            return ListedModel(name.removeprefix("models/"), KnownModel(window, output, made))
        case "openrouter":
            return _of_openrouter(entry)
    name = entry.get("id")
    can = _dict(entry.get("capabilities"))
    limits = _dict(can.get("limits"))
    supports = {**can, **_dict(can.get("supports"))}
    if not isinstance(name, str) or supports.get("completion_chat") is False or entry.get("active") is False:
        return None
    if isinstance(can.get("type"), str) and can["type"] != "chat":
        return None
    window = _first(
        entry, "context_window", "context_length", "max_context_length", "max_input_tokens", "max_model_len"
    )
    window = window or _first(limits, "max_prompt_tokens", "max_context_window_tokens")
    output = _first(entry, "max_completion_tokens", "max_output_tokens", "max_tokens")
    letters = {
        "t": _able(supports, "function_calling", "tool_calls", "tools"),
        "s": _able(supports, "structured_outputs"),
        "v": _able(supports, "vision", "image_input") or entry.get("supports_image_in") is True,
        "r": _able(supports, "reasoning", "thinking") or entry.get("supports_reasoning") is True,
    }
    made = "".join(letter for letter, able in letters.items() if able)
    known = KnownModel(window, output or _first(limits, "max_output_tokens"), made)
    return ListedModel(name, replace(known, ends=_day(entry.get("deprecation"))), _created(entry))


def _of_openrouter(entry: dict[str, Any]) -> ListedModel | None:
    name, architecture = entry.get("id"), _dict(entry.get("architecture"))
    outputs = architecture.get("output_modalities")
    if not isinstance(name, str) or (isinstance(outputs, list) and "text" not in outputs):
        return None
    pricing = _dict(entry.get("pricing"))
    given, made, cached, written = (
        _dollars(pricing.get(key))
        for key in ("prompt", "completion", "input_cache_read", "input_cache_write")
    )
    prices: tuple[Price, ...] = ()
    if given is not None and made is not None:
        cached = given if cached is None else cached
        written = given if written is None else written
        prices = (Price(-1, given, made, cached, written, written),)
    supported, inputs = _list(entry.get("supported_parameters")), _list(architecture.get("input_modalities"))
    letters = {
        "t": "tools" in supported,
        "s": "structured_outputs" in supported,
        "v": "image" in inputs,
        "r": "reasoning" in supported,
    }
    can = "".join(letter for letter, able in letters.items() if able)
    output = _first(_dict(entry.get("top_provider")), "max_completion_tokens")
    ends = _day(entry.get("expiration_date"))
    return ListedModel(
        name, KnownModel(_first(entry, "context_length"), output, can, prices, ends), _created(entry)
    )


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dollars(value: Any) -> float | None:
    try:
        dollars = float(value)
    except (TypeError, ValueError):
        return None
    return dollars if 0 <= dollars < 1 else None


def _first(entry: dict[str, Any], *names: str) -> int:
    found = (entry.get(name) for name in names)
    return next(
        (it for it in found if isinstance(it, int) and not isinstance(it, bool) and 0 < it < 10**10), 0
    )


def _able(supports: dict[str, Any], *names: str) -> bool:
    values = (supports.get(name) for name in names)
    return any(it is True or _dict(it).get("supported") is True for it in values)


def _created(entry: dict[str, Any]) -> int:
    value = entry.get("created", entry.get("created_at"))
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 < value < 10**11 else 0
    try:
        return max(0, int(datetime.fromisoformat(str(value)).timestamp()))
    except (ValueError, OverflowError):
        return 0


def _day(value: Any) -> str:
    try:
        return datetime.fromisoformat(value).date().isoformat() if isinstance(value, str) else ""
    except ValueError:
        return ""


def _path(route: Route) -> Path:
    key = hashlib.sha256(route.key.encode()).hexdigest()
    digest = hashlib.sha256(f"{route.address}\0{key}".encode()).hexdigest()[:32]
    return user_folders().cache / f"models-{digest}.json"


def cached_listing(route: Route) -> Listing:
    """Returns a listing of any age, or an empty one. Blocks."""
    try:
        path = _path(route)
        if path.stat().st_size > 2 * MOST_BYTES:
            return Listing()
        return msgspec.json.decode(read_start(path), type=Listing)
    except (OSError, msgspec.MsgspecError):
        return Listing()


def cache_listing(route: Route, listing: Listing) -> None:
    """Blocks."""
    try:
        write_private(_path(route), msgspec.json.encode(listing), sync=False)
    except OSError:
        _log.debug("the list of models cannot be stored", exc_info=True)
