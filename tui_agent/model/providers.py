"""Providers: what each model's name, key and address belong to."""

from __future__ import annotations

from msgspec import Struct


class Provider(Struct, frozen=True):
    """A provider as litellm names it. Any one of `keys` will do; none are needed where it is empty."""

    name: str
    keys: tuple[str, ...]
    address: str = ""
    #: A model to suggest to somebody who has the key and has chosen none.
    suggestion: str = ""


PROVIDERS = (
    Provider("anthropic", ("ANTHROPIC_API_KEY",), "ANTHROPIC_API_BASE", "anthropic/claude-sonnet-4-5"),
    Provider("openai", ("OPENAI_API_KEY",), "OPENAI_API_BASE", "openai/gpt-5"),
    Provider("gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "GEMINI_API_BASE", "gemini/gemini-2.5-pro"),
    Provider(
        "openrouter", ("OPENROUTER_API_KEY",), "OPENROUTER_API_BASE", "openrouter/anthropic/claude-sonnet-4.5"
    ),
    Provider("deepseek", ("DEEPSEEK_API_KEY",), "DEEPSEEK_API_BASE", "deepseek/deepseek-chat"),
    Provider("mistral", ("MISTRAL_API_KEY",), "MISTRAL_API_BASE", "mistral/mistral-large-latest"),
    Provider("xai", ("XAI_API_KEY",), "XAI_API_BASE", "xai/grok-4"),
    Provider("groq", ("GROQ_API_KEY",), "GROQ_API_BASE", "groq/openai/gpt-oss-120b"),
    Provider("cohere", ("COHERE_API_KEY", "CO_API_KEY"), "COHERE_API_BASE"),
    Provider("together_ai", ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY")),
    Provider("fireworks_ai", ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY")),
    Provider("azure", ("AZURE_API_KEY",), "AZURE_API_BASE"),
    Provider("bedrock", ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK")),
    Provider("vertex_ai", ("GOOGLE_APPLICATION_CREDENTIALS",)),
    Provider("ollama", (), "OLLAMA_API_BASE"),
    Provider("ollama_chat", (), "OLLAMA_API_BASE"),
    Provider("lm_studio", (), "LM_STUDIO_API_BASE"),
    Provider("hosted_vllm", (), "HOSTED_VLLM_API_BASE"),
    Provider("llamafile", (), "LLAMAFILE_API_BASE"),
)
#: Where the servers of local models listen, unless their variable says otherwise.
LOCAL_ADDRESSES = {
    "ollama": "http://127.0.0.1:11434",
    "ollama_chat": "http://127.0.0.1:11434",
    "lm_studio": "http://127.0.0.1:1234/v1",
    "llamafile": "http://127.0.0.1:8080/v1",
    "hosted_vllm": "http://127.0.0.1:8000/v1",
}


def provider_of(model: str) -> Provider | None:
    """By the part of the model's name before the first slash, or by the names that litellm takes without one."""
    prefix, slash, _ = model.partition("/")
    if not slash:
        prefix = _bare(model)
    return next((provider for provider in PROVIDERS if provider.name == prefix), None)


def _bare(model: str) -> str:
    if model.startswith(("gpt-", "o1", "o3", "o4", "chatgpt-", "codex-")):
        return "openai"
    return "anthropic" if model.startswith("claude-") else ""
