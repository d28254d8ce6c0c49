"""The table of models is litellm's, and the table of providers gives each model its way."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.asking import answer, request
from support.model_table import NAME, encoded, in_both, in_wheel, installed, made
from support.provider import Answer, Provider, ToolCall

from tui_agent.model import model_table
from tui_agent.model.child_model import ChildModel
from tui_agent.model.client import UsageChunk, joined_chunks
from tui_agent.model.litellm_client import abilities, litellm
from tui_agent.model.model_table import KnownModel, ModelTable
from tui_agent.model.recording import RecordedModel, Recorder
from tui_agent.model.rules import WireName, providers, rules_of

TOOL = {
    "type": "function",
    "function": {
        "name": "read_files",
        "description": "Reads.",
        "parameters": {"type": "object", "properties": {}},
    },
}
ADDRESSES = dict.fromkeys(
    ("AZURE_API_BASE", "HOSTED_VLLM_API_BASE", "LM_STUDIO_API_BASE"), "http://127.0.0.1:9"
)


def test_it_is_litellms_table_of_every_model() -> None:
    """Of the same version it is the same table; of another one it differs in a few models."""
    ours = model_table.of_litellm()
    assert model_table.PATH.read_bytes() == encoded(ours), "written by hand? run `make models`"
    version, theirs = installed()
    if version == ours.litellm:
        assert model_table.PATH.read_bytes() == encoded(made(version, theirs)), "run `make models`"
    both = in_both()
    assert len(both) > 600, "run `make models`"
    priced = [(ours, theirs) for ours, theirs in both.values() if ours.prices == theirs.prices]
    assert len(priced) > 0.9 * len(both)
    alike = [1 for ours, theirs in priced if (ours.window, ours.can) == (theirs.window, theirs.can)]
    assert len(alike) > 0.95 * len(priced)


def test_a_table_is_made_from_a_wheel_that_is_only_read(tmp_path: Path) -> None:
    chat = {"litellm_provider": "xai", "mode": "chat", "input_cost_per_token": 1e-6}
    grok = {**chat, "max_input_tokens": 500_000, "max_output_tokens": 4096, "output_cost_per_token": 2e-6}
    able = {"supports_vision": True, "supports_reasoning": True, "supports_function_calling": False}
    theirs = {
        "xai/grok-9": {**grok, **able, "deprecation_date": "2027-01-01"},
        "grok-9": grok,
        "xai/grok-9-image": {**grok, "mode": "image_generation"},
        "nobody/grok-9": {**grok, "litellm_provider": "nobody"},
    }
    wheel = tmp_path / "litellm-9.9.9-cp310-abi3-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"litellm/{NAME}", json.dumps(theirs))
    price = model_table.Price(-1, 1e-6, 2e-6, 1e-6, 1e-6, 1e-6)
    expected = KnownModel(500_000, 4096, "vr", (price,), "2027-01-01")
    assert made(*in_wheel(wheel)) == ModelTable("9.9.9", {"xai": {"grok-9": expected}})


def test_abilities_of_every_model_are_litellms() -> None:
    wrong, compared = [], 0
    for full, (known, same) in in_both().items():
        theirs = abilities(full)
        # litellm finds some by their short names only; others have changed since its version
        if theirs.known and known == same:
            route = model_table.route(full, ADDRESSES)
            assert route is not None
            ours = model_table.abilities(full, route)
            schema = litellm().get_model_info(full).get("supports_response_schema") and route.rules.schema
            expected = (theirs.window, theirs.tools, bool(schema), theirs.sees, True)
            if (ours.window, ours.tools, ours.schema, ours.sees, ours.known) != expected:
                wrong.append(full)
            compared += 1
    assert wrong == []
    assert compared > 550


@pytest.mark.parametrize("provider", ["deepseek", "mistral", "groq", "xai", "moonshot", "zai"])
def test_addresses_are_litellms(provider: str) -> None:
    assert litellm().get_llm_provider(f"{provider}/x")[3] == rules_of(provider).address


@pytest.mark.parametrize("provider", providers())
def test_each_variable_sets_the_address_and_the_key(provider: str) -> None:
    rules = rules_of(provider)
    for variable in rules.addresses:
        for key in rules.keys:
            route = model_table.route(f"{provider}/x", {variable: "http://127.0.0.1:9/openai/v1", key: "k"})
            assert route is not None
            assert (route.address, route.key, route.own) == ("http://127.0.0.1:9/openai/v1", "k", False)
    assert rules.addresses and rules.keys


LEFT_TO_LITELLM = [
    ("bedrock/anthropic.claude-sonnet-4-5", {}),
    ("ollama_chat/tiny", {}),
    ("nonsense", {}),
    ("openai/", {}),
    ("azure/gpt-5", {}),
    ("azure/gpt-5", {"AZURE_API_BASE": "http://127.0.0.1:9", "AZURE_API_VERSION": "2024-10-21"}),
    ("azure/gpt-5", {"AZURE_API_BASE": "http://127.0.0.1:9/openai/deployments/x"}),
    ("hosted_vllm/x", {}),
    ("openai/gpt-4o", {"SSL_CERTIFICATE": "x"}),
    ("anthropic/claude-sonnet-4-5", {"ANTHROPIC_AUTH_TOKEN": "x"}),
]


@pytest.mark.parametrize(("name", "environment"), LEFT_TO_LITELLM)
def test_models_without_a_direct_way(name: str, environment: dict[str, str]) -> None:
    assert model_table.route(name, environment) is None


ELSEWHERE = "http://127.0.0.1:9/v1"
WAYS: list[tuple[str, dict[str, str], WireName, str]] = [
    ("openai/gpt-5", {}, "responses", "https://api.openai.com/v1"),
    ("gpt-5", {}, "responses", "https://api.openai.com/v1"),
    ("openai/not-yet-known", {}, "responses", "https://api.openai.com/v1"),
    ("openai/gpt-5", {"OPENAI_API_BASE": ELSEWHERE}, "chat", ELSEWHERE),
    ("openai/gpt-5.4", {"OPENAI_API_BASE": ELSEWHERE}, "responses", ELSEWHERE),
    ("openai/gpt-5-pro", {"OPENAI_BASE_URL": ELSEWHERE}, "responses", ELSEWHERE),
    (
        "openai/gpt-4o",
        {"OPENAI_API_BASE": "https://api.openai.com/v1/"},
        "responses",
        "https://api.openai.com/v1/",
    ),
    (
        "azure/my-deployment",
        {"AZURE_API_BASE": "https://x.openai.azure.com"},
        "responses",
        "https://x.openai.azure.com/openai/v1",
    ),
    (
        "azure/d",
        {"AZURE_API_BASE": "https://x/openai/v1/", "AZURE_API_VERSION": "v1"},
        "responses",
        "https://x/openai/v1",
    ),
    ("anthropic/claude-sonnet-4-5", {}, "messages", "https://api.anthropic.com"),
    ("claude-sonnet-4-5", {"ANTHROPIC_BASE_URL": ELSEWHERE}, "messages", ELSEWHERE),
    ("gemini/gemini-2.5-pro", {}, "generate", "https://generativelanguage.googleapis.com/v1beta"),
    ("mistral/mistral-large-latest", {}, "chat", "https://api.mistral.ai/v1"),
    ("openrouter/some/model", {}, "chat", "https://openrouter.ai/api/v1"),
    ("groq/openai/gpt-oss-120b", {}, "chat", "https://api.groq.com/openai/v1"),
]


@pytest.mark.parametrize(("name", "environment", "wire", "address"), WAYS)
def test_models_with_a_direct_way(
    name: str, environment: dict[str, str], wire: WireName, address: str
) -> None:
    route = model_table.route(name, environment)
    assert route is not None
    assert (route.wire, route.address) == (wire, address)


def test_a_new_model_of_a_provider_can_do_what_its_others_can() -> None:
    own = model_table.route("openai/not-yet-known", {})
    other = model_table.route("openai/not-yet-known", {"OPENAI_API_BASE": ELSEWHERE})
    assert own is not None and other is not None
    known = model_table.abilities("openai/not-yet-known", own)
    assert (known.tools, known.sees, known.known, known.window) == (True, True, False, 0)
    assert not model_table.abilities("openai/not-yet-known", other).tools


def test_a_server_without_a_key_of_its_own_needs_none() -> None:
    route = model_table.route("lm_studio/x", {"LM_STUDIO_API_BASE": ELSEWHERE})
    assert route is not None and route.key == "fake-api-key"
    route = model_table.route("openai/gpt-4o", {})
    assert route is not None and route.key == ""


@pytest.mark.asyncio(loop_scope="session")
async def test_an_image_is_sent_to_anthropic_in_its_form(
    both: tuple[ChildModel, ChildModel], provider: Provider
) -> None:
    system = {"role": "system", "content": "Be brief."}
    message = {"role": "user", "content": "Look", "images": [{"media_type": "image/png", "data": "AAAA"}]}
    provider.answer("ok")
    await answer(both[0], request(model="anthropic/claude-sonnet-4-5", messages=(system, message)))
    words, image = provider.requests[0].body["messages"][0]["content"]
    assert words == {"type": "text", "text": "Look"}
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert "cache_control" in image


@pytest.mark.asyncio(loop_scope="session")
async def test_a_recording_through_one_transport_is_that_through_the_other(
    both: tuple[ChildModel, ChildModel], provider: Provider, tmp_path: Path
) -> None:
    call = ToolCall("read_files", {"actions": [1]})
    replayed = []
    for number, model in enumerate(both):
        provider.answer(
            Answer("Looking at it.", reasoning="two and two", calls=(call,), usage=(1000, 7, 900))
        )
        path = tmp_path / str(number)
        await answer(Recorder(model, path), request(model="openai/gpt-4o", tools=(TOOL,)))
        chunks = await answer(RecordedModel(path, speed=0), request(model="openai/gpt-4o"))
        whole: list[Any] = []
        for chunk in chunks:
            if isinstance(chunk, UsageChunk):  # litellm counts thinking itself if the provider does not
                chunk = replace(chunk, thinking=0)
            one = joined_chunks(whole[-1], chunk) if whole else None
            whole = [*whole[:-1], one] if one is not None else [*whole, chunk]
        replayed.append(whole)
    assert replayed[0] == replayed[1]
    assert len(replayed[0]) == 5, "thinking, words, a call, the count and the end"
