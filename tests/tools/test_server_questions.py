"""Questions of servers and agents: one for each field, values of the field's type, and each way to decline."""

from __future__ import annotations

from typing import Any

import pytest
from support.tool_contexts import Bench

from tui_agent.store import events as e
from tui_agent.store.state import Decision
from tui_agent.tools.server_tools import ask_permission, ask_person

DECLINE = "decline"


def schema(*needed: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(needed)}


TEXT = {"type": "string"}
NUMBER = {"type": "number", "minimum": 1}
COLOURS = {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}
TITLED = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g"}]}
SEVERAL = {"type": "array", "items": {"anyOf": [{"const": "r", "title": "Red"}, {"const": "g"}]}}


@pytest.mark.parametrize(
    ("asked", "answers", "expected"),
    [
        ({}, ["yes"], ("accept", {})),
        ({}, [DECLINE], (DECLINE, {})),
        ({}, ["something else"], (DECLINE, {})),
        ({"url": "https://a.example"}, ["yes"], ("accept", {})),
        ({"url": "https://a.example"}, ["no"], (DECLINE, {})),
        (schema(name=TEXT), [("typed", "Ada")], ("accept", {"name": "Ada"})),
        (schema(name=TEXT), [DECLINE], (DECLINE, {})),
        (schema(name=TEXT), [("typed", "")], ("accept", {})),
        (schema("name", name={**TEXT, "minLength": 1}), [("typed", ""), DECLINE], (DECLINE, {})),
        (schema(name={**TEXT, "default": "Ada"}), [("typed", "")], ("accept", {"name": "Ada"})),
        (schema(age=NUMBER), [("typed", "3.5")], ("accept", {"age": 3.5})),
        (schema(age=NUMBER), [("typed", "0"), ("typed", "x"), ("typed", "2")], ("accept", {"age": 2.0})),
        (schema(age=NUMBER), [("typed", "0")] * 3, ("cancel", {})),
        (schema(on={"type": "boolean"}), ["choice 1"], ("accept", {"on": False})),
        (schema(colour=COLOURS), ["choice 1"], ("accept", {"colour": "g"})),
        (schema(colour=TITLED), ["choice 0"], ("accept", {"colour": "r"})),
        (schema(colours=SEVERAL), [("typed", "red, g,")], ("accept", {"colours": ["r", "g"]})),
        (schema(a=TEXT, b=TEXT), [("typed", "1"), ("typed", "2")], ("accept", {"a": "1", "b": "2"})),
        (schema(**{f"f{n}": TEXT for n in range(30)}), [DECLINE], (DECLINE, {})),
    ],
)
async def test_answers_become_values_of_their_fields(
    asked: dict[str, Any], answers: list[Any], expected: tuple[str, dict[str, Any]]
) -> None:
    bench = Bench(answers=list(answers))
    assert await ask_person(bench.context, bench.emit, "forms", "Who?", asked) == expected
    assert not bench.answers, "each answer was asked for"
    questions = [event for event in bench.events if isinstance(event, e.PermissionAsked)]
    decided = [event.decision for event in bench.events if isinstance(event, e.PermissionDecided)]
    assert len(questions) == len(decided) == len(answers)
    assert len({question.call for question in questions}) == len(questions)
    assert decided[-1].answer == ("no" if answers[-1] in (DECLINE, "no") else "once")


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (TEXT, "name\n\nThe server forms receives the answer."),
        ({**TEXT, "title": "Your name", "description": "in full"}, "Your name: in full\n\n"),
        ({**TEXT, "default": "Ada"}, "name (Enter: Ada)\n\n"),
        ({**SEVERAL, "default": ["r", "g"]}, "name (some of Red, g, separated by commas) (Enter: r, g)\n\n"),
        ({**COLOURS, "default": "r"}, "name\n\n"),
    ],
)
async def test_a_field_is_described(part: dict[str, Any], shown: str) -> None:
    bench = Bench(answers=[DECLINE])
    await ask_person(bench.context, bench.emit, "forms", "Who?", schema(name=part))
    (question,) = (event for event in bench.events if isinstance(event, e.PermissionAsked))
    assert question.preview.startswith(shown)
    choices = [name for _, name in question.answers]
    assert choices == (["Red", "Green"] if "enum" in part else ["Answer"]) + ["Do not answer"]
    assert question.typed is ("enum" not in part)


async def test_a_repeated_question_says_that_the_answer_was_invalid() -> None:
    bench = Bench(answers=[("typed", "0"), ("typed", "1")])
    await ask_person(bench.context, bench.emit, "forms", "Age?", schema(age=NUMBER))
    first, second = (event.preview for event in bench.events if isinstance(event, e.PermissionAsked))
    assert first.startswith("age") and second.startswith("This answer is invalid. age")


@pytest.mark.parametrize("answers", [None, []])
async def test_a_question_that_cannot_be_asked_is_declined(answers: list[Any] | None) -> None:
    bench = Bench(answers=answers)
    fields = schema(**{f"f{n}": TEXT for n in range(31)}) if answers == [] else {}
    assert await ask_person(bench.context, bench.emit, "forms", "Who?", fields) == (DECLINE, {})
    (notice,) = (event for event in bench.events if isinstance(event, e.NoticeGiven))
    why = "confirmation is not possible here" if answers is None else "it has too many fields"
    assert notice.text == f"A question of the server forms was declined: {why}"


@pytest.mark.parametrize(("answer", "expected"), [("allow", "allow"), ("other", ""), ("no", "")])
async def test_an_agent_gets_one_of_its_own_answers(answer: str, expected: str) -> None:
    bench = Bench(answers=[answer])
    offered = (("allow", "Yes\nreally"), ("reject", "Stop"))
    assert await ask_permission(bench.context, bench.emit, "codex", "Run make?", offered) == expected
    (question,) = (event for event in bench.events if isinstance(event, e.PermissionAsked))
    assert "codex works in a view" in question.preview and len(question.answers) == 2
    assert "\n" not in question.answers[0][1]


async def test_an_answer_to_another_question_is_kept_for_it() -> None:
    bench = Bench(answers=["yes"])
    given, ask = [Decision("file", path="a.py")], bench.context.ask
    assert ask is not None

    async def answer(action: str, offered: Any) -> Decision:
        return given.pop() if given else await ask(action, offered)

    object.__setattr__(bench.context, "ask", answer)
    assert (await ask_person(bench.context, bench.emit, "forms", "Well?", {}))[0] == "accept"
    assert [decision.action for decision in bench.context.progress.pending] == ["file"]
