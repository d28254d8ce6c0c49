"""What a reply proposes and cannot be taken goes back to the model in the same turn, so often and no more."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path

import pytest
from support.sessions import calls, model_of, open_session, reply

from tui_agent.edits.change import UNNAMED, Pick
from tui_agent.errors import EditFailed, SessionError, TuiAgentError, Unreachable
from tui_agent.headless.run import JsonReporter, apply_all
from tui_agent.model.parts import calls_of
from tui_agent.session.session import Session

TEXT = "def fetch(url):\n    return get(url)\n\n\ndef push(url):\n    return post(url)\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "api.py").write_text(TEXT)
    (folder / "other.py").write_text("x = 1\n")
    return folder


def edit(search: str, replacement: str, path: str = "api.py", **more: object) -> dict[str, object]:
    return {"path": path, "edits": [{"search": search, "replace": replacement}], **more}


WRONG = reply(
    "Tries.", fileChanges=[edit("return fetch_it(url)", "return 1"), edit("x = 1", "x = 2", "other.py")]
)
RIGHT = reply("Now right.", fileChanges=[edit("return get(url)", "return get(url, 5)")])


async def turn(session: Session, request: str = "Change api.py and other.py") -> None:
    await session.chat.submit(request)
    await session.chat.finished()


def states(session: Session) -> list[tuple[str, str]]:
    return [(change.path, change.state) for change in session.state.review.changes]


def last_words(session: Session) -> str:
    return str(model_of(session).requests[-1].messages[-1]["content"])


async def test_a_change_without_a_place_is_asked_for_again_once_with_the_nearest_lines(
    workspace: Path,
) -> None:
    async with open_session(workspace, [WRONG, RIGHT]) as session:
        await turn(session)
        assert len(model_of(session).requests) == 2
        assert "2:     return get(url)" in last_words(session) and "Not taken: api.py" in last_words(session)
        assert states(session) == [("api.py", "skipped"), ("other.py", "pending"), ("api.py", "pending")]
        await session.review.apply()
        assert "get(url, 5)" in (workspace / "api.py").read_text()
        assert (workspace / "other.py").read_text() == "x = 2\n"


async def test_what_fails_again_goes_to_the_person(workspace: Path) -> None:
    async with open_session(workspace, [WRONG, WRONG]) as session:
        await turn(session)
        assert len(model_of(session).requests) == 2
        assert session.state.turn.ok
        assert states(session)[-2:] == [("api.py", "failed"), ("other.py", "pending")]


async def test_two_places_are_shown_to_the_model(workspace: Path) -> None:
    twice = reply("Guesses.", fileChanges=[edit("(url)", "(address)")])
    async with open_session(workspace, [twice, RIGHT]) as session:
        await turn(session)
        assert "is at 4 places, in lines 1, 2, 5 and 6" in last_words(session)


async def test_a_refused_path_is_not_asked_for_again(workspace: Path) -> None:
    out = reply("Escapes.", fileChanges=[edit("a", "b", "../evil.py"), edit("x = 1", "x = 1", "other.py")])
    async with open_session(workspace, [out]) as session:
        await turn(session)
        assert len(model_of(session).requests) == 1
        assert states(session) == [("../evil.py", "failed"), ("other.py", "failed")]


async def test_function_calls_get_the_reasons_as_well(workspace: Path) -> None:
    wrong = calls(("propose_changes", {"changes": [edit("nothing like it", "y")]}), text="Tries.")
    right = calls(("propose_changes", {"changes": [edit("get(url)", "get(url, 5)")]}), text="Right.")
    async with open_session(workspace, [wrong, right], protocol="tools") as session:
        await turn(session)
        messages = model_of(session).requests[1].messages
        asked = {call.id for message in messages for call in calls_of(message)}
        assert asked == {message["tool_call_id"] for message in messages if message["role"] == "tool"}
        result = next(message for message in messages if message["role"] == "tool")
        assert "Not taken:\n- api.py" in str(result["content"])
        assert states(session)[-1] == ("api.py", "pending")


async def test_a_file_that_moved_during_the_answer_is_merged_at_once(workspace: Path) -> None:
    path = workspace / "api.py"
    async with open_session(workspace, [RIGHT]) as session:
        _on_request(session, lambda: path.write_text("# mine\n" + TEXT))
        await turn(session)
        change = session.state.review.changes[0]
        assert (change.state, change.hunks) == ("merged", ("pending",))
        assert (await session.review.diff(change.id)).base[0] == "# mine\n"
        path.chmod(0o444)
        with pytest.raises(TuiAgentError, match="write-protected"):
            await session.review.apply()
        [waits] = session.state.review.changes
        assert waits.state == "merged" and "write-protected" in waits.reason
        path.chmod(0o644)
        await session.review.apply()
        assert session.state.review.changes[0].reason == change.reason
        assert path.read_text() == "# mine\n" + TEXT.replace("get(url)", "get(url, 5)")


async def test_a_conflict_is_read_and_asked_again_at_most_twice(workspace: Path) -> None:
    path = workspace / "api.py"
    mine = iter(["get(mine)", "get(yours)", "get(ours)", "get(theirs)"])
    answers = [
        reply(str(n), fileChanges=[edit(f"return {was}", f"return {was} or None")])
        for n, was in enumerate(["get(url)", "get(mine)", "get(yours)"])
    ]
    async with open_session(workspace, answers) as session:
        _on_request(session, lambda: path.write_text(TEXT.replace("get(url)", next(mine))))
        await turn(session)
        assert len(model_of(session).requests) == 3
        assert "2:     return get(yours)" in str(model_of(session).requests[2].messages)
        assert states(session) == [("api.py", "skipped"), ("api.py", "skipped"), ("api.py", "conflict")]
        assert path.read_text() == TEXT.replace("get(url)", "get(ours)")


async def test_unsaved_text_counts_as_the_newest_version(workspace: Path) -> None:
    async with open_session(workspace, [RIGHT]) as session:
        await session.files.open("api.py")
        _on_request(session, lambda: session.files.edit("api.py", "# typed\n" + TEXT, (0, 0), (0, 0)))
        await turn(session)
        assert session.state.review.changes[0].state == "merged"
        await session.review.apply()
        buffer = session.state.buffers.get("api.py")
        assert buffer is not None and buffer.unsaved
        assert buffer.text == "# typed\n" + TEXT.replace("get(url)", "get(url, 5)")
        assert (workspace / "api.py").read_text() == TEXT


async def test_a_place_found_by_likeness_in_a_file_that_moved_waits_for_a_pick_of_its_own(
    workspace: Path,
) -> None:
    loose = reply("Loose.", fileChanges=[edit("return get(url)  \n", "return get(url, 5)\n")])
    async with open_session(workspace, [loose]) as session:
        _on_request(session, lambda: (workspace / "api.py").write_text("# mine\n" + TEXT))
        await turn(session)
        change = session.state.review.changes[0]
        assert (change.state, change.rung) == ("merged", "trailing-space")
        await session.review.apply()
        assert (workspace / "api.py").read_text() == "# mine\n" + TEXT


async def test_what_the_file_says_already_needs_no_decision(workspace: Path) -> None:
    async with open_session(workspace, [RIGHT]) as session:
        done = TEXT.replace("get(url)", "get(url, 5)")
        _on_request(session, lambda: (workspace / "api.py").write_text(done))
        await turn(session)
        assert states(session) == [("api.py", "applied")]
        assert not session.state.review.open


def _on_request(session: Session, act) -> None:
    """Do something each time when the model has been asked and has not answered yet."""
    model, real = model_of(session), model_of(session).stream

    async def stream(request):
        act()
        async for chunk in real(request):
            yield chunk

    model.stream = stream


async def conflicting(session: Session, workspace: Path, mine: str = "mine") -> None:
    """The person has changed the line that the pending change is about, and applies it."""
    (workspace / "api.py").write_text(TEXT.replace("get(url)", f"get({mine})"))
    with pytest.raises(EditFailed, match=r"api\.py"):
        await session.review.apply()


async def test_a_conflict_at_apply_is_read_and_asked_again_at_most_twice(workspace: Path) -> None:
    path = workspace / "api.py"
    lines = ["get(url)", "get(mine)", "get(yours)"]
    answers = [reply(str(n), fileChanges=[edit(f"return {was}", "return 5")]) for n, was in enumerate(lines)]
    async with open_session(workspace, answers) as session:
        await turn(session)
        for number, mine in enumerate(("mine", "yours", "ours"), 1):
            await conflicting(session, workspace, mine)
            await session.chat.finished()
            assert len(model_of(session).requests) == min(number + 1, 3)
            if number < 3:
                assert states(session) == [*[("api.py", "skipped")] * number, ("api.py", "pending")]
                assert "could not be applied" in last_words(session)
                assert f"2:     return get({mine})" in last_words(session)
        assert states(session)[-1] == ("api.py", "conflict")
        assert session.state.turn.number == 1 and session.state.turn.ok
        assert path.read_text() == TEXT.replace("get(url)", "get(ours)")


async def test_all_is_applied_when_the_model_has_answered(workspace: Path) -> None:
    again = reply("Again.", fileChanges=[edit("return get(mine)", "return get(mine, 5)")])
    async with open_session(workspace, [RIGHT, again]) as session:
        await turn(session)
        (workspace / "api.py").write_text(TEXT.replace("get(url)", "get(mine)"))
        assert await apply_all(session, 0) == ""
        assert "get(mine, 5)" in (workspace / "api.py").read_text()


async def test_what_the_person_settles_meanwhile_stays(workspace: Path) -> None:
    async with open_session(workspace, [RIGHT, RIGHT]) as session:
        await turn(session)
        _on_request(session, lambda: asked.set())
        real, asked, settled = model_of(session).stream, asyncio.Event(), asyncio.Event()

        async def stream(request):
            await settled.wait()
            async for chunk in real(request):
                yield chunk

        model_of(session).stream = stream
        await conflicting(session, workspace)
        await session.review.resolve("c1.1", ["theirs"])
        settled.set()
        await session.chat.finished()
        assert asked.is_set() and states(session) == [("api.py", "merged")]
        assert "decided about meanwhile" in session.state.notices.items[-1].text


@pytest.mark.parametrize("error", [Unreachable("It is not there", "start it"), ValueError("a fault")])
async def test_a_model_that_cannot_be_asked_again_leaves_the_conflict(
    workspace: Path, error: Exception
) -> None:
    async with open_session(workspace, [RIGHT, error]) as session:
        await turn(session)
        await conflicting(session, workspace)
        await session.chat.finished()
        assert states(session) == [("api.py", "conflict")] and session.state.turn.ok
        assert "asked again without success" in session.state.notices.items[-1].text
        await session.review.skip()
        assert states(session) == [("api.py", "skipped")]
        with pytest.raises(SessionError, match="Nothing is pending"):
            await session.review.skip()


async def test_where_every_change_failed_the_remedy_names_them(workspace: Path) -> None:
    lost = reply(
        "Changed.", fileChanges=[{"path": "api.py", "edits": [{"search": "nowhere", "replace": "x"}]}]
    )
    async with open_session(workspace, [lost, lost, lost]) as session:
        await turn(session)
        ids = [change.id for change in session.state.review.changes if change.state == "failed"]
        assert ids and not session.state.review.open
        for decide in (session.review.apply, session.review.skip):
            with pytest.raises(EditFailed, match="Nothing was written") as refused:
                await decide()
            assert refused.value.remedy == f"skip {', '.join(ids)}, or ask the model again"
        await session.review.skip([Pick(name) for name in ids])
        assert set(states(session)) == {("api.py", "skipped")}


async def test_what_the_person_wrote_is_not_asked_again(workspace: Path) -> None:
    async with open_session(workspace, [RIGHT]) as session:
        await turn(session)
        await session.review.edit_hunk(Pick("c1.1", 0), "    return get(url, 6)\n")
        await conflicting(session, workspace)
        await session.chat.finished()
        assert len(model_of(session).requests) == 1 and states(session) == [("api.py", "conflict")]


async def test_what_has_no_place_leaves_the_pending_change_to_be_decided(workspace: Path) -> None:
    async with open_session(workspace, [RIGHT, WRONG, WRONG]) as session:
        await turn(session)
        await turn(session, "And more of it")
        waiting = [(change.id, change.path, change.state) for change in session.state.review.changes]
        assert waiting[0] == ("c1.1", "api.py", "pending")
        assert [state for _, path, state in waiting if path == "api.py"] == ["pending", "skipped", "failed"]
        await session.review.apply([Pick("c1.1")])
        assert "get(url, 5)" in (workspace / "api.py").read_text()


async def test_a_search_is_answered_in_the_same_turn(workspace: Path) -> None:
    asks = reply("Looks.", searches=[{"pattern": "return get", "glob": "*.py"}])
    async with open_session(workspace, [asks, reply()]) as session:
        await turn(session, "Hello")
        assert "## SEARCH RESULTS" in last_words(session) and "api.py:2: return get(url)" in last_words(
            session
        )


SEARCH = "<<<<<<< SEARCH\n    return get(url)\n=======\n    return get(url, 5)\n>>>>>>> REPLACE\n"
HUNK = "@@ -1,2 +1,2 @@\n def fetch(url):\n-    return get(url)\n+    return get(url, 5)\n"


@pytest.mark.parametrize("protocol", ["structured", "tools"])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"Like this:\n\n{SEARCH}", "the answer shows a SEARCH block without a file name; nothing to apply"),
        (f"Like this:\n\n{HUNK}", "looks like a change"),
        (f"```\n    {SEARCH}```\n", "looks like a change"),
        (f"```diff\n{HUNK}", "was not finished"),
        ("> ```python api.py\n> x = 1\n> ```\n", "it is quoted"),
    ],
)
async def test_what_looks_like_a_change_of_no_file_is_told_to_the_person_and_to_the_model(
    workspace: Path, protocol: str, text: str, why: str
) -> None:
    async with open_session(workspace, [text, "Well."], protocol=protocol, services=False) as session:
        session.workspace._indexed.set()
        told = io.StringIO()
        teller = JsonReporter(told)
        session.subscribe(teller.on_event)
        await turn(session)
        assert len(model_of(session).requests) == 1, "it may only be an example"
        [change] = session.state.review.changes
        assert (change.path, change.state) == (UNNAMED, "failed")
        assert why in change.reason
        assert any(why in notice.text for notice in session.state.notices.items)
        assert await apply_all(session, 0), "so that the exit status is 1"
        lines = [json.loads(line) for line in told.getvalue().splitlines()]
        assert any(line["type"] == "change" and why in line["reason"] for line in lines)
        assert any(line["type"] == "notice" and why in line["text"] for line in lines)
        await turn(session, "And now?")
        assert why in last_words(session)
