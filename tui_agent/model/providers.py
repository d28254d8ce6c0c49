"""Providers, their variables for keys and addresses, and suggested models, by `rules.toml`, the table and the
date."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import cache

from msgspec import Struct

from tui_agent.files.numbers import real_number, whole_number
from tui_agent.model import rules
from tui_agent.model.model_table import KnownModel, table
from tui_agent.model.rules import providers, rules_of

#: Days before its retirement from which a model is not suggested, and from which its use is reported.
NOT_SUGGESTED_DAYS, REPORTED_DAYS = 30, 60
_DATE = re.compile(r"[-@](?:20\d\d-\d\d-\d\d|20\d{6}|\d\d-20\d\d|\d{4})(?!\d)")
#: Matches `5-5`, `6.1`, `k3` and `4`, but neither `120b` nor `128k`.
_VERSION = re.compile(r"(?<![\d.])(\d{1,2})(?:[.-](\d{1,2}))?(?![\d.]|[bk]\b)", re.IGNORECASE)
_WORDS = re.compile(r"[a-z]{2,}", re.IGNORECASE)
#: Words of a name that do not distinguish models.
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


def suggestion(provider: str, day: date | None = None) -> str:
    """The newest model that matches the provider's rule; ""."""
    return _suggestion(provider, day or today())


@cache
def _suggestion(provider: str, day: date) -> str:
    rule = rules_of(provider).suggest
    if not rule:
        return ""
    fitting = [name for name in _lasting(provider, day) if re.search(rule, name, re.IGNORECASE)]
    newest = max(fitting, key=lambda name: (version_of(name), _size_of(name), name), default="")
    return f"{provider}/{newest}" if newest else ""


def follower(provider: str, model: str, day: date | None = None) -> str:
    """The successor of a retired model: the newest of its kind, otherwise the provider's suggestion; ""."""
    day = day or today()
    kind = _kind_of(model)
    fitting = [name for name in _lasting(provider, day) if _kind_of(name) == kind and name != model]
    newest = max(fitting, key=lambda name: (version_of(name), -len(name)), default="")
    if newest and version_of(newest) > version_of(model):
        return f"{provider}/{newest}"
    return suggestion(provider, day)


def about_the_end(provider: str, model: str, known: KnownModel, day: date | None = None) -> str:
    """A note about a retirement and the successor; ""."""
    day = day or today()
    if not is_ended(known, day, REPORTED_DAYS):
        return ""
    next_name = follower(provider, model, day)
    follows = f"; {next_name} follows it" if next_name else "; choose another model"
    how = "was switched off" if is_ended(known, day) else "will be switched off"
    return f"{provider}/{model} {how} on {known.ends}{follows}"


def _lasting(provider: str, day: date) -> Iterable[str]:
    """Yields the models of all other providers if this one has no table."""
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
    """By litellm's name. One of `keys` suffices; none is required if it is empty."""

    name: str
    keys: tuple[str, ...]
    #: The variable for its address.
    address: str = ""

    @property
    def suggestion(self) -> str:
        """ "" if unknown."""
        return suggestion(self.name)

    @property
    def takes_key(self) -> bool:
        """Whether the user can be asked for a key, which is the only requirement."""
        known = rules.rules_of(self.name)
        return bool(known.suggest) and not known.login


#: Providers supported only through litellm.
_LITELLMS = (
    Provider("cohere", ("COHERE_API_KEY", "CO_API_KEY"), "COHERE_API_BASE"),
    Provider("together_ai", ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY")),
    Provider("fireworks_ai", ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY")),
    Provider("bedrock", ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK")),
    Provider("vertex_ai", ("GOOGLE_APPLICATION_CREDENTIALS",)),
    Provider("ollama", (), "OLLAMA_API_BASE"),
    Provider("ollama_chat", (), "OLLAMA_API_BASE"),
)
#: Default addresses of local servers.
LOCAL_ADDRESSES = {
    "ollama": "http://127.0.0.1:11434",
    "ollama_chat": "http://127.0.0.1:11434",
    "lm_studio": "http://127.0.0.1:1234/v1",
    "llamafile": "http://127.0.0.1:8080/v1",
    "hosted_vllm": "http://127.0.0.1:8000/v1",
}


@cache
def all_providers() -> tuple[Provider, ...]:
    """Ordered as in the rules; those of litellm follow."""
    direct = (_of_rules(name) for name in rules.providers())
    return (*direct, *_LITELLMS)


def _of_rules(name: str) -> Provider:
    known = rules.rules_of(name)
    # local servers accept any key
    keys = () if known.key else known.keys
    address = next((variable for variable in known.addresses if variable.endswith("_API_BASE")), "")
    return Provider(name, keys, address)


def provider_of(model: str) -> Provider | None:
    """Named before the first slash, or implied by a bare model name."""
    prefix, slash, _ = model.partition("/")
    if not slash:
        if model.startswith(("gpt-", "o1", "o3", "o4", "chatgpt-", "codex-")):
            prefix = "openai"
        else:
            prefix = "anthropic" if model.startswith("claude-") else ""
    return next((provider for provider in all_providers() if provider.name == prefix), None)
