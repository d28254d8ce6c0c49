"""The real model child, directly and through litellm: a date to wait for, a web page, errors inside errors."""

# The bodies are on a line each, as they came.
# ruff: noqa: E501

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from support.asking import answer, text
from support.provider import Answer, Provider, RawAnswer

from tui_agent.errors import (
    BadKey,
    ContextTooLong,
    ModelError,
    RateLimited,
    Refused,
    RequestRejected,
    Unreachable,
)
from tui_agent.model.child_model import ChildModel
from tui_agent.model.client import RetryChunk

pytestmark = pytest.mark.asyncio(loop_scope="session")
PAGE = "<!DOCTYPE html>\n<html>\n\n<head><title>Hotel Wi-Fi</title></head>\n\n<body>Sign in</body>\n\n</html>"


def raw(body: Any, status: int = 400, **headers: str) -> Answer:
    """An answer of this status and body."""
    page = isinstance(body, str)
    content = (body if page else json.dumps(body)).encode()
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    kind = {"content-type": "text/html" if page else "application/json", "content-length": str(len(content))}
    return Answer(raw=RawAnswer((content,), kind | headers, status=status))


async def test_a_rate_limit_until_a_date(model: ChildModel, provider: Provider) -> None:
    now = datetime.now(UTC)
    date, until = format_datetime(now, usegmt=True), format_datetime(now + timedelta(seconds=2), usegmt=True)
    limit = {"error": {"message": "Slow down", "type": "rate_limit_error"}}
    provider.answer(raw(limit, 429, date=date, retry_after=until), "done")
    chunks = await answer(model)
    assert [chunk.seconds for chunk in chunks if isinstance(chunk, RetryChunk)] == [2.0, 1.0]
    assert text(chunks) == "done"


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (200, PAGE, Unreachable, r"A web page answered instead of the provider of openai/test-model \(Hotel Wi-Fi"),
        (511, PAGE, Unreachable, "A web page answered .* status 511"),
        (403, PAGE.replace("Hotel Wi-Fi", "Just a moment..."), Unreachable, "A page of a firewall"),
        (407, {}, Unreachable, "requires a user name and a password"),
        (403, {"error": {"message": "Country, region, or territory not supported", "code": "unsupported_country_region_territory"}}, Unreachable, "does not serve the region"),
        (403, {"error": {"message": "You have insufficient permissions for this operation. Missing scopes: model.request"}}, BadKey, "lacks a permission"),
        (403, {"error": "Your team has either used all available credits or reached its monthly spending limit."}, RateLimited, "no credit"),
        (400, {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": '{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}', "provider_name": "Anthropic"}}}, ContextTooLong, "Anthropic: prompt is too long"),
        (400, {"error": {"message": "Could not process image"}}, RequestRejected, "cannot take an image"),
        (400, {"error": {"message": "Your prompt was flagged", "code": "invalid_prompt"}}, Refused, "because of its content"),
        (400, {"error": {"message": "The model `x` has been decommissioned", "code": "model_decommissioned"}}, RequestRejected, "no longer offers"),
        (429, {"error": {"message": "Request too large for x on tokens per min (TPM): Limit 30000, Requested 45000."}}, ContextTooLong, "may send 30,000 tokens a minute"),
        (200, {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, RateLimited, "no credit"),
    ],
)  # fmt: skip
async def test_a_refusal(
    model: ChildModel, provider: Provider, status: int, body: Any, kind: type[ModelError], said: str
) -> None:
    provider.answer(raw(body, status))
    with pytest.raises(kind) as caught:
        await answer(model)
    assert re.search(said, caught.value.what)
    assert len(provider.requests) == 1, "another request would be refused as well"
