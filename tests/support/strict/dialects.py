"""The dialects of each provider."""

from __future__ import annotations

from support.strict.anthropic import Anthropic
from support.strict.chat import Chat
from support.strict.chat_others import Groq, MiniMax, Xai
from support.strict.chat_vendors import DashScope, DeepSeek, Moonshot, Zai
from support.strict.dialect import Dialect
from support.strict.gemini import Gemini
from support.strict.mistral import Mistral
from support.strict.openrouter import OpenRouter
from support.strict.responses import Responses

_DIALECTS: dict[str, tuple[type[Dialect], ...]] = {
    "openai": (Responses, Chat),
    "anthropic": (Anthropic,),
    "gemini": (Gemini,),
    "deepseek": (DeepSeek,),
    "mistral": (Mistral,),
    "openrouter": (OpenRouter,),
    "groq": (Groq,),
    "xai": (Xai,),
    "moonshot": (Moonshot,),
    "zai": (Zai,),
    "minimax": (MiniMax,),
    "dashscope": (DashScope,),
}


def dialects_of(provider: str, key: str) -> tuple[Dialect, ...]:
    """The dialects of a provider, the first for paths that none takes."""
    return tuple(dialect(provider, key) for dialect in _DIALECTS[provider])
