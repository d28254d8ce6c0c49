"""What is written anywhere is kept while it is written, and is there again after a kill."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest
from support.logs import load
from support.repositories import repository
from support.screens import Driven, on_screen
from support.sessions import calls, open_session, reply
from textual import events
from textual.widgets import Input

import tui_agent.ui
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask
from tui_agent.store.state import State
from tui_agent.ui.app import WorkspaceApp
from tui_agent.ui.editor.code_editor import Editor
from tui_agent.ui.editor.writing_area import KeptArea, KeptInput
from tui_agent.ui.panes.chat import ChatPane
from tui_agent.ui.panes.review import ReviewPane
from tui_agent.ui.panes.todos import TodosPane
from tui_agent.ui.reopening import reopen
from tui_agent.ui.screen import keys_wait

#: Places that take letters and hold no work, and why: a search is typed again in a second, a password is kept nowhere.
NO_WORK = {
    "dialogs/chooser.py": "words to choose by",
    "dialogs/context.py": "read only",
    "dialogs/models.py": "a key, which goes to the keyring",
    "panes/plan.py": "one path, chosen for a question",
    "panes/subtasks.py": "words to look for",
    "editor/find_bar.py": "words to look for; what replaces them is kept",
}
#: The prompt and the editor, which are kept as the draft and the buffer; and what the others are made of.
KEPT = {"KeptInput", "KeptArea", "Prompt", "Editor"}
BARE = {"Input", "TextArea", "WritingArea", "MaskedInput", "_Typed"}


def made(source: str) -> list[str]:
    """The names of classes of which a module makes one."""
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call.id for call in calls if isinstance(call, ast.Name)]


def test_whatever_takes_text_and_holds_work_is_kept() -> None:
    folder = Path(tui_agent.ui.__file__).parent
    sources = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.py")}
    bare = {name for name, source in sources.items() if BARE.intersection(made(source))}
    assert bare == NO_WORK.keys()
    assert sum(source.count("KeptInput(") + source.count("KeptArea(") for source in sources.values()) >= 9


def dialogs_without_a_place(source: str) -> int:
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    texts = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "TextDialog"]
    return sum(all(named.arg != "kept" for named in call.keywords) for call in texts)


def test_each_text_that_is_written_over_the_screen_has_a_place() -> None:
    folder = Path(tui_agent.ui.__file__).parent
    found = {path.name: dialogs_without_a_place(path.read_text()) for path in folder.rglob("*.py")}
    # both show a text that cannot be sent anywhere
    assert {name for name, count in found.items() if count} == {"information.py", "questions.py"}


TODO, COMMENT, EDIT = (
    "write it up",
    "gave no reason",
    reply("Edits.", fileChanges=[{"path": "a.txt", "content": "two\n"}]),
)


async def kept(driven: Driven, place: str, text: str) -> None:
    """It is on disk by now: that is what a kill would leave."""
    log = driven.session.log_path
    assert log is not None
    await driven.until(
        lambda: any(
            isinstance(it, e.TypingChanged) and (it.place, it.text) == (place, text)
            for it in load(log).growing
        ),
        f"{place} in the log",
    )


async def test_a_todo_a_comment_and_a_commit_message_are_kept_and_opened_again(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "work", {"a.txt": "one\n"})
    async with on_screen(workspace, [EDIT]) as driven:
        await driven.session.chat.submit("Change a.txt")
        await driven.session.chat.finished()
        driven.screen.focus_pane("todos")
        await driven.press("a", *TODO)
        await kept(driven, "todo:", TODO)
        driven.screen.focus_pane("review")
        await driven.press("c", *COMMENT)
        change = driven.session.state.review.open[0].id
        await kept(driven, f"comment:{change}:0", COMMENT)
        name = driven.session.state.session.id
    async with on_screen(workspace, [], session=name) as driven:
        await driven.until(
            lambda: driven.screen.query_one(ReviewPane).query_one(KeptInput).value == COMMENT, "the comment"
        )
        await driven.shows("Unsaved text was kept")
        await driven.press("enter")
        await driven.until(lambda: "comment" not in str(driven.session.state.input.typed), "it is given up")
        await driven.press("escape")
        driven.screen.focus_pane("todos")
        await driven.press("a")
        assert driven.screen.query_one(TodosPane).query_one(KeptInput).value == TODO
        await driven.press("escape")
        await driven.session.journal.record(e.SubTasksProposed((SubTask("t1", "Do it"),)))
        await opened_again(driven, "subtask:t1:goal", "Do it well")
        goals = lambda: driven.app.screen.query("#goal").results(KeptArea)  # noqa: E731
        await driven.until(lambda: [goal.text for goal in goals()] == ["Do it well"], "the sub-task")
        await driven.press("escape", "escape")
        await driven.session.files.open("a.txt")
        await opened_again(driven, "replace", "with this")
        await driven.until(
            lambda: driven.screen.query_one("#find-with", KeptInput).value == "with this", "bar"
        )


async def opened_again(driven: Driven, place: str, text: str) -> None:
    driven.session.chat.set_typed(place, text)
    await reopen(driven.screen, driven.session, [place], at_work=False)


async def test_no_dialog_opens_over_what_is_written_already(tmp_path: Path) -> None:
    """Neither while keys come, nor for a place that was not written in before the session was opened."""
    (tmp_path / "work").mkdir()
    async with open_session(tmp_path / "work", services=False) as session:
        session.chat.set_typed("memory", "kept")

        async def opened() -> Session:
            app.keyboard.put(events.Key("x", "x"))
            return session

        app = WorkspaceApp(opened)
        async with app.run_test(size=(120, 30), notifications=True) as pilot:
            driven = Driven(app, session, pilot)
            notices = lambda: [one.text for one in session.state.notices.items]  # noqa: E731
            await driven.until(lambda: any("was kept" in text for text in notices()), "it is named")
            assert app.screen is app.workspace_screen
            await driven.until(lambda: session.state.input.draft == "x", "the letter in the prompt")
            session.chat.set_typed("subtask::goal", "new")
            await reopen(app.workspace_screen, session, [], at_work=False)
            assert app.screen is app.workspace_screen


def texts(state: State) -> dict[str, str]:
    """The text of each place that keeps one, without keys that wait."""
    buffers = {"editor": "".join(buffer.text for buffer in state.buffers.open)}
    return {"prompt": state.input.draft, "todo:": state.input.typed.get("todo:", ""), **buffers}


@pytest.mark.parametrize("place", ["prompt", "todo:", "editor"])
async def test_keys_that_wait_are_never_stored_in_two_texts(tmp_path: Path, place: str) -> None:
    workspace = repository(tmp_path / "work", {"a.txt": ""})
    async with on_screen(workspace, []) as driven:
        session, keyboard = driven.session, driven.app.keyboard
        if place == "todo:":
            driven.screen.focus_pane("todos")
            await driven.press("a")
        elif place == "editor":
            await session.files.open("a.txt")
            driven.screen.focus_pane("buffers")
            await driven.until(lambda: isinstance(driven.app.focused, Editor), "the editor")
        await driven.press(*"begun ")
        with keys_wait(driven.screen):
            for letter in "and more":
                keyboard.put(events.Key("space" if letter == " " else letter, letter))
            await kept(driven, "waiting", "and more")
            together: list[str] = []

            def note(*_: object) -> None:
                def add() -> None:
                    state = session.state
                    together.append(texts(state)[place] + state.input.typed.get("waiting", ""))

                asyncio.get_running_loop().call_soon(add)

            unsubscribe = session.subscribe(note)
        await driven.until(lambda: texts(session.state)[place] == "begun and more", "the keys are handled")
        await driven.until(lambda: together, "a change")
        assert set(together) == {"begun and more"}
        unsubscribe()
        await driven.until(lambda: "waiting" not in session.state.input.typed, "they do not wait any more")


async def test_keys_that_wait_follow_the_draft_after_a_resume(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    async with on_screen(tmp_path / "work", []) as driven:
        session = driven.session
        await driven.press(*"begun")
        await driven.until(lambda: session.state.input.draft == "begun", "the draft")
        driven.app.keyboard.on_waiting = None  # nothing waits in this one
        session.chat.set_typed("waiting", ", unhandled")
        name = session.state.session.id
    async with on_screen(tmp_path / "work", [], session=name) as driven:
        await driven.until(lambda: "begun" in driven.screen.query_one(ChatPane).prompt.text, "the draft")
        assert driven.screen.query_one(ChatPane).prompt.text == "begun, unhandled"
        assert not driven.session.state.input.typed


async def test_keys_that_wait_for_a_password_are_not_kept(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    async with on_screen(tmp_path / "work", []) as driven:
        field = Input(password=True)
        await driven.screen.mount(field)
        field.focus()
        await driven.until(lambda: driven.app.focused is field, "the field")
        stored: list[str] = []
        store = driven.app.keyboard.on_waiting
        assert store is not None

        async def noted(text: str) -> None:
            await store(text)
            stored.append(text)

        driven.app.keyboard.on_waiting = noted
        with keys_wait(driven.screen):
            driven.app.keyboard.put(events.Key("x", "x"))
            await driven.until(lambda: stored, "keys wait")
            assert not driven.session.state.input.typed


async def test_an_answer_that_was_being_typed_is_in_its_dialog_again_and_then_in_the_prompt(
    tmp_path: Path,
) -> None:
    workspace = repository(tmp_path / "work", {"a.txt": "one\n"})
    asked = calls(("search_text", {"pattern": "one"}))
    rule = "permissions.ask=search_text"
    async with on_screen(workspace, [asked], protocol="tools", interactive=True, overrides=(rule,)) as driven:
        await driven.press(*"look", "enter")
        await driven.until(lambda: driven.session.state.asked, "the question")
        question = driven.session.state.asked
        assert question is not None
        for words in ("not ", "yet"):
            driven.screen.focus_pane("chat")
            await driven.press("ctrl+o", "P")
            await driven.shows("allow?")
            await driven.press(*words)
            await driven.shows(f"Do not allow it: {'not' if words == 'not ' else 'not yet'}")
            if words == "not ":
                await driven.press("escape")
        await kept(driven, f"answer:{question.call}", "not yet")
        name = driven.session.state.session.id
    async with on_screen(workspace, [], session=name) as driven:
        await driven.until(lambda: driven.session.state.input.draft == "not yet", "the answer in the prompt")
        assert not driven.session.state.input.typed
