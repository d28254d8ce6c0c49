"""The prompt: commands after `/`, files after `@`, Esc, the queue of a stopped turn, Vim's keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from support.screens import Driven, on_screen
from support.sessions import ScriptedModel, reply
from textual._text_area_theme import TextAreaTheme
from textual.geometry import Region

from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.ui.actions import ACTIONS, SLASH, slash_commands
from tui_agent.ui.desktop import editor, opening
from tui_agent.ui.host import Choice
from tui_agent.ui.widgets.line_view import HintLine
from tui_agent.ui.widgets.prompt import CompletionList, Prompt, file_row


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    for name in ("api.py", "base.py", "models.py", "util.py"):
        (folder / name).write_text("def fetch(url):\n    return get(url)\n")
    return folder


class Held(ScriptedModel):
    """Says a first word, and the rest when it is let go on."""

    def __init__(self, session: Session) -> None:
        super().__init__([reply("Done.")] * 4)
        self.go_on = asyncio.Event()
        self.begun = asyncio.Event()
        session.models.model = self

    async def stream(self, request: Any) -> AsyncGenerator[Any, None]:
        self.begun.set()
        await self.go_on.wait()
        async for chunk in super().stream(request):
            yield chunk


async def held(it: Driven, words: str = "go on") -> Held:
    """A turn that runs until it is let go on or stopped."""
    model = Held(it.session)
    await it.press(*words, "enter")
    await it.until(model.begun.is_set, "the model was asked")
    return model


async def test_styles_are_worked_out_for_a_theme_and_not_for_a_key(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked_out: list[str] = []
    apply_css = TextAreaTheme.apply_css

    def noted(theme: TextAreaTheme, area: Prompt) -> None:
        worked_out.append(area.app.theme)
        apply_css(theme, area)

    monkeypatch.setattr(TextAreaTheme, "apply_css", noted)
    async with on_screen(workspace) as it:
        await it.press(*"abc")
        await it.shows("abc")
        worked_out.clear()
        await it.press(*"defg")
        await it.shows("abcdefg")
        assert worked_out == []
        before = it.one(Prompt).render_lines(Region(0, 0, 20, 1))
        it.app.use_theme("light")
        await it.until(lambda: it.app.theme in worked_out, "the styles of the new theme")
        assert it.one(Prompt).render_lines(Region(0, 0, 20, 1)) != before


def test_a_command_has_one_word_and_the_first_that_fits_begins_with_it() -> None:
    named = {"model", "new", "undo", "compact", "fork", "export", "theme", "help", "resume", "commit", "quit"}
    assert named <= SLASH.keys() and all(action.id in ACTIONS for action in SLASH.values())
    assert slash_commands("mo")[0][0] == "model"
    assert [name for name, _ in slash_commands("")][-1] == "exit", "Enter takes the first"
    assert "undo" in [name for name, _ in slash_commands("last apply")]


async def test_the_words_of_other_agents_do_what_they_say(workspace: Path) -> None:
    also = {"clear": "session.new", "cost": "session.context", "diff": "pane.review", "exit": "app.quit"}
    assert {word: SLASH[word].id for word in also} == also
    assert all(slash_commands(begun)[0][0] not in also for begun in ("", "c", "e"))
    async with on_screen(workspace) as it:
        await it.press(*"/diff", "enter")
        await it.until(lambda: it.session.state.layout.focus == "review", "the review")
        await it.press("f7", *"/cost", "enter")
        await it.shows("this session")


async def test_a_slash_offers_commands_and_does_the_chosen_one(workspace: Path) -> None:
    async with on_screen(workspace, [reply()]) as it:
        await it.press(*"/zooms")
        await it.press("backspace")
        await it.shows("/zoom")
        await it.press("enter")
        assert it.session.state.layout.zoomed == "chat" and it.one(Prompt).text == ""
        await it.press(*"/tod", "tab")
        assert it.one(Prompt).text == "/todos" and it.one(CompletionList).display
        await it.press("enter")
        assert it.session.state.layout.focus == "todos"
        await it.press("f7", *"/none such", "enter")
        await it.asked()
        assert it.session.state.turn.number == 1, "what is more than a name is a message"
        await it.press(*"/nonesuch", "enter")
        await it.shows("There is no command /nonesuch")
        assert it.session.state.turn.number == 1 and it.one(Prompt).text == "/nonesuch"


async def test_a_session_is_compacted_exported_forked_and_begun_by_typing(workspace: Path) -> None:
    went: list[Choice] = []

    async def reopen(choice: Choice) -> Session:
        raise AssertionError("the app is left before it opens another")

    async def switch(choice: Choice) -> None:
        went.append(choice)

    async with on_screen(workspace, [reply("One."), "What was said so far."], size=(80, 24)) as it:
        it.app.reopen, it.app.switch = reopen, switch
        await it.press(*"hello", "enter")
        await it.shows("One.")
        await it.press(*"/compact", "enter")
        await it.until(lambda: any(one.kind == "summary" for one in it.session.state.conversation.messages))
        await it.until(lambda: not it.session.state.turn.running)
        await it.press(*"/export", "enter")
        await it.shows("Export to a Markdown file")
        await it.press(*"said.md", "enter")
        await it.until((workspace / "said.md").exists)
        assert "hello" in (workspace / "said.md").read_text()
        await it.press(*"/fork", "enter")
        await it.until(lambda: went, "the copy")
        await it.press(*"/new", "enter")
        await it.until(lambda: len(went) == 2, "another")
        assert went[0].session not in ("", it.session.state.session.id) and went[1] == Choice("")
        assert it.session.state.turn.number == 1, "none of it was sent as a message"


async def test_files_that_are_worked_on_come_first_with_their_marks(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.session.files.ready()
        await it.session.files.open("util.py")
        it.session.journal.publish(
            e.GitStatusRead(is_repository=True, branch="main", marks={"models.py": " M"})
        )
        assert it.session.files.suggest("", 3) == ["util.py", "models.py", "api.py"]
        assert it.session.files.suggest("p", 2)[0] == "util.py"
        state = it.session.state
        assert "● open" in str(file_row("util.py", state)[1]) and "M changed" in str(
            file_row("models.py", state)[1]
        )
        await it.press("f7", *"see @")
        await it.shows("● open")


async def test_escape_closes_what_is_on_top_and_then_stops_the_turn(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        model = await held(it)
        await it.press(*"wait", "enter", *"my own @a")
        await it.asked()
        await it.press("escape")
        assert it.session.state.turn.running and not it.one(CompletionList).display, (
            "the list of files was on top"
        )
        await it.press("f5", "f9", "escape")
        assert it.session.state.turn.running and not it.session.state.layout.zoomed, (
            "a zoomed pane was on top"
        )
        await it.press("escape")
        await it.asked()
        assert it.session.state.turn.kind == "Interrupted"
        assert it.one(Prompt).text == "my own @a" and it.session.state.input.queue == ("wait",)
        offers = it.screen.query_one("#queue-offers", HintLine)
        assert offers.display
        await it.shows("drop")
        model.go_on.set()
        it.one(Prompt).set_value("")
        await it.press("enter")
        await it.until(lambda: it.session.state.turn.number == 2 and not it.session.state.turn.running)
        assert it.session.state.input.queue == () and it.session.state.turn.request == "wait"


async def test_what_waits_can_be_edited_or_dropped_and_a_message_after_a_stop_is_sent(
    workspace: Path,
) -> None:
    async with on_screen(workspace) as it:
        model = await held(it)
        await it.press(*"one", "enter", *"two", "enter")
        await it.asked()
        model.go_on.set()
        await it.press("escape", *"now", "enter")  # in one breath: it is not one more that waits
        await it.until(lambda: "now" in [message.text for message in it.session.state.chat.messages], "now")
        await it.until(lambda: not it.session.state.turn.running and not it.session.state.input.queue)
        await it.session.chat.set_queue(["one", "two"])
        await it.press("ctrl+o", "q")
        await it.asked()
        assert it.one(Prompt).text == "two" and it.session.state.input.queue == ("one",)
        await it.press("ctrl+o", "Q")
        await it.asked()
        assert it.session.state.input.queue == ()


async def test_a_change_that_is_being_written_takes_a_second_press(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await held(it)
        it.session.journal.publish(e.ReplyStreamed("message", "Here it is.", 900))
        await it.press("escape")
        await it.shows("Esc again to quit")
        assert it.session.state.turn.running
        await it.press("escape")
        await it.asked()
        assert it.session.state.turn.kind == "Interrupted"
        await it.shows("Here it is.")


async def test_escape_stops_a_command(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        stopped: list[bool] = []

        async def stop() -> None:
            stopped.append(True)

        it.session.commands.stop = stop
        await it.press("escape")
        assert not stopped, "nothing is running"
        it.session.journal.publish(e.CommandStarted("1", "sleep 9", "person", "trial", "none", 0.0))
        await it.press("escape")
        await it.asked()
        assert stopped


#: A text, the keys after it was typed and left by Esc, and what comes of it.
VIM = (
    ("one two three", "0dw", "two three"),
    ("one two three", "0wcwTWO", "one TWO three"),
    ("one two three", "bD", "one two "),
    ("one two three", "02x", "e two three"),
    ("one two three", "0d2w", "three"),
    ("one two three", "0f2", "one two three"),
    ("one two three", "0ftD", "one "),
    ("one two three", "bdb", "one three"),
    ("one two three", "0weiX", "one twXo three"),
    ("f(a, b)", "0fadi(", "f()"),
    ("f(a, b)", "0faci(x", "f(x)"),
    ("one two", "bdaw", "one"),
    ("one\ntwo\nthree", "ggdd", "two\nthree"),
    ("one\ntwo\nthree", "kdd", "one\nthree"),
    ("one\ntwo\nthree", "dd", "one\ntwo"),
    ("one\ntwo\nthree", "gg2dd", "three"),
    ("one\ntwo", "ggyyp", "one\none\ntwo"),
    ("one\ntwo", "ggddp", "two\none"),
    ("one\ntwo", "ggJ", "one two"),
    ("one\ntwo", "ggdj", ""),
    ("one", "oover", "one\nover"),
    ("one", "Oover", "over\none"),
    ("one", "Ax", "onex"),
    ("one", "Ix", "xone"),
    ("one", "0rX", "Xne"),
    ("one", "0~", "One"),
    ("one", "ccnew", "new"),
    ("one two", "0wvly$p", "one twotw"),
    ("one two", "0vld", "e two"),
    ("one two", "dbu", "one two"),
)


async def test_vims_keys_in_the_prompt(workspace: Path) -> None:
    async with on_screen(workspace, size=(80, 24), keys="vim") as it:
        prompt = it.one(Prompt)
        for text, keys, wanted in VIM:
            prompt.set_value(text)
            await it.press("escape", "A", "escape", *keys, "escape")
            assert prompt.text == wanted, (text, keys)


async def test_with_vims_keys_escape_leaves_insert_mode_first(workspace: Path) -> None:
    async with on_screen(workspace, keys="vim") as it:
        await held(it)
        await it.press(*"more", "escape")
        await it.shows("NORMAL")
        assert it.session.state.turn.running
        await it.press("escape")
        await it.asked()
        assert it.session.state.turn.kind == "Interrupted" and it.one(Prompt).text == "more"
        await it.press("space", "o")
        assert it.session.state.layout.focus == "todos", "space leads where nothing is inserted"


def test_which_editor_and_how_it_is_told_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "code --wait")
    assert editor() == ["code", "--wait"]
    monkeypatch.setenv("VISUAL", "vim")
    assert editor() == ["vim"]
    assert opening(["vim"], Path("/a b"), 3) == ["vim", "+3", "/a b"]
    assert opening(["code", "-w"], Path("/a"), 3) == ["code", "-w", "/a"]


async def test_with_nothing_to_undo_the_empty_prompt_gives_the_terminal_to_the_shell(tmp_path: Path) -> None:
    async with on_screen(tmp_path, size=(80, 24)) as it:
        await it.press("x", "ctrl+z")
        await it.until(lambda: not it.one(Prompt).text, "undone")
        assert not it.app._notifications
        await it.press("ctrl+z")
        await it.shows("Not suspended")
