"""Optional parts that a server refuses: the one that it names is left out, and no other value of it."""

from __future__ import annotations

from typing import Any

import pytest

from tui_agent.model.client import Abilities, EndChunk, LeftOutChunk, ModelRequest, UsageChunk
from tui_agent.model.completion import Refusals, complete
from tui_agent.model.direct_client import RejectedRequest
from tui_agent.model.event_stream import Wire
from tui_agent.model.failures import ServerError
from tui_agent.model.parts import CallPart, Message, Origin, ThinkingPart, message_of
from tui_agent.model.rules import Rules
from tui_agent.model.wires.chat import ChatReader
from tui_agent.model.wires.reader import ReplyReader
from tui_agent.settings.schema import Effort

REPLY = message_of([ThinkingPart("Why."), CallPart("c", "read", "{}")], Origin("chat", "x", "m"))
LOOP: tuple[Message, ...] = (
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello"},
    REPLY,
    {"role": "tool", "tool_call_id": "c", "content": "text"},
)


class Reply:
    """A reply of one word."""

    origin = Origin()

    def __init__(self) -> None:
        self.reader: ReplyReader = ChatReader(Rules())
        self._events = [{"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}]

    async def __anext__(self) -> list[Any]:
        if not self._events:
            raise StopAsyncIteration
        return self.reader.read(self._events.pop())

    async def aclose(self) -> None:
        pass


class Refusing:
    """A server that refuses every request with one of `parts`, in these words."""

    def __init__(self, *parts: str, words: str, status: int = 400) -> None:
        self.asked: list[ModelRequest] = []
        self._parts, self._words, self._status = parts, words, status

    async def abilities(self, model: str) -> Abilities:
        return Abilities(model, known=True)

    async def open(self, request: ModelRequest, wire: Wire, shape: dict[str, Any] | None) -> Reply:
        self.asked.append(request)
        if held(request) & set(self._parts):
            wire.error = ServerError(self._status, {"error": {"message": self._words}})
            raise RejectedRequest(400, self._words)
        return Reply()

    async def cost(self, model: str, usage: UsageChunk) -> float | None:
        return None


def held(request: ModelRequest) -> set[str]:
    """The optional parts of a request."""
    parts = {"effort", "calls"} - request.without
    parts |= {"items"} if any("origin" in message for message in request.messages) else set()
    return parts | ({"temperature"} if request.temperature is not None else set())


async def asked(
    server: Refusing, refusals: Refusals, effort: Effort = "max", temperature: float | None = None
) -> set[str]:
    """What of a request is not refused in the end."""
    request = ModelRequest("x/m", LOOP, effort=effort, temperature=temperature)
    chunks = [chunk async for chunk in complete(server, request, refusals)]
    assert isinstance(chunks[-1], EndChunk)
    return held(server.asked[-1])


@pytest.mark.parametrize(
    "words",
    [
        "Unsupported value: 'reasoning.effort' does not support 'max' with this model.",
        "Unrecognized request argument supplied: reasoning_effort",
        "Unknown parameter: 'reasoning'.",
        '"thinking.type.disabled" is not supported for this model.',
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
        "thinking: Extra inputs are not permitted",
        "adaptive thinking is not supported on this model",
        "This model does not support thinking",
        "Invalid JSON payload received. Unknown name \"thinkingConfig\" at 'generation_config'",
        "Thinking level MINIMAL is not supported for this model.",
        "Budget 0 is invalid. This model only works in thinking mode.",
        "The value of the enable_thinking parameter is restricted to True.",
    ],
)
async def test_a_refused_effort_costs_neither_calls_nor_items(words: str) -> None:
    server = Refusing("effort", words=words)
    assert await asked(server, Refusals()) == {"calls", "items"}
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("messages.1.content.0: Invalid `signature` in `thinking` block.", 400),
        ("`thinking` blocks in the latest assistant message cannot be modified", 400),
        ("Expected `thinking` or `redacted_thinking`, but found `tool_use`.", 400),
        ("Corrupted thought signature.", 400),
        ("Item 'rs_1' of type 'reasoning' was provided without its required following item.", 400),
        ("property 'reasoning' is unsupported", 400),
        ("body.messages.1.assistant.reasoning_content: Extra inputs are not permitted", 422),
    ],
)
async def test_refused_items_cost_neither_effort_nor_calls(words: str, status: int) -> None:
    server = Refusing("items", words=words, status=status)
    assert await asked(server, Refusals()) == {"effort", "calls"}
    assert len(server.asked) == 2


async def test_calls_are_told_in_words_if_nothing_else_helps() -> None:
    server = Refusing("calls", words="Function call is missing a thought_signature in functionCall parts.")
    assert await asked(server, Refusals()) == {"effort"}


async def test_a_refused_value_says_nothing_of_another() -> None:
    refusals = Refusals()
    server = Refusing("effort", "temperature", words="Unsupported effort, unsupported temperature")
    assert await asked(server, refusals, "max", 1.5) == {"calls", "items"}
    taking = Refusing(words="")
    assert await asked(taking, refusals, "low", 0.5) == {"calls", "items", "effort", "temperature"}
    assert await asked(taking, refusals, "max", 1.5) == {"calls", "items"}


async def test_half_characters_in_a_refused_reply() -> None:
    server = Refusing("items", words="Invalid signature")
    half = message_of([CallPart("c", "read", '"\ud800"')], Origin("chat", "x", "m"))
    refusals = Refusals()
    for _ in range(2):
        request = ModelRequest("x/m", (*LOOP[:2], half))
        assert [chunk async for chunk in complete(server, request, refusals)]
    assert len(server.asked) == 3


async def test_a_person_is_told_once_of_a_value_that_is_left_out() -> None:
    server, refusals = Refusing("effort", words="Unsupported value: 'reasoning.effort'."), Refusals()
    request = ModelRequest("openai/gpt-5.4", LOOP, effort="high")
    for told in (True, False):
        chunks = [chunk async for chunk in complete(server, request, refusals)]
        words = [chunk.words for chunk in chunks if isinstance(chunk, LeftOutChunk)]
        assert bool(words) == told
        assert all(
            "openai/gpt-5.4 is asked without effort high" in one and "Unsupported" in one for one in words
        )
    plan = ModelRequest("openai/gpt-5.4", LOOP, "plan", effort="none")
    assert not any([isinstance(chunk, LeftOutChunk) async for chunk in complete(server, plan, refusals)])
