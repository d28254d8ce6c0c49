"""litellm's pieces as chunks of ours, for what the loopback provider cannot say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tui_agent.errors import EmptyReply
from tui_agent.model.client import EndChunk, ReasoningChunk, TextChunk
from tui_agent.model.translate import Translator


def piece(**delta: Any) -> SimpleNamespace:
    whole = {"content": None, "tool_calls": None, **delta}
    return SimpleNamespace(choices=[SimpleNamespace(delta=SimpleNamespace(**whole))])


def test_blocks_of_thought_are_put_together_as_they_were() -> None:
    translator = Translator("anthropic/x")
    redacted = {"type": "redacted_thinking", "data": "opaque"}
    for blocks in (
        [{"type": "thinking", "thinking": "two and ", "signature": None}],
        [{"type": "thinking", "thinking": "two", "signature": None}],
        [{"type": "thinking", "thinking": "", "signature": "first"}],
        [redacted],
        [{"type": "thinking", "thinking": "four", "signature": "second"}],
    ):
        list(translator.chunks(piece(thinking_blocks=blocks)))
    list(translator.chunks(piece(content="4")))
    assert translator.end("stop") == EndChunk(
        "stop",
        (
            {"type": "thinking", "thinking": "two and two", "signature": "first"},
            redacted,
            {"type": "thinking", "thinking": "four", "signature": "second"},
        ),
    )


def test_reasoning_alone_is_no_answer() -> None:
    translator = Translator("openai/x")
    assert list(translator.chunks(piece(reasoning_content="hm"))) == [ReasoningChunk("hm")]
    with pytest.raises(EmptyReply, match="ran out of room"):
        translator.end("length")


def test_a_piece_without_choices_says_nothing() -> None:
    assert list(Translator("openai/x").chunks(SimpleNamespace(choices=[]))) == []


def test_a_reason_that_nobody_knows_is_an_end_like_any_other() -> None:
    translator = Translator("openai/x")
    assert list(translator.chunks(piece(content="4"))) == [TextChunk("4")]
    assert translator.end("eos_token") == EndChunk("stop")
