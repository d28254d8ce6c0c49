"""The chat: sending, streaming, scrolling, mentions, pastes, the queue, next steps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from msgspec.structs import replace
from support.screens import Driven, on_screen
from support.sessions import ScriptedModel, model_of, reply
from textual import events
from textual.app import App
from textual.widget import AwaitMount, Widget
from textual.widgets import Static

from tui_agent.answers.plans import FileAction
from tui_agent.errors import TimedOut
from tui_agent.model.client import Abilities, Chunk, ModelRequest, TokenCount
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.conversation import ToolUse
from tui_agent.store.state import ActionSlice, ChatMessage, PlanSlice
from tui_agent.ui import bridge
from tui_agent.ui.markdown import message_text
from tui_agent.ui.markdown.message_text import MessageText
from tui_agent.ui.markdown.text_lines import TextLine
from tui_agent.ui.panes.chat import ChatPane
from tui_agent.ui.widgets import transcript
from tui_agent.ui.widgets.messages import STREAM_INTERVAL, CallLine, MessageBlock
from tui_agent.ui.widgets.prompt import CompletionList, Prompt
from tui_agent.ui.widgets.prompt_lines import NewBelow
from tui_agent.ui.widgets.transcript import Transcript

HOSTILE = "[red]x[/] [@click=app.quit]y\x1b[31m\u202e"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "my files").mkdir(parents=True)
    (folder / "api.py").write_text("def fetch(url):\n    return get(url)\n")
    (folder / "my files" / "notes.md").write_text("# Notes\n")
    return folder


async def say(it: Driven, words: str) -> None:
    await it.press(*words, "enter")
    await it.asked()
    await it.session.chat.finished()
    await it.pilot.pause()


async def test_enter_sends_and_the_answer_is_shown(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent is shown when the request is composed, or another key comes."""
    monkeypatch.setattr(bridge, "REQUEST_FIRST", 60.0)
    composes, goes_on = asyncio.Event(), asyncio.Event()

    class Slow(ScriptedModel):
        async def count(self, model: str, texts: Sequence[str], *, wait: bool = False) -> TokenCount:
            composes.set()
            await goes_on.wait()
            return await super().count(model, texts, wait=wait)

    def slow(session: Session) -> None:
        session.models.model = Slow([reply("Says hello.", message="Hello **you**.")])

    async with on_screen(workspace, prepare=slow) as it:
        await it.press(*"hi there", "enter")
        await composes.wait()
        assert it.one(Prompt).text == "" and "hi there" not in it.text
        await it.press("x")
        await it.shows("hi there")
        goes_on.set()
        await it.session.chat.finished()
        await it.shows("Says hello.")
        await it.shows("Hello you.")


async def test_a_message_before_the_model_is_ready_says_that_it_waits(workspace: Path) -> None:
    warm = asyncio.Event()

    class Cold(ScriptedModel):
        async def abilities(self, model: str) -> Abilities:
            await warm.wait()
            return await super().abilities(model)

    def cold(session: Session) -> None:
        session.models.model = Cold([reply("Says hello.")])
        session.journal.publish(e.ModelStatusChanged("starting"))

    async with on_screen(workspace, prepare=cold) as it:
        await it.press("h", "i", "enter")
        await it.shows("preparing the model")
        assert it.session.state.turn.phase == "starting"
        await it.shows(" hi")
        warm.set()
        await it.shows("Says hello.")


async def test_what_became_of_a_message_can_be_told_before_it_is_drawn() -> None:
    block = MessageBlock(ChatMessage(1, "agent", 1, "Done."), "1 file", False)
    block.show_facts("1 file · 1 applied")
    with App[None]()._context():
        *_, line = block.compose()
    assert isinstance(line, Static) and "1 applied" in str(line.content) and line.display


async def test_a_plan_and_an_outcome_that_come_before_a_message_is_drawn_are_shown() -> None:
    settings = ActionSlice(FileAction("Settings", ("conf/settings.py",)), state="asking")

    class ShownEarly(MessageBlock):
        def compose(self) -> Iterable[Widget]:
            yield from super().compose()
            self.show_plan(PlanSlice(1, "model", (settings,)))
            self.show_facts("1 change")

    class OneMessage(App[None]):
        def compose(self) -> Iterable[Widget]:
            yield ShownEarly(ChatMessage(1, "person", 1, "What is T?"))

    async with OneMessage().run_test() as pilot:
        texts = [str(one.render()) for one in pilot.app.query(Static)]
        assert any("0 of 1 file found" in one for one in texts)
        assert "1 change" in texts


async def test_calls_that_end_before_the_text_is_drawn_follow_it(workspace: Path) -> None:
    said = ChatMessage(1, "agent", 1, "I look.")
    async with on_screen(workspace) as it:
        block = MessageBlock()
        await it.app.screen.mount(block)
        block.finish(said, "1 file")
        block.show_calls(replace(said, calls=(ToolUse("1", "search_text", "x"),)))
        await it.until(lambda: block.query(MessageText), "the text")
        assert [type(one) for one in block.children][:2] == [MessageText, CallLine]


async def test_calls_that_end_while_a_part_of_the_text_is_mounted_follow_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ChatMessage(1, "agent", 1, "I look.", summary="A look")
    async with on_screen(workspace) as it:
        block = MessageBlock()
        await it.app.screen.mount(block)
        mount = block.mount

        def mounted(widget: Widget, **where: Any) -> AwaitMount:
            done = mount(widget, **where)
            if widget.has_class("summary"):
                block.show_calls(replace(said, calls=(ToolUse("1", "search_text", "x"),)))
            return done

        monkeypatch.setattr(block, "mount", mounted)
        block.finish(said, "")
        await it.until(lambda: len(block.query(MessageText)) == 2, "the text")
        assert [type(one) for one in block.children] == [MessageText, MessageText, CallLine]


async def test_a_new_line_does_not_send(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.press("a", "ctrl+j", "b", "shift+enter", "c")
        assert it.one(Prompt).text == "a\nb\nc"
        assert it.session.state.turn.number == 0


async def test_an_empty_message_is_not_sent(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.press("space", "enter")
        await it.asked()
        assert it.session.state.turn.number == 0


async def test_what_came_with_an_answer_is_counted(workspace: Path) -> None:
    change = {"path": "api.py", "todoIndex": 0, "edits": [{"search": "get(url)", "replace": "get(url, 5)"}]}
    answer = reply("Adds it.", todos=[{"text": "Add"}], fileChanges=[change])
    async with on_screen(workspace, [answer]) as it:
        await say(it, "change api.py")
        await it.shows("noted 1 todo")
        await it.shows("1 change · ")


async def test_an_error_of_the_model_is_said_in_the_chat(workspace: Path) -> None:
    async with on_screen(workspace, [TimedOut("The model was silent for 120 s", "try again")]) as it:
        await say(it, "hi")
        await it.shows("silent for 120 s")


async def test_text_from_outside_is_never_markup(workspace: Path) -> None:
    steps = [{"html": HOSTILE, "inputText": HOSTILE}]
    async with on_screen(workspace, [reply(HOSTILE, message=HOSTILE + " **b** `c`", nextSteps=steps)]) as it:
        await say(it, "[b]hi[/b]")
        assert "[b]hi[/b]" in it.text
        assert it.text.count("[red]x[/]") >= 2  # the message and the step; the summary is in the message
        assert "\x1b" not in it.text and "\u202e" not in it.text


async def test_a_digit_chooses_a_next_step(workspace: Path) -> None:
    steps = [{"html": "Run", "inputText": "continue"}, {"html": "Explain", "inputText": "why is that?"}]
    async with on_screen(workspace, [reply("Done.", nextSteps=steps)]) as it:
        await say(it, "go")
        await it.shows("2 Explain")
        await it.press("2")
        await it.pilot.pause()
        prompt = it.one(Prompt)
        assert prompt.text == "why is that?"
        for key in ("backspace", "ctrl+z"):
            await it.press(key)
            assert prompt.text == "", key
            await it.press("2")
            assert prompt.text == "why is that?"
        await it.press("end", "!", "1")
        assert prompt.text == "why is that?!1", "a choice that was looked at is a text like any other"


@pytest.mark.parametrize("how", ["keys", "burst", "digit and paste", "paste"])
async def test_a_message_that_begins_with_a_digit_is_no_choice(workspace: Path, how: str) -> None:
    words = "10 tests fail"
    async with on_screen(workspace, [reply("Done.", nextSteps=[{"html": "Run", "inputText": "run"}])]) as it:
        await say(it, "go")
        await it.shows("1 Run")
        if how == "keys":
            await it.press(*words)
        else:
            typed = {"burst": words, "digit and paste": "1", "paste": ""}[how]
            for letter in typed:
                it.app.post_message(events.Key("space" if letter == " " else letter, letter))
            if rest := words.removeprefix(typed):
                it.app.post_message(events.Paste(rest))
        await it.until(lambda: it.one(Prompt).text == words, words)


async def test_a_digit_without_a_step_is_typed(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.press("3", "space", "x")
        await it.until(lambda: it.one(Prompt).text == "3 x")


async def test_history_at_the_edges(workspace: Path) -> None:
    async with on_screen(workspace, [reply(), reply()]) as it:
        await say(it, "first")
        await say(it, "second")
        await it.press(*"draft", "up")
        assert it.one(Prompt).text == "second"
        await it.press("up")
        assert it.one(Prompt).text == "first"
        await it.press("down", "down")
        assert it.one(Prompt).text == "draft"


async def test_the_draft_is_handed_to_the_session(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.press(*"soon")
        await it.until(lambda: it.session.state.input.draft == "soon", "the draft")


async def test_a_draft_from_elsewhere_is_taken_while_nothing_is_typed(workspace: Path) -> None:
    async with on_screen(workspace, prepare=lambda session: session.chat.set_draft("typed already")) as it:
        assert it.one(Prompt).text == "typed already"
        it.session.chat.set_draft("another")
        await it.until(lambda: it.one(Prompt).text == "another")


async def test_a_mention_is_completed(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.session.files.ready()
        await it.press(*"see @api")
        await it.until(lambda: it.one(CompletionList).display, "the list of files")
        await it.press("tab")
        await it.pilot.pause()
        assert it.one(Prompt).text == "see @api.py "
        await it.press(*"and @notes", "enter")
        await it.until(lambda: it.one(Prompt).text == 'see @api.py and @"my files/notes.md" ')
        assert it.session.state.turn.number == 0


async def test_enter_after_another_word_sends_while_the_list_is_late(workspace: Path) -> None:
    async with on_screen(workspace, [reply("Hi.")]) as it:
        await it.session.files.ready()
        await it.press(*"@api")
        await it.until(lambda: it.one(Prompt).picking)
        it.one(Prompt).disable_messages(Prompt.Picking)  # the list hears of it too late
        await it.press("space", *"now", "enter")
        await it.until(lambda: it.session.state.turn.number == 1)
        assert it.session.state.chat.messages[0].text == "@api now"


async def test_escape_closes_the_list_of_files_only(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.session.files.ready()
        await it.press(*"@api")
        await it.until(lambda: it.one(CompletionList).display)
        await it.press("escape")
        await it.until(lambda: not it.one(CompletionList).display)
        assert it.one(Prompt).text == "@api"


async def test_a_paste_of_ten_megabytes_is_a_line_and_sent_once(workspace: Path) -> None:
    async with on_screen(workspace, [reply("Seen.")], overrides=("context.window=20000000",)) as it:
        text = "words and words\n" * 640_000
        it.one(Prompt).post_message(events.Paste(text))
        await it.pilot.pause()
        assert it.one(Prompt).value == "[pasted 10.2 MB, 640,000 lines]"
        await it.shows("[pasted 10.2 MB, 640,000 lines]")
        await it.press("enter")
        await it.shows("Seen.")
        (request,) = model_of(it.session).requests
        assert text.strip() in request.messages[-1]["content"]


async def test_a_paste_that_the_model_cannot_take_stays_in_the_prompt(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        it.one(Prompt).post_message(events.Paste("words and words\n" * 64_000))
        await it.pilot.pause()
        await it.press("enter")
        await it.shows("save it as a file")
        await it.until(lambda: it.one(Prompt).value == "[pasted 1.0 MB, 64,000 lines]")


async def test_messages_wait_while_a_turn_runs(workspace: Path) -> None:
    go_on = asyncio.Event()

    class Held(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
            await go_on.wait()
            async for chunk in super().stream(request):
                yield chunk

    def held(session: Session) -> None:
        session.models.model = Held([reply("One."), reply("Two.")])

    async with on_screen(workspace, prepare=held) as it:
        await it.session.chat.submit("first")
        await it.session.chat.submit("second thing")
        await it.shows("waits")
        go_on.set()
        await it.shows("Two.")


async def test_scrolled_up_it_stays_and_says_how_much_is_new(workspace: Path) -> None:
    long = "\n\n".join(f"line {n}" for n in range(80))
    async with on_screen(workspace, [reply("Long.", message=long), reply("Next.")], size=(80, 24)) as it:
        await say(it, "tell me")
        shown = it.one(Transcript)
        await it.until(lambda: shown.max_scroll_y > 20)
        await it.press("pageup", "pageup")
        await it.pilot.pause()
        at = shown.scroll_y
        await say(it, "more")
        assert shown.following  # one's own message leads to the end
        await it.press("pageup", "pageup")
        at = shown.scroll_y
        model_of(it.session).replies.append(reply("Third."))
        await it.session.chat.submit("from elsewhere")
        await it.session.chat.finished()
        await it.until(lambda: it.one(NewBelow).display, "how much is new")
        assert shown.scroll_y == at
        await it.press("ctrl+end")
        await it.until(lambda: shown.following and not it.one(NewBelow).display)


async def test_the_newest_messages_are_drawn_first_and_older_ones_where_there_is_room(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "AT_ONCE", 4)
    count = 5
    async with on_screen(workspace, [reply(f"Answer {n}.") for n in range(count)], size=(80, 24)) as it:
        for n in range(count):
            await it.session.chat.submit(f"question {n}")
            await it.session.chat.finished()
        await it.pilot.pause(0.2)
        pane = it.pane("chat")
        assert isinstance(pane, ChatPane)
        fresh = Transcript(it.session.chat)
        await it.screen.mount(fresh)
        fresh.show(it.session.state)
        assert len(fresh.children) == 4, "the newest first"
        await it.until(
            lambda: len(fresh.query(MessageBlock)) == 10, "the others, since there is room for them"
        )
        assert fresh.following
        numbers = [block.message.number for block in fresh.query(MessageBlock) if block.message]
        assert numbers == sorted(numbers)
        assert len(numbers) == it.session.state.chat.total == 10


async def test_reasoning_is_folded_until_asked_for(workspace: Path) -> None:
    from tui_agent.model.client import EndChunk, ReasoningChunk, TextChunk, UsageChunk

    answer = [
        ReasoningChunk("deep thoughts about it"),
        TextChunk('{"summary": "So."}'),
        UsageChunk(1, 1),
        EndChunk("stop"),
    ]
    async with on_screen(workspace, [answer]) as it:
        await say(it, "think")
        await it.shows("thinking ~6 tokens")
        assert "deep thoughts" not in it.text
        await it.press("ctrl+o", "6")
        await it.shows("deep thoughts about it")


async def test_copying_the_last_answer(workspace: Path) -> None:
    async with on_screen(workspace, [reply("Short.", message="The *whole* answer.")]) as it:
        await say(it, "hi")
        await it.press("ctrl+o", "Z")
        await it.until(lambda: it.app.clipboard == "The *whole* answer.")


async def test_a_reply_that_streams_becomes_its_message_where_it_is(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        journal = it.session.journal
        await journal.record(e.TurnStarted(1, "go"))
        journal.publish(e.ReplyStreamed("message", "# Title\n\nSome *te"))
        await it.shows("Some *te")
        live = next(block for block in it.screen.query(MessageBlock) if block.message is None)
        body = live.query_one(MessageText)
        journal.publish(e.ReplyStreamed("message", "xt*"))
        text = "# Title\n\nSome *text*, and the end."
        await journal.record(e.NoticeGiven("info", "a note between"), e.ReplyRead(1, "", text))
        await it.shows("Some text, and the end.")
        assert live.message is not None and live.message.text == text
        assert live.query_one(MessageText) is body and body.is_attached
        assert [block for block in it.screen.query(MessageBlock) if block.message is None] == []
        assert it.text.count("Title") == 1


async def test_while_a_reply_streams_it_can_be_clicked_selected_scrolled_and_looks_as_the_theme_has_it(
    workspace: Path,
) -> None:
    async with on_screen(workspace) as it:
        journal, chat = it.session.journal, it.one(Transcript)
        await journal.record(e.TurnStarted(1, "go"))

        async def grow(words: str) -> None:
            journal.publish(e.ReplyStreamed("message", words))
            last = words.split()[-1]
            await it.until(lambda: any(last in text.plain for text in it.screen.query(MessageText)), words)

        def place(words: str) -> tuple[int, int]:
            rows = (body.render_line(y).text for y in range(body.size.height))
            return next((row.index(words), y) for y, row in enumerate(rows) if words in row)

        await grow("See [here](http://x.y/z) and words.\n\n")
        await it.shows("and words.")
        body = it.screen.query(MessageText).last()
        await it.pilot.click(body, offset=place("here"))
        assert it.app.clipboard == "http://x.y/z"
        x, y = place("words")
        await it.pilot.mouse_down(body, offset=(x, y))
        await it.pilot.hover(body, offset=(x + 4, y))
        await it.pilot.mouse_up(body, offset=(x + 4, y))
        await grow("".join(f"line {number}\n\n" for number in range(60)))
        assert it.screen.get_selected_text() == "words"

        await it.until(lambda: "line 59" in it.text, "the end is followed")
        before = body.render_line(0)
        it.app.use_theme("light")
        await it.until(lambda: body.render_line(0) != before, "the other colours")
        await it.press("pageup")
        await it.until(lambda: "line 59" not in it.text, "a page up")
        above = chat.scroll_y
        await grow("".join(f"later {number}\n\n" for number in range(40)))
        await it.pilot.pause()
        assert chat.scroll_y == above and "later 39" not in it.text
        await it.pilot.resize_terminal(100, 40)
        await grow("the last")
        chat.follow()
        await it.shows("the last")


async def test_another_width_is_measured_at_once_near_the_view_and_later_elsewhere(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20 answers of 3,000 letters and more; back at the old width they look as before."""
    at_once: dict[int, TextLine] = {}
    threads = most_threads = 0
    get_height, line_height, in_background = (
        MessageText.get_content_height,
        TextLine.height,
        message_text.in_background,
    )

    def height_in_layout(text: MessageText, *asked: Any) -> int:
        def counted(line: TextLine, width: int) -> int:
            at_once[id(line)] = line
            return line_height(line, width)

        with monkeypatch.context() as patched:
            patched.setattr(TextLine, "height", counted)
            return get_height(text, *asked)

    async def in_thread(*work: Any) -> Any:
        nonlocal threads, most_threads
        threads += 1
        most_threads = max(most_threads, threads)
        try:
            return await in_background(*work)
        finally:
            threads -= 1

    monkeypatch.setattr(MessageText, "get_content_height", height_in_layout)
    async with on_screen(workspace) as it:
        journal, chat = it.session.journal, it.one(Transcript)
        for turn in range(1, 21):
            body = f"answer {turn}\n\n" + "word " * (600 if turn % 2 else 1_000)
            await journal.record(
                e.TurnStarted(turn, "go"), e.ReplyRead(turn, "", body), e.TurnEnded(turn, True)
            )

        def measured() -> bool:
            texts = list(it.screen.query(MessageText))
            newest = any("answer 20" in line.plain for text in texts for line in text._drawn.lines)
            return newest and all(
                text._ends
                == list(accumulate(line.height(text.content_size.width) for line in text._drawn.lines))
                for text in texts
            )

        await it.until(measured, "all of it")
        before, tall = it.text, chat.virtual_size.height
        monkeypatch.setattr(message_text, "in_background", in_thread)
        for size in ((90, 30), (160, 48)):
            at_once.clear()
            await it.pilot.resize_terminal(*size)
            letters = sum(len(line.plain) for line in at_once.values())
            assert letters <= 10_000, "of 80,000 letters only those near the view are measured in the layout"
            await it.until(measured, "all of it at this width")
            assert chat.following
        assert 0 < most_threads <= 6, "one text far from the view at a time, beside the few in view"
        await it.until(
            lambda: it.text == before and chat.virtual_size.height == tall, f"the old picture:\n{before}"
        )


async def test_a_reply_that_only_grows_lays_the_screen_out_once_a_drawing(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawings = layouts = 0
    show = MessageText.show

    async def drawn(body: MessageText, text: str, *, growing: bool = False) -> None:
        nonlocal drawings
        drawings += 1
        await show(body, text, growing=growing)

    def laid_out(_: object) -> None:
        nonlocal layouts
        layouts += 1

    async with on_screen(workspace) as it:
        journal = it.session.journal
        await journal.record(e.TurnStarted(1, "go"))
        journal.publish(e.ReplyStreamed("message", "begun\n\n"))
        await it.shows("begun")
        await it.pilot.pause(0.3)
        monkeypatch.setattr(MessageText, "show", drawn)
        it.screen.screen_layout_refresh_signal.subscribe(it.screen, laid_out)
        begun = monotonic()
        for number in range(40):
            journal.publish(e.ReplyStreamed("message", f"line {number}\n\n"))
            await asyncio.sleep(0.03)
        await it.shows("line 39")
        assert 4 < drawings < (monotonic() - begun) / STREAM_INTERVAL + 3, "ten times a second"
        assert layouts <= drawings + 2, "none for the lines around it"


async def test_keys_in_the_empty_prompt_decide_about_one_change(workspace: Path) -> None:
    """With words in the prompt, and after an undo that emptied it, the same keys edit the text."""
    file = workspace / "api.py"
    file.write_text("one\n\n\n\n\n\n\n\ntwo\n\n\n\n\n\n\n\nthree\n")
    edits = [{"search": word, "replace": word.upper()} for word in ("one", "two", "three")]
    answer = reply("Capitals.", fileChanges=[{"path": "api.py", "edits": edits}])
    async with on_screen(workspace, [answer], size=(80, 24)) as it:
        await say(it, "capitals")
        await it.shows("Ctrl+Y apply, Ctrl+K skip: api.py · change 1 of 3")
        await it.press(*"ab", "home", "ctrl+k")
        assert it.one(Prompt).text == "" and "change 1 of 3" in it.text
        await it.press("x", "ctrl+z")
        await it.until(lambda: not it.one(Prompt).text, "an empty prompt")
        await it.press("ctrl+y")
        await it.asked()
        assert it.one(Prompt).text and file.read_text().startswith("one")
        await it.press("ctrl+u", "ctrl+y", "ctrl+k")
        await it.asked()
        await it.until(lambda: file.read_text().startswith("ONE\n"), "the first change in the file")
        await it.shows("change 3 of 3")
        assert it.session.state.review.changes[0].hunks == ("applied", "skipped", "pending")
        await it.press("ctrl+y")
        await it.until(lambda: file.read_text().endswith("two\n\n\n\n\n\n\n\nTHREE\n"), "the third change")
        await it.until(lambda: "Shift+Tab changes the mode" in it.text, "the mode's key again")
        assert it.screen.arrangement.layout.focus == "chat"
