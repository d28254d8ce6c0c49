"""Providers and their variables for keys and addresses. Directly supported providers are defined in
`rules.toml`."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from tui_agent.model import rules, suggestions


class Provider(Struct, frozen=True):
    """A provider under litellm's name. One of `keys` suffices; none is required if it is empty."""

    name: str
    keys: tuple[str, ...]
    #: The variable for its address.
    address: str = ""

    @property
    def suggestion(self) -> str:
        """ "" if unknown."""
        return suggestions.suggestion(self.name)

    @property
    def takes_key(self) -> bool:
        """Whether a key is the only requirement, so the user can be asked for it."""
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
    """Directly supported providers in the order of the rules, then litellm's."""
    direct = (_of_rules(name) for name in rules.providers())
    return (*direct, *_LITELLMS)


def _of_rules(name: str) -> Provider:
    known = rules.rules_of(name)
    # local servers accept any key
    keys = () if known.key else known.keys
    address = next((variable for variable in known.addresses if variable.endswith("_API_BASE")), "")
    return Provider(name, keys, address)


def provider_of(model: str) -> Provider | None:
    """The provider named before the first slash, or implied by a bare model name."""
    prefix, slash, _ = model.partition("/")
    if not slash:
        if model.startswith(("gpt-", "o1", "o3", "o4", "chatgpt-", "codex-")):
            prefix = "openai"
        else:
            prefix = "anthropic" if model.startswith("claude-") else ""
    return next((provider for provider in all_providers() if provider.name == prefix), None)
