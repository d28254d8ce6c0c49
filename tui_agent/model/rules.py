"""The table of provider rules, `rules.toml`: how a provider is reached, and what it demands of a request.

The transports render requests by it, and the strict servers of the tests enforce it. Rules of one model are, each over
the one before: the defaults of `Rules`, the `[[models]]` entries whose `match` is found in the model's name, the
provider's own table, and the entries below that.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tui_agent.settings.schema import Effort

PATH = Path(__file__).with_name("rules.toml")
__all__ = ["Effort"]
WireName = Literal["chat", "responses", "messages", "generate", "litellm"]
#: Levels of effort, the lowest first. A person chooses among those of `Effort`; the others are words of providers.
LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
#: How a level is asked for, by wire and generation of models; see `effort.parameters`.
EffortForm = Literal[
    "",
    "reasoning_effort",
    "adaptive",
    "budget",
    "thinking_level",
    "thinking_budget",
    "thinking_switch",
    "enable_thinking",
    "openrouter",
]

ListingForm = Literal["", "openai", "anthropic", "gemini", "openrouter"]


class Rules(Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a provider, and of a model at it. Every entry of the table may set every field."""

    #: The request format, and the one at an address that is not the provider's own ("" for the same).
    wire: WireName = "chat"
    wire_elsewhere: Literal["", "chat"] = ""
    address: str = ""
    #: Variables with another address, and with the key; the first that is set counts.
    addresses: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    #: The key that is sent if there is none; "" if there must be one.
    key: str = ""
    #: The header that holds the key; `Authorization` holds it as `Bearer KEY`.
    auth: str = "Authorization"
    headers: dict[str, str] = {}
    #: Headers whose values are variables of the environment.
    variables: dict[str, str] = {}
    #: Headers that depend on the request: `session`, `initiator` (the person or the model), `vision`, or an `id`.
    per_request: dict[str, Literal["session", "initiator", "vision", "id"]] = {}
    #: The instructions of a request that has none, if the provider demands some.
    instructions: str = ""
    #: Fields that are added to every request.
    body: dict[str, Any] = {}
    #: Whether models and prices are asked for at the provider's own list.
    lists_models: bool = False
    #: The form of the provider's own list of models, and its address if it is another; see `listing`.
    listing: ListingForm = ""
    list_address: str = ""
    #: Names of the models to suggest, a regular expression: the newest that is not ended soon is the suggestion.
    suggest: str = ""
    #: Whether a login takes the place of a key that could be typed.
    login: bool = False

    #: Models of one family accept each other's thinking; "" is a family of its own for each model.
    family: str = ""
    #: Whether the model refuses functions on chat completions, so that it is asked through Responses anywhere.
    responses_only: bool = False
    #: The field of a chat message that carries thinking back; "" if none does. In `content` it is a list of parts.
    thinking_field: Literal["", "reasoning_content", "reasoning", "reasoning_details", "content"] = ""
    #: Whether a message with calls and without thinking gets a placeholder, because the provider demands one.
    thinking_required: bool = False
    #: Whether thinking is valid only if everything that precedes it is unchanged.
    thinking_bound: bool = False

    #: Whether the items of Responses may go back with their `status`.
    item_status: bool = True

    #: Ids of calls that are accepted; others are replaced by one of `call_id_length` letters and digits.
    call_id: str = "^[a-zA-Z0-9_-]{1,64}$"
    call_id_length: int = 24
    #: What an assistant message says that has to be put between a tool's result and a person's message.
    after_tool: str = ""

    #: The name of the limit on the length of a reply.
    output_limit: str = "max_tokens"
    #: Whether a temperature is accepted: always, only if the model does not think, or never.
    temperature: Literal["always", "without_thinking", "never"] = "always"
    #: Whether a streamed reply can be held to a JSON schema.
    schema: bool = True
    #: Whether the usage at the end of a stream has to be asked for.
    stream_usage: bool = True

    #: How cached tokens are chosen: by marks, by a key of the session, or by the provider alone.
    cache: Literal["", "marks", "key"] = ""
    #: Whether marks may ask to be kept for an hour.
    long_cache: bool = False

    effort: EffortForm = ""
    #: The levels of the model, the lowest first; the last is what `max` means.
    levels: tuple[str, ...] = ()
    #: The level that the provider's own tool uses for the model; "" leaves it to the provider.
    auto: str = ""
    #: Tokens of thinking by level, for models that are given a number.
    budgets: dict[str, int] = {}
    #: How thinking is switched off, for models that have a word of their own for it.
    off: dict[str, Any] = {}
    #: Fields of the switch that turns thinking on, for models that want more than `enabled`.
    on: dict[str, Any] = {}
    #: Whether the text of thinking has to be asked for.
    display: bool = False

    #: Whether the count of output tokens leaves out those of thinking.
    thinking_uncounted: bool = False
    #: The source of the entry.
    source: str = ""


class _Entry(Struct, frozen=True, forbid_unknown_fields=True):
    match: str
    set: dict[str, Any]


class _Table(Struct, frozen=True):
    models: tuple[_Entry, ...]
    providers: dict[str, tuple[dict[str, Any], tuple[_Entry, ...]]]


@cache
def _table() -> _Table:
    raw = tomllib.loads(PATH.read_text("utf-8"))
    providers = {}
    for name, own in raw["providers"].items():
        models = own.pop("models", ())
        providers[name] = (own, tuple(_entry(model) for model in models))
    return _Table(tuple(_entry(model) for model in raw["models"]), providers)


def _entry(raw: dict[str, Any]) -> _Entry:
    return _Entry(raw.pop("match"), raw)


def providers() -> tuple[str, ...]:
    """The providers that are reached directly."""
    return tuple(_table().providers)


@cache
def rules_of(provider: str, model: str = "") -> Rules:
    """The rules for a model at a provider; the general ones for a provider that the table does not have."""
    table = _table()
    own, entries = table.providers.get(provider, ({"wire": "litellm"}, ()))
    merged: dict[str, Any] = {}
    if model:
        for entry in table.models:
            if re.search(entry.match, model, re.IGNORECASE):
                merged |= entry.set
    merged |= own
    for entry in entries:
        if model and re.search(entry.match, model, re.IGNORECASE):
            merged |= entry.set
    return msgspec.convert(merged, Rules)


def family_of(provider: str, model: str) -> str:
    """The family of a model: that of its rules, else its own name without a date."""
    return rules_of(provider, model).family or re.sub(r"-(?:\d{4}-\d\d-\d\d|\d{8})$", "", model)
