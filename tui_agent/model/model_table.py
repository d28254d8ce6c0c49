"""Known models of directly supported providers: address, key, rules, window and prices.

`make models` generates `models.json` from litellm's price table. `ends.json` adds retirement dates with
their sources.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_agent.files.numbers import real_number, whole_number
from tui_agent.model import rules
from tui_agent.model.client import Abilities, UsageChunk
from tui_agent.model.parts import Origin
from tui_agent.model.rules import Rules, WireName, family_of, providers, rules_of

#: Days before its retirement: a model is no longer suggested; its use is reported.
NOT_SUGGESTED_DAYS, REPORTED_DAYS = 30, 60
_DATE = re.compile(r"[-@](?:20\d\d-\d\d-\d\d|20\d{6}|\d\d-20\d\d|\d{4})(?!\d)")
#: Matches `5-5`, `6.1`, `k3` and `4`, but neither `120b` nor `128k`.
_VERSION = re.compile(r"(?<![\d.])(\d{1,2})(?:[.-](\d{1,2}))?(?![\d.]|[bk]\b)", re.IGNORECASE)
_WORDS = re.compile(r"[a-z]{2,}", re.IGNORECASE)
_BESIDE = ("preview", "latest", "exp", "experimental", "beta")


def today() -> date:
    return datetime.now(UTC).date()


def version_of(name: str) -> tuple[int, float]:
    """(5, 0.5) for `claude-opus-5-5`; (0, 0) without one. The minor version is a decimal fraction:
    `grok-4.20` is older than `grok-4.3`."""
    found = _VERSION.search(_DATE.sub("", name))
    return (whole_number(found[1]), real_number(f"0.{found[2] or 0}")) if found else (0, 0.0)


def is_ended(known: KnownModel, day: date, within: int = 0) -> bool:
    return bool(known.ends) and known.ends <= (day + timedelta(days=within)).isoformat()


@cache
def suggestion(provider: str, day: date) -> str:
    """The newest model that matches the provider's rule, or ""."""
    rule = rules_of(provider).suggest
    if not rule:
        return ""
    fitting = [name for name in _lasting(provider, day) if re.search(rule, name, re.IGNORECASE)]
    newest = max(fitting, key=lambda name: (version_of(name), _size_of(name), name), default="")
    return f"{provider}/{newest}" if newest else ""


def follower(provider: str, model: str, day: date | None = None) -> str:
    """A retired model's successor: the newest of its kind, otherwise the provider's suggestion, or ""."""
    day = day or today()
    kind = _kind_of(model)
    fitting = [name for name in _lasting(provider, day) if _kind_of(name) == kind and name != model]
    newest = max(fitting, key=lambda name: (version_of(name), -len(name)), default="")
    if newest and version_of(newest) > version_of(model):
        return f"{provider}/{newest}"
    return suggestion(provider, day)


def about_the_end(provider: str, model: str, known: KnownModel, day: date | None = None) -> str:
    day = day or today()
    if not is_ended(known, day, REPORTED_DAYS):
        return ""
    next_name = follower(provider, model, day)
    follows = f"; {next_name} follows it" if next_name else "; choose another model"
    how = "was switched off" if is_ended(known, day) else "will be switched off"
    return f"{provider}/{model} {how} on {known.ends}{follows}"


def _lasting(provider: str, day: date) -> Iterable[str]:
    models = table().models
    if provider in models:
        return [
            name
            for name, known in models[provider].items()
            if not is_ended(known, day, NOT_SUGGESTED_DAYS) and not name.startswith("ft:")
        ]
    return [
        f"{other}/{name}"
        for other in providers()
        for name, known in models.get(other, {}).items()
        if not is_ended(known, day, NOT_SUGGESTED_DAYS)
    ]


def _kind_of(model: str) -> tuple[str, ...]:
    words = _WORDS.findall(_DATE.sub("", model).lower())
    return tuple(word for word in words if word not in _BESIDE) or (model[:1].lower(),)


def _size_of(name: str) -> int:
    found = re.search(r"\b(\d+)b\b", name)
    return whole_number(found[1]) if found else 0


class Provider(Struct, frozen=True):
    """Named as in litellm. One of `keys` suffices; if empty, none is required."""

    name: str
    keys: tuple[str, ...]
    address: str = ""

    @property
    def suggestion(self) -> str:
        return suggestion(self.name, today())

    @property
    def takes_key(self) -> bool:
        known = rules.rules_of(self.name)
        return bool(known.suggest) and not known.login


_LITELLMS = (
    Provider("cohere", ("COHERE_API_KEY", "CO_API_KEY"), "COHERE_API_BASE"),
    Provider("together_ai", ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY")),
    Provider("fireworks_ai", ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY")),
    Provider("bedrock", ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK")),
    Provider("vertex_ai", ("GOOGLE_APPLICATION_CREDENTIALS",)),
    Provider("ollama", (), "OLLAMA_API_BASE"),
    Provider("ollama_chat", (), "OLLAMA_API_BASE"),
)
LOCAL_ADDRESSES = {
    "ollama": "http://127.0.0.1:11434",
    "ollama_chat": "http://127.0.0.1:11434",
    "lm_studio": "http://127.0.0.1:1234/v1",
    "llamafile": "http://127.0.0.1:8080/v1",
    "hosted_vllm": "http://127.0.0.1:8000/v1",
}


@cache
def all_providers() -> tuple[Provider, ...]:
    direct = []
    for name in rules.providers():
        known = rules.rules_of(name)
        keys = () if known.key else known.keys  # local servers accept any key
        address = next((variable for variable in known.addresses if variable.endswith("_API_BASE")), "")
        direct.append(Provider(name, keys, address))
    return (*direct, *_LITELLMS)


def provider_of(model: str) -> Provider | None:
    prefix, slash, _ = model.partition("/")
    if not slash:
        if model.startswith(("gpt-", "o1", "o3", "o4", "chatgpt-", "codex-")):
            prefix = "openai"
        else:
            prefix = "anthropic" if model.startswith("claude-") else ""
    return next((provider for provider in all_providers() if provider.name == prefix), None)


PATH = Path(__file__).with_name("models.json")
ENDS_PATH = Path(__file__).with_name("ends.json")
#: Tools, schema, vision, reasoning.
Ability = Literal["t", "s", "v", "r"]
#: Azure API versions with Responses.
_AZURE_V1 = ("", "v1", "preview", "latest")


class Price(Struct, frozen=True, array_like=True):
    """Dollars per token, for requests of more than `above` tokens. `written_long`: written to a cache for an
    hour.
    """

    above: int
    input: float
    output: float
    cached: float
    written: float
    written_long: float


class OffPeakPrice(Struct, frozen=True, array_like=True):
    """Weekdays (Monday is 1); start and end in minutes of the day (UTC), the end exclusive."""

    spans: tuple[tuple[tuple[int, ...], int, int], ...]
    price: Price

    def holds(self, now: float) -> bool:
        at = time.gmtime(now)
        minute = at.tm_hour * 60 + at.tm_min
        return any(at.tm_wday + 1 in days and begin <= minute < end for days, begin, end in self.spans)


class KnownModel(Struct, frozen=True, array_like=True):
    """`window` and `output` are in tokens, 0 if unknown. `can` combines `Ability` values."""

    window: int
    output: int
    can: str
    prices: tuple[Price, ...] = ()
    #: Announced retirement date (`2026-12-01`), or "".
    ends: str = ""
    off_peak: OffPeakPrice | None = None

    def cost(self, usage: UsageChunk, now: float | None = None) -> float | None:
        """Dollars at a Unix time; `None` if the price is unknown."""
        price = next((price for price in reversed(self.prices) if usage.input > price.above), None)
        if price is None:
            return None
        if self.off_peak is not None and self.off_peak.holds(time.time() if now is None else now):
            price = self.off_peak.price
        fresh = max(0, usage.input - usage.cached - usage.written)
        return (
            fresh * price.input
            + usage.cached * price.cached
            + (usage.written - usage.written_long) * price.written
            + usage.written_long * price.written_long
            + usage.output * price.output
        )


class ModelTable(Struct, frozen=True):
    """From that version of litellm."""

    litellm: str
    models: dict[str, dict[str, KnownModel]]


class _Retirement(Struct, frozen=True, forbid_unknown_fields=True):
    ends: str
    source: str


def of_litellm() -> ModelTable:
    return msgspec.json.decode(PATH.read_bytes(), type=ModelTable)


@cache
def table() -> ModelTable:
    made = of_litellm()
    announced = msgspec.json.decode(ENDS_PATH.read_bytes(), type=dict[str, dict[str, _Retirement]])
    for provider, models in announced.items():
        for name, end in models.items():
            known = made.models[provider].get(name)
            if known is not None and not known.ends:
                made.models[provider][name] = replace(known, ends=end.ends)
    return made


class Route(Struct, frozen=True):
    provider: str
    model: str
    rules: Rules
    address: str
    key: str
    known: KnownModel | None = None
    headers: dict[str, str] = {}

    @property
    def own(self) -> bool:
        return self.address.rstrip("/") == self.rules.address

    @property
    def wire(self) -> WireName:
        """The dialect of requests; at other addresses that of compatible servers."""
        if self.own or self.rules.responses_only or not self.rules.wire_elsewhere:
            return self.rules.wire
        return self.rules.wire_elsewhere

    @property
    def credential(self) -> str:
        """The value of the key's header."""
        return f"Bearer {self.key}" if self.rules.auth == "Authorization" else self.key

    def origin(self, wire: str) -> Origin:
        return Origin(wire, self.provider, family_of(self.provider, self.model))


#: TLS settings, litellm's own settings, and authentication that only litellm supports.
_FOR_LITELLM = (
    "SSL_SECURITY_LEVEL",
    "SSL_ECDH_CURVE",
    "SSL_CERTIFICATE",
    "LITELLM_PROXY_API_BASE",
    "OPENAI_CUSTOM_HEADERS",
    "ANTHROPIC_AUTH_TOKEN",
)


def route(name: str, environment: Mapping[str, str]) -> Route | None:
    """Returns None for litellm."""
    if any(environment.get(variable) for variable in _FOR_LITELLM):
        return None
    found = split(name)
    if found is None:
        return None
    provider, model = found
    rules = rules_of(provider, model)
    address = next((value for one in rules.addresses if (value := environment.get(one))), rules.address)
    if provider == "azure":
        version = environment.get("AZURE_API_VERSION", "")
        path = urlsplit(address).path.rstrip("/")
        if not address or version not in _AZURE_V1 or (path and not path.endswith("/openai/v1")):
            address = ""
        else:
            address = address.rstrip("/") if path else f"{address.rstrip('/')}/openai/v1"
    if not address:
        return None
    key = next((value for one in rules.keys if (value := environment.get(one))), rules.key)
    headers = {header: value for header, of in rules.variables.items() if (value := environment.get(of))}
    return Route(provider, model, rules, address, key, table().models.get(provider, {}).get(model), headers)


def split(name: str) -> tuple[str, str] | None:
    """Provider and model; `None` if unknown."""
    prefix, slash, model = name.partition("/")
    if slash:
        return (prefix, model) if prefix in providers() and model else None
    found = (provider for provider in ("openai", "anthropic") if name in table().models.get(provider, {}))
    provider = next(found, "")
    return (provider, name) if provider else None


def rules_for(name: str) -> Rules:
    provider, model = split(name) or ("", name)
    return rules_of(provider, model)


def family(name: str) -> tuple[str, str]:
    provider, model = split(name) or ("", name)
    return provider, family_of(provider, model)


def abilities(name: str, made: Route, known: KnownModel | None = None) -> Abilities:
    """`known` overrides the table."""
    known = known or made.known
    if known is None:
        # A new model is assumed to be as able as the provider's others. Many other servers use OpenAI's name.
        able = (made.own or made.provider != "openai") and bool(table().models.get(made.provider))
        return Abilities(name, tools=able, sees=able)
    return Abilities(
        name,
        window=known.window,
        tools="t" in known.can,
        schema="s" in known.can and made.rules.schema,
        cache_marks=made.rules.cache == "marks",
        known=True,
        sees="v" in known.can,
        prices=(known.prices[0].input, known.prices[0].output) if known.prices else None,
    )


def cost(made: Route, usage: UsageChunk, known: KnownModel | None = None) -> float | None:
    """Dollars as reported by the provider, otherwise by price; `None` if unknown."""
    if usage.cost is not None:
        return usage.cost
    known = known or made.known
    return known.cost(usage) if known else None
