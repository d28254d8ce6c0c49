"""What the table says of providers and models, litellm says too; and what goes out directly is what litellm sends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.asking import answer, request
from support.model_table import PROVIDERS, USAGES, encoded, litellm_cost, made
from support.provider import Answer, Provider, ToolCall

from tui_agent.answers import schema
from tui_agent.model import table
from tui_agent.model.child import ChildModel
from tui_agent.model.litellm_client import abilities, litellm
from tui_agent.model.recording import RecordedModel, Recorder
from tui_agent.model.worker import joined

CALL = {"id": "call_0", "type": "function", "function": {"name": "read_files", "arguments": '{"a": ["ü"]}'}}
THOUGHT = {"type": "thinking", "thinking": "two and two", "signature": "sig"}
TALK: tuple[dict[str, Any], ...] = (
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Häuser?"},
    {"role": "assistant", "content": "Looking.", "tool_calls": [CALL], "thinking_blocks": [THOUGHT]},
    {"role": "tool", "tool_call_id": "call_0", "content": "nothing"},
    {"role": "user", "content": "Go on"},
)
TOOL = {
    "type": "function",
    "function": {
        "name": "read_files",
        "description": "Reads.",
        "parameters": {"type": "object", "properties": {}},
    },
}
SCHEMAS = schema.load(Path(__file__).parents[2] / "config")
SHAPES = [schema.strict(one) for one in (SCHEMAS.response, SCHEMAS.planning)]
#: One of each provider that is reached directly, and of each kind of model of its that litellm treats in its own way.
MODELS = (
    "openai/test-model",
    "openai/gpt-5",
    "openai/o3",
    "anthropic/test-model",
    "anthropic/claude-sonnet-4-5",
)
MODELS += ("anthropic/claude-opus-4-1", "anthropic/claude-fable-5", "deepseek/deepseek-chat", "xai/grok-4")
MODELS += ("groq/openai/gpt-oss-120b", "openrouter/some/model", "hosted_vllm/x", "lm_studio/x")


def test_it_is_what_litellm_says_of_every_model() -> None:
    assert table.PATH.read_bytes() == encoded(made()), "run `make models`"


def test_abilities_and_prices_of_every_model_are_litellms() -> None:
    wrong = []
    for prefix, provider in table.table().providers.items():
        for name in provider.models:
            full = f"{prefix}/{name}"
            route = table.route(full, {"X": "y"})
            if route is None:  # left to litellm
                continue
            assert route.known is not None
            costs = [route.known.cost(*usage) for usage in USAGES]
            if table.abilities(full, route) != abilities(full) or costs != pytest.approx(
                [litellm_cost(full, *usage) for usage in USAGES]
            ):
                wrong.append(full)
    assert wrong == []


@pytest.mark.parametrize("prefix", [name for name, one in PROVIDERS.items() if one.address])
def test_addresses_and_keys_are_where_litellm_looks(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = table.table().providers[prefix]
    if prefix not in ("openai", "anthropic", "openrouter"):  # what goes out says it of those
        assert litellm().get_llm_provider(f"{prefix}/x")[3] == provider.address
    for variable in provider.addresses:
        route = table.route(f"{prefix}/x", {variable: "http://127.0.0.1:9", provider.keys[0]: "k"})
        assert route is not None
        assert (route.address, route.key) == ("http://127.0.0.1:9", "k")


def test_what_is_left_to_litellm() -> None:
    known = {"OPENAI_API_BASE": "http://127.0.0.1:9/v1"}
    assert table.route("gemini/gemini-2.5-pro", known) is None
    assert table.route("nonsense", known) is None
    assert table.route("openai/gpt-5-pro", known) is None, "which is asked through another interface"
    assert table.route("openai/new-model", {}) is None, "which the provider may have, and we do not know"
    assert table.route("openai/gpt-4o", {**known, "SSL_CERTIFICATE": "x"}) is None
    route = table.route("openai/gpt-4o", known)
    assert route is not None
    assert table.served(route, tools=True, schema=True, files=False)
    assert not table.served(route, tools=False, schema=False, files=True)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("name", MODELS)
async def test_the_same_goes_out_both_ways(
    both: tuple[ChildModel, ChildModel], provider: Provider, name: str
) -> None:
    kinds: list[dict[str, Any]] = [{"tools": (TOOL,), "messages": TALK}, {}]
    if not name.startswith(
        "groq/"
    ):  # litellm makes a stream of one piece of these answers: they are left to it
        kinds += [{"schema": shape} for shape in SHAPES]
    for options in kinds:
        provider.reset()
        for model in both:
            provider.answer(Answer("ok"))
            await answer(model, request(model=name, **options))
        direct, other = provider.requests
        assert direct.body == other.body
        assert direct.path == other.path
        ours = ("authorization", "x-api-key", "anthropic-version", "anthropic-beta", "content-type")
        assert {key: direct.headers.get(key) for key in ours} == {key: other.headers.get(key) for key in ours}


@pytest.mark.asyncio(loop_scope="session")
async def test_an_image_goes_to_anthropic_in_its_form(
    both: tuple[ChildModel, ChildModel], provider: Provider
) -> None:
    message = {"role": "user", "content": "Look", "images": [{"media_type": "image/png", "data": "AAAA"}]}
    provider.answer("ok")
    await answer(both[0], request(model="anthropic/claude-sonnet-4-5", messages=(message,)))
    words, image = provider.requests[0].body["messages"][0]["content"]
    assert words == {"type": "text", "text": "Look"}
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert "cache_control" in image


@pytest.mark.asyncio(loop_scope="session")
async def test_what_is_recorded_through_one_way_is_what_is_recorded_through_the_other(
    both: tuple[ChildModel, ChildModel], provider: Provider, tmp_path: Path
) -> None:
    call = ToolCall("read_files", {"actions": [1]})
    told = []
    for number, model in enumerate(both):
        provider.answer(
            Answer("Looking at it.", reasoning="two and two", calls=(call,), usage=(1000, 7, 900))
        )
        path = tmp_path / str(number)
        await answer(Recorder(model, path), request(model="openai/gpt-4o", tools=(TOOL,)))
        replayed = await answer(RecordedModel(path, speed=0), request(model="openai/gpt-4o"))
        whole: list[Any] = []
        for chunk in replayed:
            one = joined(whole[-1], chunk) if whole else None
            whole = [*whole[:-1], one] if one is not None else [*whole, chunk]
        told.append(whole)
    assert told[0] == told[1]
    assert len(told[0]) == 5, "thought, words, a call, the count and the end"
