"""The prompt only grows: every request of a session against the one before it, byte by byte; resets, condensing."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.logs import load
from support.sessions import Reply, ScriptedModel, calls, model_of, open_session, reply
from support.trees import make_tree

from tui_agent.errors import ContextTooLong, RateLimited
from tui_agent.model.client import Abilities, Chunk, EndChunk, ModelRequest, TextChunk, UsageChunk
from tui_agent.model.parts import text_of
from tui_agent.session.session import Session
from tui_agent.store import events as e

SMALL = ("context.window=8000", "outline_tokens=50", "bundling.enabled=false")

MIDDLE = ("context.window=12000", *SMALL[1:])


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    files = {f"src/m{number}.py": f"def f{number}():\n    return {number}\n" for number in range(6)}
    return make_tree(tmp_path / "work", files | {"AGENTS.md": "Be brief.\n"})


async def turn(session: Session, request: str) -> None:
    await session.chat.submit(request)
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error


def as_bytes(request: ModelRequest) -> bytes:
    beside = [list(request.tools), request.schema]
    return json.dumps([beside, *request.messages], ensure_ascii=False).encode()[:-1]


def sent(session: Session) -> list[e.RequestSent]:
    assert session.storage.log is not None
    return [event for event in load(session.storage.log).events if isinstance(event, e.RequestSent)]


def answers(protocol: str, count: int) -> list[Reply]:
    """Edits, questions and requests for files in turn; in `tools` each with a call."""
    made: list[Reply] = []
    for number in range(count):
        path = f"src/m{number % 6}.py"
        change = {
            "path": path,
            "edits": [{"search": f"return {number % 6}", "replace": f"return {number % 6}"}],
        }
        if number % 5 == 3:
            asks = [{"type": "file", "name": path, "patterns": [path]}]
            made.append(
                reply("Needs it.", fileRequests=asks)
                if protocol == "structured"
                else calls(("read_files", {"actions": asks}), ("suggest_next", {"steps": []}))
            )
        elif number % 3 == 0 and protocol == "tools":
            made.append(calls(("set_todos", {"todos": [{"text": f"Todo {number}"}]}), text="Done."))
        elif number % 3 == 0:
            made.append(reply(f"Done {number}.", todos=[{"text": f"Todo {number}"}], fileChanges=[change]))
        else:
            made.append(reply(f"Answer {number}.") if protocol == "structured" else f"Answer {number}.")
    return made


@pytest.mark.parametrize("protocol", ["structured", "tools"])
async def test_every_request_begins_with_the_whole_of_the_one_before(workspace: Path, protocol: str) -> None:
    async with open_session(workspace, answers(protocol, 60), protocol=protocol) as session:
        for number in range(24):
            path = f"src/m{number % 6}.py"
            if number % 4 == 1:
                (workspace / path).write_text(f"changed = {number}\n")
            if number == 5:
                (workspace / "src/AGENTS.md").write_text("Only spaces.\n")
            if number == 9:
                (workspace / "AGENTS.md").write_text("Be very brief.\n")
            if number == 13:
                (workspace / "src/AGENTS.md").unlink()
            if number == 7:
                await session.files.open(path)
            if number % 6 == 2 and session.state.review.open:
                await session.review.apply()
            await turn(session, "continue" if number % 7 == 6 else f"Turn {number}: look at {path}")
        requests = [as_bytes(request) for request in model_of(session).requests]
        assert len(requests) > 24
        for before, after in pairwise(requests):
            assert after.startswith(before) and len(after) > len(before)
        told = sent(session)
        assert [event.prefix_share for event in told] == [0.0, *[1.0] * (len(told) - 1)]
        assert [event.reset for event in told] == [True, *[False] * (len(told) - 1)]


async def test_nothing_in_a_request_depends_on_the_clock_or_on_chance(workspace: Path) -> None:
    async def once() -> list[Any]:
        async with open_session(workspace, answers("structured", 8)) as session:
            for number in range(4):
                await turn(session, f"Look at src/m{number}.py")
            return [request.messages for request in model_of(session).requests]

    assert await once() == await once()


@pytest.mark.parametrize("change", ["dialect", "model"])
async def test_another_dialect_or_model_is_a_reset_and_keeps_the_words(workspace: Path, change: str) -> None:
    asks = [{"type": "file", "name": "m2", "patterns": ["src/m2.py"]}]
    replies: list[Reply] = [reply("One."), reply("Needs it.", fileRequests=asks), reply("Two."), "Three."]
    async with open_session(workspace, replies) as session:
        await turn(session, "First question, about src/m1.py")
        await turn(session, "And now?")
        (workspace / "src/m1.py").write_text("moved = 1\n")
        if change == "model":
            model_of(session).replies[-1] = reply("Three.")
            await session.models.choose("another")
        else:
            model_of(session).tools = True
            session.models._settings = replace(session.core.settings, protocol="tools")
        await turn(session, "Last question")
        before, after = model_of(session).requests[-2:]
        assert (bool(after.tools), after.model) == (
            (True, before.model) if change == "dialect" else (False, "another")
        )
        head, *talk, newest = (text_of(message) for message in after.messages)
        assert "First question" in talk[0] and "One." in talk[1] and "return 1" not in str(talk)
        assert "def f2" in head and "def f2" not in str(talk)  # what was in view is in the system prompt
        assert "1: moved = 1" in head + newest and "def f1" not in head + newest
        assert "| src/m1.py |" in newest and "| src/m2.py |" in newest
        assert sent(session)[-1].reset
        assert sorted(session.state.conversation.files) == ["src/m1.py", "src/m2.py"]


def big(name: str, tokens: int) -> str:
    return "".join(f"{name} = {number:08}  # padding\n" for number in range(tokens * 4 // 26))


async def test_files_give_way_and_those_that_matter_stay(workspace: Path) -> None:
    make_tree(workspace, {f"big/b{number}.py": big(f"b{number}", 1400) for number in range(6)})
    async with open_session(workspace, [reply(str(n)) for n in range(9)], overrides=MIDDLE) as session:
        for number in range(4):
            await turn(session, f"Look at big/b{number}.py")
        assert not any(event.reset for event in sent(session)[1:])
        await turn(session, "Look at big/b4.py")
        last = sent(session)[-1]
        assert last.reset
        system, *talk = model_of(session).requests[-1].messages
        assert "b3 = 00000001" in system["content"] and "b0 = 00000001" not in str(system)
        assert '<context filename="AGENTS.md">\nBe brief.\n</context>' in system["content"]
        assert "b3 = " not in str(talk) and "b4 = 00000001" in talk[-1]["content"]
        assert '{"path": "big/b0.py", "truncated": true}' in talk[0]["content"]
        assert next(m["content"] for m in talk if m["role"] == "user").endswith(
            "Look at big/b0.py\n</user_query>"
        )
        assert "| big/b0.py |" in talk[-1]["content"]  # a reset tells the whole table
        assert session.state.known.files["big/b0.py"].freshness == "fresh"
        await turn(session, "And now?")
        assert sent(session)[-1].prefix_share == 1.0
        assert len(session.state.chat.messages) == 12  # the person's view is what it was


async def test_pending_changes_survive_a_reset_word_for_word(workspace: Path) -> None:
    make_tree(workspace, {f"big/b{number}.py": big(f"b{number}", 1400) for number in range(6)})
    change = reply("Proposes.", fileChanges=[{"path": "new.py", "content": "kept = 'word for word'\n"}])
    async with open_session(
        workspace, [change, *[reply(str(n)) for n in range(9)]], overrides=SMALL
    ) as session:
        for number in range(5):
            await turn(session, f"Look at big/b{number}.py")
        assert sent(session)[-1].reset
        assert "kept = 'word for word'" in "".join(
            text_of(m) for m in model_of(session).requests[-1].messages
        )


async def test_older_messages_are_summarised_near_the_limit(workspace: Path) -> None:
    words = "word " * 1200
    replies: list[Reply] = [reply(f"Answer {number}.", message=words) for number in range(4)]
    replies += ["SUMMARY: the person asked four questions.", reply("Answer 4."), reply("Answer 5.")]
    async with open_session(workspace, replies, overrides=SMALL) as session:
        for number in range(5):
            await turn(session, f"Question {number}")
        purposes = [request.purpose for request in model_of(session).requests]
        assert purposes == ["main"] * 4 + ["condense", "main"]
        last = model_of(session).requests[-1].messages
        assert "SUMMARY: the person asked four questions." in last[1]["content"]
        assert "Last request, word for word:\nQuestion 4" in last[1]["content"]
        assert "Question 0" not in str(last)
        assert last[-1]["content"].endswith("<user_query>\nQuestion 4\n</user_query>")
        assert any("SUMMARY" in message.text for message in session.state.chat.messages)
        assert next(m.text for m in session.state.chat.messages if m.kind == "person") == "Question 0"
        assert await session.chat.summary() == "SUMMARY: the person asked four questions."
        assert await session.chat.edit_summary("In my own words.")
        assert await session.chat.summary() == "In my own words."
        await turn(session, "Go on with it")
        assert "In my own words." in model_of(session).requests[-1].messages[1]["content"]


async def test_where_no_summary_comes_the_newest_messages_are_kept(workspace: Path) -> None:
    words = "word " * 1200
    replies: list[Reply] = [reply(f"Answer {number}.", message=words) for number in range(4)]
    replies += [RateLimited("No more today", "wait"), reply("Still here.")]
    async with open_session(workspace, replies, overrides=SMALL) as session:
        for number in range(5):
            await turn(session, f"Question {number}")
        last = model_of(session).requests[-1].messages
        assert "no longer shown" in last[1]["content"] and last[2]["role"] == "user"
        assert any("could not be summarised" in message.text for message in session.state.chat.messages)


async def test_a_request_that_the_provider_finds_too_long_is_made_shorter(workspace: Path) -> None:
    make_tree(workspace, {f"big/b{number}.py": big(f"b{number}", 1400) for number in range(3)})
    too_long = ContextTooLong("The request is too long", "make it shorter")
    replies: list[Reply] = [reply("0"), reply("1"), too_long, reply("Now it fits.")]
    async with open_session(workspace, replies, overrides=("context.window=100000",)) as session:
        for number in range(3):
            await turn(session, f"Look at big/b{number}.py")
        before, after = model_of(session).requests[-2:]
        assert len(str(after.messages)) < len(str(before.messages))
        assert "<user_query>\nLook at big/b2.py\n</user_query>" in text_of(after.messages[-2]) + text_of(
            after.messages[-1]
        )
        assert session.state.chat.messages[-1].summary == "Now it fits."


async def refused(session: Session, request: str) -> None:
    await session.chat.submit(request)
    await session.chat.finished()
    assert not session.state.turn.ok


async def test_a_provider_that_always_says_too_long_gets_smaller_requests_and_nothing_twice(
    workspace: Path,
) -> None:
    make_tree(workspace, {f"big/b{number}.py": big(f"b{number}", 3000) for number in range(4)})
    too_long = ContextTooLong("The request is too long", "make it shorter")
    async with open_session(workspace, [too_long] * 6) as session:
        await refused(session, "Look at big/b0.py, big/b1.py, big/b2.py and big/b3.py")
        assert session.state.turn.kind == "ContextTooLong"
        sizes = [len(str(r.messages)) for r in model_of(session).requests if r.purpose == "main"]
        assert len(sizes) == 3 and sizes[0] * 0.8 >= sizes[1] and sizes[1] * 0.7 >= sizes[2]
        out = [path for slot in session.state.plan.actions for path in slot.left_out]
        assert len(out) >= 2 and not set(out) & set(session.state.known.files)
        named = " ".join(notice.text for notice in session.state.notices.items)
        assert all(path in named for path in out)
        assert session.state.conversation.messages[-1].role == "system"  # what was refused is taken back


async def test_what_cannot_be_made_smaller_is_not_sent_again(workspace: Path) -> None:
    too_long = ContextTooLong("The request is too long", "make it shorter")
    async with open_session(workspace, [too_long] * 6) as session:
        await refused(session, "Hello")
        assert [r.purpose for r in model_of(session).requests] == ["main"]
        assert session.state.turn.error == str(too_long)
        assert any(
            "The request cannot be made any smaller" in notice.text for notice in session.state.notices.items
        )
        await refused(session, "word " * 300_000)
        assert len(model_of(session).requests) == 1  # over the window: it never went out
        assert "cannot be made any smaller" in session.state.turn.error


async def test_where_no_summary_comes_three_quarters_are_kept_and_it_is_asked_for_once(
    workspace: Path,
) -> None:
    words = "word " * 600
    replies: list[Reply] = [reply(f"Answer {number}.", message=words) for number in range(7)]
    replies += [RateLimited("No more today", "wait"), reply("Still here.")]
    async with open_session(workspace, replies, overrides=SMALL) as session:
        while "condense" not in [request.purpose for request in model_of(session).requests]:
            await turn(session, f"Question {len(model_of(session).requests)}")
        purposes = [request.purpose for request in model_of(session).requests]
        assert purposes.count("condense") == 1
        *_, before, _, after = [request.messages for request in model_of(session).requests]
        there = len(before)  # with the answer to that request, and without the system prompt
        kept = len(after) - 3  # beside the system prompt, the note, and the new request
        assert after[2:-2] == before[there - kept + 1 :] and 0.65 <= kept / there <= 0.85


async def test_a_summary_that_fails_is_asked_for_twice_and_what_fits_is_kept(workspace: Path) -> None:
    words = "word " * 600
    replies: list[Reply] = [reply(f"Answer {number}.", message=words) for number in range(30)]
    async with open_session(workspace, replies, overrides=SMALL) as session:
        model = model_of(session)
        answer = model.stream

        async def stream(request: ModelRequest) -> AsyncGenerator[Chunk]:
            if request.purpose == "condense":
                model.requests.append(request)
                raise RateLimited("No more today", "wait")
            async for chunk in answer(request):
                yield chunk

        model.stream = stream  # type: ignore[method-assign]
        shares: list[float] = []
        for number in range(12):
            before = session.state.conversation.messages[1:]
            await turn(session, f"Question {number}")
            after = {message.blob for message in session.state.conversation.messages}
            shares.append(sum(m.blob in after for m in before) / len(before) if before else 1)
        assert [request.purpose for request in model.requests].count("condense") == 2
        assert 0.6 <= min(shares) < 1, "the first cut; later only what has no room goes"


async def test_a_call_that_was_stopped_gets_a_result_that_says_so(workspace: Path) -> None:
    asks = calls(("read_files", {"actions": [{"type": "file", "name": "m", "patterns": ["src/m1.py"]}]}))
    asks[-2:] = [TextChunk(""), EndChunk("tool_calls")]
    async with open_session(
        workspace, [asks, "Hello."], protocol="tools", overrides=["max_steps=1"]
    ) as session:
        await session.chat.submit("Look")
        await session.chat.finished()
        assert (session.state.turn.ok, session.state.turn.limit) == (False, "max_steps")
        await turn(session, "Again")
        result = next(m for m in model_of(session).requests[-1].messages if m["role"] == "tool")
        assert "stopped before this was answered" in result["content"]


async def test_a_count_that_the_provider_contradicts_is_believed(workspace: Path) -> None:
    text = json.dumps(reply("Yes."))
    answer: Reply = [TextChunk(text), UsageChunk(50_000, 10, 0, 0.1), EndChunk("stop")]
    async with open_session(workspace, [answer, reply()]) as session:
        await turn(session, "Hello")
        usage = session.state.usage
        assert (usage.context, usage.context_estimated) == (50_000, False)
        assert usage.scale == 4.0


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("limits.turn_tokens=500", "limits.turn_tokens (500)"),
        ("limits.session_tokens=500", "limits.session_tokens (500)"),
    ],
)
async def test_a_limit_ends_the_turn_before_the_request(workspace: Path, limit: str, words: str) -> None:
    async with open_session(workspace, [reply()], overrides=[limit]) as session:
        await session.chat.submit("Hello")
        await session.chat.finished()
        assert session.state.turn.kind == "LimitReached" and words in session.state.turn.error
        assert model_of(session).requests == []


@pytest.mark.parametrize("what", ["turn", "session"])
async def test_a_limit_of_money_that_nobody_can_keep_lets_nothing_through(workspace: Path, what: str) -> None:
    limits = [f"limits.{what}_cost=5"]
    plans: list[Reply] = [{"actions": []}]
    async with open_session(workspace, [reply()], plans=plans, overrides=limits) as session:
        model_of(session).known = False
        await session.chat.submit("Make it more robust")
        await session.chat.finished()
        assert session.state.turn.kind == "LimitReached"
        assert f"set limits.{what}_tokens instead and limits.{what}_cost to 0" in session.state.turn.error
        assert model_of(session).requests == []


async def test_a_planner_whose_price_nobody_knows_is_not_asked_under_a_limit(workspace: Path) -> None:
    class Priced(ScriptedModel):
        async def abilities(self, model: str) -> Abilities:
            return Abilities(model, 100_000, known=model == "scripted")

    def use(session: Session) -> None:
        session.models.model = Priced([reply()], plans=[{"actions": []}])

    overrides = ["planner_model=other", "limits.session_cost=5"]
    async with open_session(workspace, plans=[{}], prepare=use, overrides=overrides) as session:
        await turn(session, "Make it more robust")
        assert [request.purpose for request in model_of(session).requests] == ["main"]


async def test_an_answer_whose_price_is_not_known_is_the_last_under_a_limit(workspace: Path) -> None:
    unpriced: Reply = [TextChunk(json.dumps(reply())), UsageChunk(10, 10), EndChunk("stop")]
    async with open_session(workspace, [unpriced, reply()], overrides=["limits.session_cost=5"]) as session:
        await turn(session, "Hello")
        await session.chat.submit("Again")
        await session.chat.finished()
        assert "limits.session_cost ($5) cannot be enforced" in session.state.turn.error
        assert len(model_of(session).requests) == 1


async def test_a_limit_of_money_is_kept_from_what_tokens_have_cost(workspace: Path) -> None:
    async with open_session(workspace, [reply()] * 9, overrides=["limits.session_cost=0.0005"]) as session:
        await turn(session, "Hello")
        await session.chat.submit("Again")
        await session.chat.finished()
        assert "limits.session_cost ($0.0005)" in session.state.turn.error
        assert len(model_of(session).requests) == 1
