"""The dialects of each provider."""

from __future__ import annotations

from support.strict.anthropic import Anthropic
from support.strict.dialect import Dialect
from support.strict.responses import Responses

_DIALECTS: dict[str, tuple[type[Dialect], ...]] = {
    "openai": (Responses,),
    "anthropic": (Anthropic,),
}


def dialects_of(provider: str, key: str) -> tuple[Dialect, ...]:
    """The dialects of a provider, the first for paths that none takes."""
    return tuple(dialect(provider, key) for dialect in _DIALECTS[provider])
