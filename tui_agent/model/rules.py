"""Provider rules from `rules.toml`: access, request requirements, and levels of reasoning effort.

Rules of a model are merged in this order, later values overriding: the defaults of `Rules`, general
`[[models]]` entries whose `match` is in the model's name, the provider's table, and the provider's own
entries.
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
WireName = Literal["chat", "responses", "messages", "generate", "litellm"]
#: Effort levels, ascending; some are specific to providers.
LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
#: By wire and model generation; see `effort.parameters`.
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
    """Entries of the table may set any field."""

    #: Request format, and that for custom addresses ("": the same).
    wire: WireName = "chat"
    wire_elsewhere: Literal["", "chat"] = ""
    address: str = ""
    #: Variables of custom addresses and keys; the first one set counts.
    addresses: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    #: Sent if no key is configured, or "".
    key: str = ""
    #: The key's header; `Authorization` has the form `Bearer KEY`.
    auth: str = "Authorization"
    headers: dict[str, str] = {}
    #: Headers with values from environment variables.
    variables: dict[str, str] = {}
    #: Headers that depend on the request: `session`, `initiator` (user or model), `vision`, or an `id`.
    per_request: dict[str, Literal["session", "initiator", "vision", "id"]] = {}
    instructions: str = ""
    body: dict[str, Any] = {}
    lists_models: bool = False
    #: The listing's format, and its address if different.
    listing: ListingForm = ""
    list_address: str = ""
    #: Regular expression; the newest match that is not about to be retired is suggested.
    suggest: str = ""
    #: Whether a login replaces a typed key.
    login: bool = False

    #: Models of a family accept each other's thinking; "": no others.
    family: str = ""
    #: Whether chat completions reject functions, so that any address needs the Responses API.
    responses_only: bool = False
    #: Chat message field that returns thinking; "" if none. `content` holds a list of parts.
    thinking_field: Literal["", "reasoning_content", "reasoning", "reasoning_details", "content"] = ""
    #: Whether messages with calls but no thinking require a placeholder.
    thinking_required: bool = False
    #: Whether thinking is valid only after an unchanged prefix.
    thinking_bound: bool = False

    #: Whether Responses items are returned with their `status`.
    item_status: bool = True

    #: Accepted call ids; others are replaced by `call_id_length` alphanumeric characters.
    call_id: str = "^[a-zA-Z0-9_-]{1,64}$"
    call_id_length: int = 24
    #: Assistant text required between a tool result and a user message.
    after_tool: str = ""

    output_limit: str = "max_tokens"
    #: When a temperature is accepted.
    temperature: Literal["always", "without_thinking", "never"] = "always"
    #: Whether a JSON schema is enforced on streamed replies.
    schema: bool = True
    #: Whether usage must be requested for streams.
    stream_usage: bool = True

    #: Caching by marks, by a session key, or automatic.
    cache: Literal["", "marks", "key"] = ""
    #: Whether marks may request a lifetime of an hour.
    long_cache: bool = False

    effort: EffortForm = ""
    #: Levels, ascending; `max` selects the last.
    levels: tuple[str, ...] = ()
    #: Default level of the provider's own tool; "" leaves it to the provider.
    auto: str = ""
    #: Thinking tokens by level, for models with numeric budgets.
    budgets: dict[str, int] = {}
    #: Parameters that disable thinking, if nonstandard.
    off: dict[str, Any] = {}
    #: Additional fields that enable thinking.
    on: dict[str, Any] = {}
    #: Whether visible thinking must be requested.
    display: bool = False

    #: Whether output token counts exclude thinking.
    thinking_uncounted: bool = False
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
    return tuple(_table().providers)


@cache
def rules_of(provider: str, model: str = "") -> Rules:
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
    return rules_of(provider, model).family or re.sub(r"-(?:\d{4}-\d\d-\d\d|\d{8})$", "", model)


#: Anthropic's minimum thinking budget, in tokens.
LEAST_BUDGET = 1_024
_OPENROUTER_HIGHEST = "xhigh"


def level_of(rules: Rules, effort: Effort) -> str:
    """The highest level for `max`, the next lower supported one, or the lowest. "" leaves the choice to the
    provider.
    """
    if not rules.levels or not rules.effort:
        return ""
    if effort == "auto":
        return rules.auto
    if effort == "max":
        return rules.levels[-1]
    if effort in rules.levels:
        return effort
    lower = [level for level in rules.levels if _rank(level) < _rank(effort)]
    return lower[-1] if lower else rules.levels[0]


def _rank(level: str) -> int:
    return LEVELS.index(level) if level in LEVELS else LEVELS.index("medium")


def effort_note(model: str, rules: Rules, effort: Effort) -> str:
    """Returns "" if it equals the configured one."""
    level = level_of(rules, effort)
    if not rules.levels or not rules.effort:
        return f"{model} has no effort levels" if effort != "auto" else ""
    if effort in ("auto", level):
        return ""
    if effort == "max":
        return f"{model}: max is {level}"
    return f"{model} has no effort {effort}: {level} is used instead"


def accepts_temperature(rules: Rules, effort: Effort) -> bool:
    if rules.temperature == "without_thinking":
        return not rules.levels or level_of(rules, effort) == "none"
    return rules.temperature == "always"


def effort_parameters(rules: Rules, effort: Effort, most: int = 0) -> dict[str, Any]:
    """`most` is the output limit in tokens, 0 for none. Gemini's parameters belong in `thinkingConfig`. The
    Responses API derives its own from `reasoning_effort`.
    """
    level = level_of(rules, effort)
    if not level:
        return {}
    off = level == "none"
    if off and rules.off:
        return dict(rules.off)
    match rules.effort:
        case "reasoning_effort":
            return {"reasoning_effort": level}
        case "adaptive":
            display = {"display": "summarized"} if rules.display else {}
            on = {"thinking": {"type": "adaptive", **display}, "output_config": {"effort": level}}
            return {"thinking": {"type": "disabled"}} if off else on
        case "budget":
            budget = rules.budgets.get(level, 0)
            budget = min(budget, most - LEAST_BUDGET) if most else budget
            enough = budget >= LEAST_BUDGET
            return {"thinking": {"type": "enabled", "budget_tokens": budget}} if enough else {}
        case "thinking_level":
            return {"thinkingLevel": level, "includeThoughts": True}
        case "thinking_budget":
            budget = rules.budgets.get(level, -1)
            budget = min(budget, most // 2) if most else budget
            return {"thinkingBudget": budget, "includeThoughts": budget != 0}
        case "thinking_switch":
            levels = [one for one in rules.levels if one != "none"]
            named = {"reasoning_effort": level} if len(levels) > 1 and not off else {}
            switch = {"type": "disabled"} if off else {"type": "enabled", **rules.on}
            return {"thinking": switch, **named}
        case "enable_thinking":
            budget = {"thinking_budget": rules.budgets[level]} if level in rules.budgets else {}
            return {"enable_thinking": not off, **budget}
        case "openrouter":
            return {"reasoning": {"effort": _OPENROUTER_HIGHEST if level == "max" else level}}
    return {}
