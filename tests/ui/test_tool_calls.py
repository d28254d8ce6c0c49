"""Calls of tools on the screen: folded lines that open, and the question that a rule asks."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.screens import on_screen
from support.sessions import calls, model_of, reply
from support.trees import make_tree

from tui_agent.model.client import CallChunk, EndChunk, UsageChunk
from tui_agent.store.commands import CommandsSlice, RunningCommand
from tui_agent.store.state import Batch, ReplySlice, State, ToolUse, TurnSlice
from tui_agent.ui.dialogs.chooser import Chooser
from tui_agent.ui.widgets import prompt_lines
from tui_agent.ui.widgets.messages import CallLine, call_words, grouped
from tui_agent.ui.widgets.pane import GROUP
from tui_agent.ui.widgets.prompt_lines import PermissionLine, ProgressLine, fitted

HOSTILE = "[red]x[/]\x1b[31m"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "work", {f"src/m{n}.py": f"x = {n}\n" for n in range(5)})


def search(pattern: str) -> tuple[str, dict[str, str]]:
    return "search_text", {"pattern": pattern}


@pytest.mark.parametrize(
    ("name", "shown", "words"),
    [
        ("spawn_subtasks", "a, b, c", "proposed a, b, c"),
        ("spawn_subtasks", "a, b, c, d", "proposed 4 sub-tasks"),
        ("read_files", "a.py, b.py, c.py, d.py", "read 4 files"),
        ("run_command", "echo a, b, c, d", "ran echo a, b, c, d"),
    ],
)
def test_many_names_are_counted(name: str, shown: str, words: str) -> None:
    assert call_words(ToolUse("1", name, shown)) == words


async def test_a_run_of_reads_is_one_line_that_opens_by_enter_and_by_a_click(workspace: Path) -> None:
    asked = calls(*(search(f"x = {n}") for n in range(4)), (HOSTILE, {}), text="Looks.")
    async with on_screen(workspace, [asked, reply("Done.")], protocol="tools") as it:
        await it.press(*"look", "enter")
        await it.asked()
        await it.session.chat.finished()
        await it.until(lambda: len(it.app.screen.query(CallLine)) == 2, "two lines")
        run, bad = it.app.screen.query(CallLine)
        await it.shows("4 calls")
        assert "4 searches" in it.text and "src/m3.py:1" not in it.text
        run.focus()
        await it.press("enter")
        await it.until(lambda: "src/m3.py:1" in it.text, "what came of each")
        await it.press("enter")
        await it.until(lambda: "src/m3.py:1" not in it.text, "folded again")
        await it.pilot.click(bad)
        await it.until(lambda: "There is no function" in it.text, "the error")
        assert "\x1b" not in it.text


async def test_a_call_about_many_files_counts_them_until_it_is_opened(workspace: Path) -> None:
    changes = [{"path": f"src/n{n}.py", "content": f"y = {n}\n"} for n in range(6)]
    changed = calls(search("a, b, c, d, e, f"), ("propose_changes", {"changes": changes}))
    async with on_screen(workspace, [changed, reply("Done.")], protocol="tools", size=(89, 30)) as it:
        await it.press(*"change", "enter")
        await it.shows("changed 6 files +6 −0")
        await it.shows("searched for “a, b, c, d, e, f”")
        await it.session.chat.finished()
        await it.shows("tokens")  # the end of the turn
        it.app.screen.query(CallLine).last().focus()
        await it.press("enter")
        await it.shows("- src/n4.py")


def test_only_a_long_run_of_reads_that_went_well_is_one_line() -> None:
    def use(name: str, ok: bool = True) -> ToolUse:
        return ToolUse("1", name, ok=ok)

    reads, bad, change = [use("read_files")] * 3, use("read_files", False), use("propose_changes")
    assert [len(group) for group in grouped([*reads, bad, *reads, change, *reads[:2]])] == [3, 1, 3, 1, 1, 1]


async def test_a_question_shows_exactly_what_would_be_done_and_takes_a_reason(workspace: Path) -> None:
    answers = [calls(search("x = 1")), reply("Done.")]
    async with on_screen(
        workspace,
        answers,
        protocol="tools",
        interactive=True,
        overrides=("permissions.ask=search_text",),
    ) as it:
        await it.press(*"look", "enter")
        await it.until(lambda: it.one(PermissionLine).display, "the question")
        it.one(PermissionLine).focus()
        await it.press("enter")
        await it.until(lambda: isinstance(it.app.screen, Chooser), "the dialog")
        await it.until(lambda: '"pattern": "x = 1"' in it.text, "exactly what would be done")
        assert not [one for one in it.app.workers if one.group == GROUP], (
            "leaving the program would wait for it"
        )
        await it.press(*"yet to be seen", "enter")
        await it.until(lambda: not it.session.state.turn.running, "the turn's end")
        told = str(model_of(it.session).requests[-1].messages[-1]["content"])
        assert told == "Error: not done: the person did not allow it: yet to be seen."
        assert not it.one(PermissionLine).display
        assert it.session.state.permissions[-1].reason == "yet to be seen"


async def test_only_a_whole_yes_allows_a_call(workspace: Path) -> None:
    answers = [calls(search("x = 1")), reply("Done.")]
    async with on_screen(
        workspace, answers, protocol="tools", interactive=True, overrides=("permissions.ask=search_text",)
    ) as it:
        await it.press(*"look", "enter")
        await it.until(lambda: it.one(PermissionLine).display, "the question")
        assert not it.app._notifications, "the question is said once"
        it.one(PermissionLine).focus()
        await it.press("enter")
        await it.shows("Enter allows it once")
        await it.press("y", "e")
        await it.shows("Do not allow it: ye")
        assert "Allow this once" not in it.text
        await it.press("s", "enter")
        await it.until(lambda: not it.session.state.turn.running, "the turn's end")
        (decided,) = it.session.state.permissions
        assert (decided.answer, decided.reason) == ("once", "")


def test_all_but_the_newest_of_very_many_calls_are_one_line() -> None:
    uses = [ToolUse(str(n), "run_command" if n % 2 else "propose_changes", ok=n % 5 > 0) for n in range(60)]
    groups = grouped(uses)
    assert [len(group) for group in groups] == [56, 1, 1, 1, 1]
    assert [use for group in groups for use in group] == uses
    assert all(len(group) == 1 for group in grouped(uses[:8]))


async def test_a_turn_that_costs_much_says_how_far_it_is_and_asks_on_the_screen(workspace: Path) -> None:
    asks = [
        CallChunk(0, "c", "search_text", '{"pattern": "x"}'),
        UsageChunk(900, 100, 0, 0.7),
        EndChunk("tool_calls"),
    ]
    over = ["limits.ask_at_cost=1"]
    async with on_screen(
        workspace, [asks, asks, reply()], protocol="tools", interactive=True, overrides=over
    ) as it:
        await it.session.chat.submit("Look")
        await it.shows("This turn has cost $1.40")
        assert "step 2 · " in it.text and "2k tokens · $1.40 so far" in it.text
        it.one(PermissionLine).focus()
        await it.press("enter")
        await it.shows("Continue: do not ask again in this turn")
        await it.press("enter")
        await it.until(lambda: not it.session.state.turn.running, "the turn goes on to its end")
        assert it.session.state.turn.ok and len(model_of(it.session).requests) == 3
        await it.until(lambda: not it.one(ProgressLine).display, "nothing is being done")


PATH = "httpx/_client.py"
LIVE = [
    (ReplySlice(1, message="Hi", letters=7_200), 3, "answering · 5s · ~1.8k tokens · Esc stops"),
    (ReplySlice(1, reasoning="Well", letters=400), 3, "thinking · 5s · ~100 tokens · Esc stops"),
    (ReplySlice(1), 12, "answering · no response for 12s · Esc stops"),
    (
        ReplySlice(1, letters=72, writing=PATH, files=1),
        3,
        f"writing {PATH} · 1 file · 5s · ~18 tokens · Esc stops",
    ),
    (
        ReplySlice(1, letters=72, writing=f"{'deep/' * 20}a.py", files=3),
        3,
        "p/deep/deep/deep/a.py · 3 files · 5s · ",
    ),
]


async def test_what_the_model_does_is_told_with_the_time_and_what_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_screen(tmp_path, size=(80, 24)) as it:
        line, now = it.one(ProgressLine), [100.0]
        monkeypatch.setattr(prompt_lines.time, "monotonic", lambda: now[0])
        for number, (reply, heard, said) in enumerate(LIVE, 1):
            turn = TurnSlice(number, "streaming")
            line.show(State(turn=turn))
            now[0] += 5 - heard if heard < 5 else 0
            line.show(State(turn=turn, reply=reply))
            now[0] += heard
            line.show(State(turn=turn, reply=reply))
            shown = str(line.content)
            assert said in shown and len(shown) <= 78
        batch = Batch("batch1", "all", "docs/**", "do", 1, 30, left=("x",), now=("a",) * 12)
        line.show(State(turn=turn, batches=(batch,), reply=replace(reply, writing=PATH)))
        assert f"writing {PATH} · 3 of 12 files · " in str(line.content)
        begun = RunningCommand("1", "make", "person", "trial", "none", time.time() - 2, preparing=True)
        line.show(State(commands=CommandsSlice((begun,))))
        assert re.fullmatch(r"● make · begins · \d s · Esc stops\s*", str(line.content))
        reads = TurnSlice(9, "asking", reading=14)
        line.show(State(turn=reads))
        now[0] += 14
        line.show(State(turn=reads))
        assert str(line.content) == "● reading the prompt, 14 s · Esc stops"
        assert fitted("asking openai/m", (" · 12s", " · 9k"), " · Esc stops", 34) == (
            "asking openai/m · 12s · Esc stops"
        )
        assert fitted("a long command", (" · 12s",), " · Esc stops", 20) == "a long… · Esc stops"


async def test_a_wait_says_how_long_and_what_ends_it_and_its_reason_is_whole(tmp_path: Path) -> None:
    async with on_screen(tmp_path, size=(80, 24)) as it:
        why = "The provider's rate limit for requests of this model is reached, which is 50 in a minute"
        it.one(ProgressLine).show(State(turn=TurnSlice(1, "retrying", retry_seconds=8, retry_why=why)))
        await it.pilot.pause()
        text = " ".join(it.text.replace("▎", " ").split())
        assert f"Rate limit · again in 8 s · Esc gives up {why}" in text
