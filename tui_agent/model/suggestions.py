"""The model to suggest for a provider, and the one that follows a model which was switched off: by table and date."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import cache

from tui_agent.files.numbers import real_number, whole_number
from tui_agent.model.rules import providers, rules_of
from tui_agent.model.table import KnownModel, table

#: A model that ends within so many days is not suggested, and its use is reported.
NOT_SUGGESTED_DAYS, REPORTED_DAYS = 30, 60
_DATE = re.compile(r"[-@](?:20\d\d-\d\d-\d\d|20\d{6}|\d\d-20\d\d|\d{4})(?!\d)")
#: `5-5`, `6.1`, `k3`, `4`, but neither `120b` nor `128k`.
_VERSION = re.compile(r"(?<![\d.])(\d{1,2})(?:[.-](\d{1,2}))?(?![\d.]|[bk]\b)", re.IGNORECASE)
_WORDS = re.compile(r"[a-z]{2,}", re.IGNORECASE)
#: Parts of a name that do not say what kind of model it is.
_BESIDE = ("preview", "latest", "exp", "experimental", "beta")


def today() -> date:
    return datetime.now(UTC).date()


def version_of(name: str) -> tuple[int, float]:
    """The version in a model's name, (5, 0.5) for `claude-opus-5-5`; (0, 0) if it has none.

    What follows the point is a fraction: `grok-4.20` is older than `grok-4.3`.
    """
    found = _VERSION.search(_DATE.sub("", name))
    return (whole_number(found[1]), real_number(f"0.{found[2] or 0}")) if found else (0, 0.0)


def is_ended(known: KnownModel, day: date, within: int = 0) -> bool:
    """Whether a model is switched off at a day, or so many days later."""
    return bool(known.ends) and known.ends <= (day + timedelta(days=within)).isoformat()


def suggestion(provider: str, day: date | None = None) -> str:
    """The full name of the model to suggest: the newest of the provider's rule; "" if there is none."""
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
    """The full name of the model that follows one which is switched off: the newest of its kind, else the suggestion
    for its provider; "" if there is neither."""
    day = day or today()
    kind = _kind_of(model)
    fitting = [name for name in _lasting(provider, day) if _kind_of(name) == kind and name != model]
    newest = max(fitting, key=lambda name: (version_of(name), -len(name)), default="")
    if newest and version_of(newest) > version_of(model):
        return f"{provider}/{newest}"
    return suggestion(provider, day)


def about_the_end(provider: str, model: str, known: KnownModel, day: date | None = None) -> str:
    """That a model is switched off or will be soon, and which follows it; "" if neither is so."""
    day = day or today()
    if not is_ended(known, day, REPORTED_DAYS):
        return ""
    next_name = follower(provider, model, day)
    follows = f"; {next_name} follows it" if next_name else "; choose another model"
    how = "was switched off" if is_ended(known, day) else "will be switched off"
    return f"{provider}/{model} {how} on {known.ends}{follows}"


def _lasting(provider: str, day: date) -> Iterable[str]:
    """Models of a provider that are not ended soon; one without a table offers those of the others."""
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
    """The words of a model's name: (`claude`, `opus`); models of one kind differ in version and date."""
    words = _WORDS.findall(_DATE.sub("", model).lower())
    return tuple(word for word in words if word not in _BESIDE) or (model[:1].lower(),)


def _size_of(name: str) -> int:
    """The billions of parameters that the name says; 0 if it says none."""
    found = re.search(r"\b(\d+)b\b", name)
    return whole_number(found[1]) if found else 0
