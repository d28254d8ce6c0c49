"""The way to a model: Responses for OpenAI and Azure, chat completions elsewhere, families, missing packages."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from support.asking import answer, request, text
from support.journeys import FILES, environment, opened
from support.provider import Answer, Provider, RawAnswer, Request
from support.repositories import repository
from support.strict import Call, Reply, Say, StrictServer, Think, View

from tui_agent.model import model_table
from tui_agent.model.child_model import ChildModel
from tui_agent.model.client import ModelRequest
from tui_agent.model.litellm_client import _without_module


async def _asked(variables: dict[str, str], asked: ModelRequest) -> str:
    model = ChildModel(environment=variables)
    try:
        return text(await answer(model, asked))
    finally:
        await model.close()


async def test_a_gateway_without_responses_is_asked_by_chat_and_remembered() -> None:
    """A model that needs Responses, at an address that lacks the interface."""

    def only_chat(received: Request) -> Answer:
        missing = Answer(status=404, body={"detail": "Not Found"})
        return missing if received.path.endswith("/responses") else Answer("ok")

    with Provider() as provider:
        provider.otherwise = only_chat
        model = ChildModel(environment=provider.environment)
        for _ in range(2):
            assert text(await answer(model, request(model="openai/gpt-5.4"))) == "ok"
        await model.close()
        paths = [received.path for received in provider.requests]
    assert paths == ["/v1/responses", "/v1/chat/completions", "/v1/chat/completions"]


async def test_a_model_that_thinks_in_silence_is_waited_for() -> None:
    """After the reply has begun, a model may be silent for longer than the time-out of a request."""
    created = {"type": "response.created", "response": {"id": "r", "status": "in_progress"}}
    item = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "late"}],
    }
    done = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [item]}}
    pieces = tuple(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in (created, done))
    with Provider() as provider:
        raw = RawAnswer(pieces, {"content-type": "text/event-stream"}, pause=1.0)
        provider.answer(Answer(raw=raw))
        said = await _asked(provider.environment, request(model="openai/gpt-5.4", timeout=0.4))
    assert said == "late"


@pytest.mark.parametrize(
    ("base", "version", "address"),
    [
        ("https://name.openai.azure.com", "", "https://name.openai.azure.com/openai/v1"),
        ("https://name.openai.azure.com/openai/v1/", "preview", "https://name.openai.azure.com/openai/v1"),
        ("https://name.openai.azure.com", "2024-10-21", None),
        ("https://name.openai.azure.com/openai/deployments/x", "", None),
    ],
)
def test_azure_is_reached_at_its_v1_interface(base: str, version: str, address: str | None) -> None:
    route = model_table.route("azure/my-deployment", {"AZURE_API_BASE": base, "AZURE_API_VERSION": version})
    assert (route.address if route else None) == address
    assert route is None or (route.wire, route.rules.auth) == ("responses", "api-key")


@pytest.mark.parametrize(
    ("words", "package"),
    [
        ("No module named 'google'", "google"),
        ("litellm.APIConnectionError: No module named 'mcp'", "mcp"),
        ("Missing boto3 to call bedrock. Run 'pip install boto3'.", "boto3"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(words: str, package: str) -> None:
    error = _without_module("vertex_ai/gemini-3-pro", Exception(words))
    assert error is not None
    assert error.what == f"vertex_ai/gemini-3-pro needs the package {package}, which is not installed"
    assert "install" in error.remedy and "'tui-agent[providers]'" in error.remedy
    assert _without_module("x", Exception("the model is not there")) is None


def _reads_then_answers(view: View) -> Reply:
    if view.results:
        return Reply((Think("End."), Say(f"Done {view.turns}.")))
    return Reply((Think("Look."), Say(f"Looking {view.turns}."), Call("search_text", {"pattern": "def"})))


@pytest.mark.parametrize(
    ("then", "kept"),
    [("gpt-5.5", True), ("gpt-6-sol", False)],
    ids=["same family", "another family"],
)
async def test_a_model_of_the_same_family_takes_over_calls_and_items(
    then: str, kept: bool, tmp_path: Path
) -> None:
    work = repository(tmp_path / "work", FILES)
    with StrictServer("openai", brain=_reads_then_answers, model="gpt-5.4", models=(then,)) as server:
        with environment({**server.environment, "TUI_AGENT_HOME": str(tmp_path / "home")}):
            session = await opened(work, ["model=openai/gpt-5.4", "planner_model=none"])
            for words in ("First", "Second"):
                await session.chat.submit(words)
                async with asyncio.timeout(60):
                    await session.chat.finished()
                assert session.state.turn.ok, session.state.turn.error
                await session.models.choose(f"openai/{then}")
            await session.close()
        asked = next(one.body for one in server.requests if one.body.get("model") == then)
    kinds = {item.get("type") for item in asked["input"]}
    assert ("reasoning" in kinds, "function_call" in kinds) == (kept, kept)
    said = json.dumps(asked["input"])
    assert "Looking 0." in said and "Done 1." in said, "the text is kept for any model"
    assert [one for one in server.violations if "GET" not in one] == []
