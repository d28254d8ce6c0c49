"""Providers: what each model's name, key and address belong to. Those of `rules.toml` are described there."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from tui_agent.model import rules, suggestions


class Provider(Struct, frozen=True):
    """A provider as litellm names it. Any one of `keys` will do; none are needed if it is empty."""

    name: str
    keys: tuple[str, ...]
    #: The variable with its address.
    address: str = ""

    @property
    def suggestion(self) -> str:
        """A model to suggest to somebody who has the key and has chosen none; "" if none is known."""
        return suggestions.suggestion(self.name)

    @property
    def takes_key(self) -> bool:
        """Whether a key is all that it needs, so that a person may be asked for one."""
        known = rules.rules_of(self.name)
        return bool(known.suggest) and not known.login


#: Providers that only litellm reaches.
_LITELLMS = (
    Provider("cohere", ("COHERE_API_KEY", "CO_API_KEY"), "COHERE_API_BASE"),
    Provider("together_ai", ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY")),
    Provider("fireworks_ai", ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY")),
    Provider("bedrock", ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK")),
    Provider("vertex_ai", ("GOOGLE_APPLICATION_CREDENTIALS",)),
    Provider("ollama", (), "OLLAMA_API_BASE"),
    Provider("ollama_chat", (), "OLLAMA_API_BASE"),
)
#: Where the servers of local models listen, unless their variable says otherwise.
LOCAL_ADDRESSES = {
    "ollama": "http://127.0.0.1:11434",
    "ollama_chat": "http://127.0.0.1:11434",
    "lm_studio": "http://127.0.0.1:1234/v1",
    "llamafile": "http://127.0.0.1:8080/v1",
    "hosted_vllm": "http://127.0.0.1:8000/v1",
}


@cache
def all_providers() -> tuple[Provider, ...]:
    """Those of the rules in their order, then those of litellm alone."""
    direct = (_of_rules(name) for name in rules.providers())
    return (*direct, *_LITELLMS)


def _of_rules(name: str) -> Provider:
    known = rules.rules_of(name)
    # a local server needs no key: one is sent in any case
    keys = () if known.key else known.keys
    address = next((variable for variable in known.addresses if variable.endswith("_API_BASE")), "")
    return Provider(name, keys, address)


def provider_of(model: str) -> Provider | None:
    """By the part of the model's name before the first slash, or by the names that litellm takes without one."""
    prefix, slash, _ = model.partition("/")
    if not slash:
        prefix = _bare(model)
    return next((provider for provider in all_providers() if provider.name == prefix), None)


def _bare(model: str) -> str:
    if model.startswith(("gpt-", "o1", "o3", "o4", "chatgpt-", "codex-")):
        return "openai"
    return "anthropic" if model.startswith("claude-") else ""
