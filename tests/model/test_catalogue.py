"""Providers' own lists of models: their forms, pages and bounds, what is kept, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
import stat
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from support.strict.server import StrictServer

from tui_agent.model import direct_client, model_listing, model_table
from tui_agent.model.model_listing import (
    KEPT_SECONDS,
    LONGEST_NAME,
    MOST_MODELS,
    ListAnswer,
    Listing,
    is_chat,
    models_in,
)
from tui_agent.model.rules import providers, rules_of

WITH_LISTS = [name for name in providers() if rules_of(name).listing and not rules_of(name).login]


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_lists", "_failed", "_locks"):
        monkeypatch.setattr(direct_client, name, {})


async def listed(provider: str, *, again: bool = False) -> ListAnswer:
    async with httpx.AsyncClient() as client:
        return await direct_client.list_models(client, provider, again=again)


class Pages:
    """A server that answers each request with the next of its bodies, and the last ones again."""

    def __init__(self, *bodies: bytes, status: int = 200) -> None:
        self.bodies, self.status = list(bodies), status
        self.asked: list[str] = []
        self.sent = 0
        self.url = ""

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.decode().split(" ")[1])
        body = self.bodies.pop(0) if len(self.bodies) > 1 else self.bodies[0]
        writer.write(
            f"HTTP/1.1 {self.status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        )
        try:
            for at in range(0, len(body), 1_000_000):
                writer.write(body[at : at + 1_000_000])
                await writer.drain()
                self.sent = at
        except ConnectionError:
            pass
        writer.close()


@asynccontextmanager
async def pages(
    monkeypatch: pytest.MonkeyPatch, provider: str, *bodies: Any, status: int = 200
) -> AsyncGenerator[Pages]:
    """A server in place of the provider's."""
    it = Pages(
        *(body if isinstance(body, bytes) else json.dumps(body).encode() for body in bodies), status=status
    )
    async with await asyncio.start_server(it.talk, "127.0.0.1", 0) as server:
        it.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        rules = rules_of(provider)
        monkeypatch.setenv(rules.addresses[0], it.url)
        monkeypatch.setenv(rules.keys[0], "sk-0123456789")
        yield it


@pytest.mark.parametrize("provider", WITH_LISTS)
async def test_each_provider_is_asked_in_its_own_form(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("new-model-9", "new-embed-9")
    with StrictServer(provider, brain=lambda view: None, models=names) as server:  # ty: ignore
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        answer = await listed(provider)
        assert answer.error == "" and [one.name for one in answer.listing.models] == ["new-model-9"]
        assert not server.violations
        monkeypatch.setenv(rules_of(provider).keys[0], "wrong")
        assert (await listed(provider)).error, "another key has a list of its own"


async def test_without_a_key_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pages(monkeypatch, "xai", {"data": []}) as server:
        monkeypatch.delenv("XAI_API_KEY")
        assert await listed("xai") == ListAnswer() and server.asked == []


async def test_all_pages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    first = {
        "data": [{"id": "claude-a-1", "created_at": "2026-09-14T00:00:00Z"}],
        "has_more": True,
        "last_id": "a",
    }
    able = {"image_input": {"supported": True}, "thinking": {"supported": True}}
    second = {
        "data": [{"id": "claude-b-1", "max_input_tokens": 900_000, "capabilities": able}],
        "has_more": False,
    }
    async with pages(monkeypatch, "anthropic", first, second) as server:
        one, other = (await listed("anthropic")).listing.models
        assert server.asked == ["/v1/models?limit=1000", "/v1/models?limit=1000&after_id=a"]
    assert (one.name, one.created) == ("claude-a-1", 1_789_344_000)
    assert (other.known.window, other.known.can) == (900_000, "vr")
    tokens = {"inputTokenLimit": 5, "outputTokenLimit": 3, "supportedGenerationMethods": ["generateContent"]}
    first = {"models": [{"name": "models/gemini-x", **tokens}], "nextPageToken": "t"}
    second = {"models": [{"name": "models/gemini-y", "supportedGenerationMethods": ["embedContent"]}]}
    async with pages(monkeypatch, "gemini", first, second) as server:
        (one,) = (await listed("gemini")).listing.models
        assert server.asked[1].endswith("/models?pageSize=1000&pageToken=t")
    assert (one.name, one.known.window, one.known.output) == ("gemini-x", 5, 3)


async def test_pages_without_end_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    page = {"data": [{"id": "claude-a-1"}], "has_more": True, "last_id": "a"}
    async with pages(monkeypatch, "anthropic", page) as server:
        assert len((await listed("anthropic")).listing.models) == 1
        assert len(server.asked) == direct_client.MOST_PAGES


async def test_a_list_is_kept_for_a_day_for_this_user_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pages(
        monkeypatch, "xai", {"data": [{"id": "grok-9"}]}, {"data": [{"id": "grok-10"}]}
    ) as server:
        assert [one.name for one in (await listed("xai")).listing.models] == ["grok-9"]
        monkeypatch.setattr(direct_client, "_lists", {})
        assert [one.name for one in (await listed("xai")).listing.models] == ["grok-9"]
        assert len(server.asked) == 1, "the second came from the disk"
        (file,) = (home / "cache").iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert b"sk-0123456789" not in file.read_bytes() and "sk-0123" not in file.name
        assert [one.name for one in (await listed("xai", again=True)).listing.models] == ["grok-10"]
        route = model_table.route("xai/-", {"XAI_API_KEY": "sk-0123456789", "XAI_API_BASE": server.url})
        assert route is not None
        kept = model_listing.cached_listing(route)
        assert [one.name for one in kept.models] == ["grok-10"] and kept.fresh
        assert not Listing(time.time() - KEPT_SECONDS - 1).fresh and not Listing(time.time() + 9_999).fresh
        assert model_listing.cached_listing(replace(route, key="another")) == Listing()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"{}", "the key was refused (401)"),
        (404, b"{}", "it has no model list (404)"),
        (500, b"{}", "it returned no model list (status 500)"),
        (302, b"{}", "it returned no model list (status 302)"),
        (200, b"<html>", "its model list could not be read"),
        (200, b"[" * 500_000, "its model list could not be read"),
        (200, b'{"data": {"id": 1}}', "its model list could not be read"),
        (200, b" " * 100_000_000, "its list is longer than 16 MB"),
    ],
)
async def test_a_list_that_cannot_be_had_is_a_sentence(
    status: int, body: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pages(monkeypatch, "xai", {"data": [{"id": "grok-9"}]}) as server:
        await listed("xai")
        server.bodies, server.status = [body], status
        answer = await listed("xai", again=True)
        assert answer.error == said
        assert [one.name for one in answer.listing.models] == ["grok-9"], "the kept one counts"
        assert server.sent < 60_000_000, "the rest is not read"


async def test_a_server_that_is_not_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pages(monkeypatch, "xai", b""):
        pass
    assert (await listed("xai")).error == "not reached"


def test_names_and_numbers_are_bounded() -> None:
    long, longest = "m" * (LONGEST_NAME + 1), "m" * LONGEST_NAME
    hostile = [
        "\x1b[31mred",
        "a\x00b",
        "two words",
        "a\nb",
        "abc\u202edef",
        "\ud800",
        "",
        long,
        7,
        None,
        ["a"],
    ]
    entries = [*({"id": name} for name in hostile), {"id": longest}, {"id": longest}, "text", None, {}]
    assert [one.name for one in models_in("openai", {"data": entries})] == [longest]
    many = [{"id": f"m-{number}"} for number in range(2 * MOST_MODELS)]
    assert len(models_in("openai", {"data": many})) == MOST_MODELS
    odd = {"id": "m", "context_window": -5, "created": 10**30, "capabilities": [1], "deprecation": "soon"}
    (one,) = models_in("openai", [odd])
    assert (one.known.window, one.created, one.known.can, one.known.ends) == (0, 0, "", "")
    (one,) = models_in("openai", [{"id": "m", "context_window": True, "created_at": "9999-99-99"}])
    assert (one.known.window, one.created) == (0, 0)


def test_abilities_are_read_in_the_forms_of_the_providers() -> None:
    copilot = {
        "id": "c",
        "capabilities": {
            "type": "chat",
            "limits": {"max_context_window_tokens": 400_000, "max_output_tokens": 9},
            "supports": {"tool_calls": True, "vision": True},
        },
    }
    mistral = {"id": "m", "max_context_length": 5, "deprecation": "2026-12-01T12:00:00Z"}
    closed = {"id": "n", "capabilities": {"completion_chat": False}}
    one, other = models_in("openai", {"data": [copilot, mistral, closed, {"id": "g", "active": False}]})
    assert (one.known.window, one.known.output, one.known.can) == (400_000, 9, "tv")
    assert (other.known.window, other.known.ends) == (5, "2026-12-01")
    router = {"id": "a/b", "supported_parameters": ["tools", "reasoning"], "expiration_date": "2027-01-02"}
    picture = {"id": "a/c", "architecture": {"output_modalities": ["video"]}}
    (one,) = models_in("openrouter", {"data": [router, picture]})
    assert (one.name, one.known.can, one.known.ends) == ("a/b", "tr", "2027-01-02")


def test_only_models_that_hold_conversations_are_kept() -> None:
    for name in (
        "text-embedding-3",
        "gpt-image-2",
        "tts-1",
        "whisper-1",
        "omni-moderation",
        "gpt-realtime",
        "sora-2",
    ):
        assert not is_chat(name), name
    for provider in ("anthropic", "deepseek", "moonshot", "zai", "minimax", "xai"):
        for name in model_table.table().models[provider]:
            assert is_chat(name), name
