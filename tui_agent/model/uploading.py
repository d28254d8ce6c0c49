"""File uploads through litellm. Runs in the model child only."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from tui_agent.errors import ModelError
from tui_agent.model.litellm_client import litellm, refuse_login
from tui_agent.model.provider_errors import explain

#: Upload purposes by provider; others do not support files in a chat.
_PURPOSES: Mapping[str, str] = {"openai": "user_data", "azure": "user_data", "anthropic": "messages"}
TIMEOUT_SECONDS = 60.0


async def upload(model: str, name: str, text: str) -> str:
    provider = _provider(model)
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            made = await litellm().acreate_file(
                file=(name, text.encode(), "text/plain"),
                purpose=_PURPOSES[provider],
                custom_llm_provider=provider,
                max_retries=0,
            )
    except Exception as error:  # litellm also raises plain exceptions; the text is sent instead
        raise explain(error, model).error from error
    return str(made.id)


async def delete(model: str, ids: Sequence[str]) -> None:
    """Raises a `ModelError` for the first failure, after trying all."""
    provider = _provider(model)
    deletions = (litellm().afile_delete(file_id=one, custom_llm_provider=provider) for one in ids)
    for result in await asyncio.gather(*deletions, return_exceptions=True):
        if isinstance(result, Exception):
            raise explain(result, model).error from result


def with_files(messages: Sequence[dict[str, Any]], ids: Sequence[str]) -> list[dict[str, Any]]:
    return [_with_parts(message, ids) for message in messages] if ids else list(messages)


def _with_parts(message: dict[str, Any], ids: Sequence[str]) -> dict[str, Any]:
    content = message.get("content")
    if message["role"] != "user" or not isinstance(content, str):
        return message
    named = [one for one in ids if f'"fileId": "{one}"' in content]
    if not named:
        return message
    parts = [{"type": "file", "file": {"file_id": one}} for one in named]
    return {**message, "content": [{"type": "text", "text": content}, *parts]}


def _provider(model: str) -> str:
    refuse_login(model)
    try:
        provider = litellm().get_llm_provider(model)[1]
    except Exception as error:  # litellm also raises plain exceptions; the provider is unknown
        raise explain(error, model).error from error
    if provider not in _PURPOSES:
        raise ModelError(f"{provider} has no files that a chat could refer to", 'set files_api = "off"')
    return provider
