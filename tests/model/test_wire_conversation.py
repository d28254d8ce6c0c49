"""Messages as every provider accepts them: whole pairs of calls and results, and items for their own provider only."""

from __future__ import annotations

import re

import pytest
from support.rendering import CALL, SYSTEM, USER, body, origin_of, reply, result, user

from tui_agent.model.parts import CallPart, Message, Origin, TextPart, ThinkingPart
from tui_agent.model.rules import Rules, rules_of
from tui_agent.model.wires.conversation import (
    NO_RESULT,
    CallAnswer,
    Conversation,
    ReplyTurn,
    UserTurn,
    conversation,
)

OWN = Origin("messages", "anthropic", "claude-4")
MISTRAL = rules_of("mistral", "mistral-small-latest")
SIGNED = ThinkingPart("why", {"type": "thinking", "thinking": "why", "signature": "sig"})
NATIVE_TEXT = TextPart("Looking.", {"id": "msg_1"})
NATIVE_CALL = CallPart("call_1", "read", "{}", {"id": "fc_1"})


def talk(
    *messages: Message, rules: Rules | None = None, sees: bool = False, marks: frozenset[int] = frozenset()
) -> Conversation:
    return conversation(messages, rules or Rules(), OWN, sees=sees, marks=marks)


def test_the_parts_of_a_reply_keep_their_order() -> None:
    parts = (
        SIGNED,
        TextPart("One."),
        ThinkingPart("more", {"signature": "2"}),
        CALL,
        TextPart("Two."),
        CallPart("call_2", "read", "{}"),
    )
    (_, said, *_) = talk(USER, reply(*parts, of=OWN), result(), result("call_2")).turns
    assert isinstance(said, ReplyTurn) and said.parts == parts and said.own


@pytest.mark.parametrize(
    ("other", "own"),
    [
        (OWN, True),
        (Origin("messages", "anthropic", "claude-4", "digest"), True),
        (Origin("chat", "anthropic", "claude-4"), False),
        (Origin("messages", "openrouter", "claude-4"), False),
        (Origin("messages", "anthropic", "claude-5"), False),
        (Origin(), False),
    ],
)
def test_items_are_for_their_own_wire_provider_and_family(other: Origin, own: bool) -> None:
    (_, said, answer) = talk(USER, reply(SIGNED, NATIVE_TEXT, NATIVE_CALL, of=other), result()).turns
    assert isinstance(said, ReplyTurn) and said.own is own
    if own:
        assert said.parts == (SIGNED, NATIVE_TEXT, NATIVE_CALL) and said.prefix == other.prefix
    else:
        assert said.parts == (TextPart("Looking."), CallPart("call_1", "read", "{}")) and said.prefix == ""
    assert answer == CallAnswer("call_1", "read", "text of a")


def test_items_of_an_unknown_origin_are_left_out_even_for_an_unknown_origin() -> None:
    (_, said) = conversation((USER, reply(SIGNED, NATIVE_TEXT)), Rules(), Origin(), sees=False).turns
    assert said == ReplyTurn((TextPart("Looking."),))


def test_a_reply_of_an_earlier_version_is_read() -> None:
    function = {"name": "read", "arguments": "{}"}
    earlier = {
        "role": "assistant",
        "content": "Looking.",
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        "thinking_blocks": [{"type": "thinking", "thinking": "x", "signature": "s"}],
    }
    (_, said, _) = talk(USER, earlier, result()).turns
    assert said == ReplyTurn((TextPart("Looking."), CallPart("call_1", "read", "{}")))


def test_a_reply_of_foreign_thinking_alone_is_left_out() -> None:
    assert talk(USER, reply(SIGNED), user()).turns == (UserTurn("Hello"), UserTurn("Go on"))


def test_every_system_message_is_part_of_the_system_prompt() -> None:
    made = talk(SYSTEM, USER, {"role": "system", "content": "Be kind."})
    assert made == Conversation("Be brief.\n\nBe kind.", (UserTurn("Hello"),))


# ── calls and results ────────────────────────────────────────────────────────────────────────────────────


def test_a_call_without_a_result_gets_one() -> None:
    second = CallPart("call_2", "write", "{}")
    turns = talk(USER, reply(CALL, second), result(), user()).turns
    assert turns[2:] == (
        CallAnswer("call_1", "read", "text of a"),
        CallAnswer("call_2", "write", NO_RESULT),
        UserTurn("Go on"),
    )


@pytest.mark.parametrize("after", [(), (reply(TextPart("Done.")),)])
def test_a_call_at_the_end_or_before_a_reply_gets_a_result(after: tuple[Message, ...]) -> None:
    assert talk(USER, reply(CALL), *after).turns[2] == CallAnswer("call_1", "read", NO_RESULT)


def test_a_result_without_a_call_becomes_a_message_of_the_person() -> None:
    assert talk(USER, result("gone", "text")).turns == (UserTurn("Hello"), UserTurn("text"))
    assert talk(USER, result("gone", "")).turns == (UserTurn("Hello"),), "an empty one is left out"


def test_a_result_without_a_call_follows_those_of_open_calls() -> None:
    turns = talk(USER, reply(CALL), result("gone", "text"), user()).turns
    assert turns[2:] == (CallAnswer("call_1", "read", NO_RESULT), UserTurn("text"), UserTurn("Go on"))


def test_a_second_result_of_a_call_becomes_a_message_of_the_person() -> None:
    turns = talk(USER, reply(CALL), result(), result(content="again")).turns
    assert turns[2:] == (CallAnswer("call_1", "read", "text of a"), UserTurn("again"))


def test_a_result_behind_a_message_of_the_person_has_no_call_any_more() -> None:
    turns = talk(USER, reply(CALL), user(), result()).turns
    assert turns[2:] == (CallAnswer("call_1", "read", NO_RESULT), UserTurn("Go on"), UserTurn("text of a"))


def test_results_have_the_names_of_their_calls_in_any_order() -> None:
    second = CallPart("call_2", "write", "{}")
    turns = talk(USER, reply(CALL, second), result("call_2", "2"), result("call_1", "1")).turns
    assert turns[2:] == (CallAnswer("call_2", "write", "2"), CallAnswer("call_1", "read", "1"))


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("read", "read"),
        ("functions.read", "functions_read"),
        ("ä b", "__b"),
        ("", "unknown"),
        ("x" * 99, "x" * 64),
    ],
)
def test_a_name_of_a_function_is_one_that_providers_accept(name: str, sent: str) -> None:
    (_, said, answer) = talk(USER, reply(CallPart("c", name, "{}")), result("c")).turns
    assert isinstance(said, ReplyTurn) and isinstance(answer, CallAnswer)
    assert said.calls[0].name == answer.name == sent


ODD_IDS = ["call_1", "toolu_01ABC", "call_1\n", "", "a" * 65, "9charsabc", "ß", "a.b:c", "chatcmpl-tool-6"]


@pytest.mark.parametrize("rules", [Rules(), MISTRAL], ids=["any", "mistral"])
def test_ids_are_replaced_by_accepted_ones_for_call_and_result(rules: Rules) -> None:
    messages = [USER]
    for id in ODD_IDS:
        messages += [reply(CallPart(id, "read", "{}")), result(id)]
    turns = talk(*messages, rules=rules).turns
    calls = [turn.calls[0].id for turn in turns if isinstance(turn, ReplyTurn)]
    assert calls == [turn.id for turn in turns if isinstance(turn, CallAnswer)]
    assert all(re.fullmatch(rules.call_id, id) and "\n" not in id for id in calls)
    assert len(set(calls)) == len(ODD_IDS), "different ids stay different"
    assert all(
        new == old for old, new in zip(ODD_IDS, calls, strict=True) if re.fullmatch(rules.call_id, old)
    )
    assert calls == [
        turn.calls[0].id for turn in talk(*messages, rules=rules).turns if isinstance(turn, ReplyTurn)
    ]


def test_mistral_gets_nine_letters_and_digits() -> None:
    (_, said, _) = talk(USER, reply(CALL), result(), rules=MISTRAL).turns
    assert isinstance(said, ReplyTurn) and re.fullmatch("[a-z0-9]{9}", said.calls[0].id)


# ── between the turns ────────────────────────────────────────────────────────────────────────────────────


def test_a_provider_may_want_a_reply_between_a_result_and_a_message() -> None:
    messages = (USER, reply(CALL), result(), user())
    spaced = talk(*messages, rules=MISTRAL).turns
    assert spaced[3:] == (ReplyTurn((TextPart("Done."),)), UserTurn("Go on"))
    assert talk(*messages).turns[3:] == (UserTurn("Go on"),)
    assert talk(USER, reply(CALL), result(), reply(TextPart("x")), rules=MISTRAL).turns[3] == ReplyTurn(
        (TextPart("x"),)
    )


def test_marks_are_those_of_the_messages() -> None:
    turns = talk(SYSTEM, USER, reply(CALL), result(), user(), marks=frozenset({1, 3})).turns
    marked = [turn for turn in turns if not isinstance(turn, ReplyTurn) and turn.mark]
    assert marked == [UserTurn("Hello", mark=True), CallAnswer("call_1", "read", "text of a", mark=True)]


@pytest.mark.parametrize("sees", [True, False])
def test_images_are_for_models_that_see(sees: bool) -> None:
    image = {"media_type": "image/png", "data": "AAAA"}
    message = {**USER, "images": [image]}
    assert talk(message, sees=sees).turns == (UserTurn("Hello", (image,) if sees else ()),)
    empty = {**message, "content": ""}
    assert talk(empty, sees=sees).turns == ((UserTurn("", (image,)),) if sees else ())


def test_an_empty_message_is_left_out() -> None:
    assert talk(user(""), USER, reply(TextPart("")), user("")).turns == (UserTurn("Hello"),)


# ── one conversation at every provider ───────────────────────────────────────────────────────────────────

EVERYWHERE = [
    "openai/gpt-4o",
    "openai/gpt-5",
    "anthropic/claude-sonnet-4-5",
    "anthropic/claude-opus-5-5",
    "gemini/gemini-3-pro-preview",
    "deepseek/deepseek-v4-pro",
    "mistral/mistral-medium-latest",
    "openrouter/anthropic/claude-sonnet-4.5",
    "groq/openai/gpt-oss-120b",
    "xai/grok-4",
    "moonshot/kimi-k2.5",
    "zai/glm-4.6",
    "minimax/MiniMax-M2",
    "dashscope/qwen3-max",
    "azure/gpt-5",
    "chatgpt/gpt-5.2",
    "hosted_vllm/x",
    "llamafile/x",
    "lm_studio/x",
]
SECRET_ITEMS = (
    ThinkingPart(
        "hidden thought", {"type": "thinking", "thinking": "hidden thought", "signature": "hidden sig"}
    ),
    TextPart("Looking.", {"id": "hidden item", "type": "message"}),
    CallPart("call_1", "read", '{"path": "a"}', {"id": "hidden item", "thoughtSignature": "hidden sig"}),
)


@pytest.mark.parametrize("model", EVERYWHERE)
@pytest.mark.parametrize("before", EVERYWHERE)
def test_a_model_gets_no_items_of_another_and_all_of_its_words(model: str, before: str) -> None:
    own = origin_of(model, SYSTEM, USER)
    other = origin_of(before, SYSTEM, USER)
    message = reply(*SECRET_ITEMS, of=other)
    sent = str(body(model, SYSTEM, USER, message, result(), user()))
    assert ("hidden" in sent) <= own.is_of(other)
    for words in ("Be brief.", "Hello", "Looking.", "path", "text of a", "Go on"):
        assert words in sent
