"""The status line: what fits, the most telling first; unknown is said as unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.scenes import scene
from support.screens import on_screen
from textual.widgets import OptionList

from tui_agent.context.known_files import KnownFile
from tui_agent.store.conversation import Usage, UsageSlice
from tui_agent.store.files import KnownSlice
from tui_agent.store.state import ModelSlice, SessionSlice, State, TurnSlice, WorkspaceSlice
from tui_agent.ui.keys.keymap import load_keys
from tui_agent.ui.panes.status import facts_line, hint_words, window_in_short, words_width

FULL = State(
    session=SessionSlice(rehearsal=True),
    model=ModelSlice(name="gpt-5", window=200_000, window_known=True, status="ready"),
    turn=TurnSlice(number=4),
    usage=UsageSlice(session=Usage(12_000, 400, 9_000, 0.021), context=12_400),
    workspace=WorkspaceSlice(
        indexing=False, is_repository=True, branch="main", ahead=2, behind=1, marks={"a": " M"}
    ),
    known=KnownSlice({"a": KnownFile("a", "0", 1, 1, freshness="disk")}),
)


def test_that_nothing_is_kept_is_said_on_any_line() -> None:
    why = "/some/folder/somewhere cannot be written (no space left on device): set another folder"
    state = State(session=SessionSlice(not_kept=why), model=ModelSlice(name="gpt-5"))
    assert facts_line(state, 60).plain == "nothing is saved · gpt-5 · indexing …"
    assert facts_line(state, 200).plain.startswith(f"nothing is saved · {why} · gpt-5")


def test_everything_when_there_is_room() -> None:
    assert facts_line(FULL, 300).plain == (
        "Rehearsal · turn 4 · 12.4k of 200k · cache 75% · $0.02 · main ↑2 ↓1 ±1 · ⚠ 1 stale"
    )


@pytest.mark.parametrize("width", range(0, 120, 7))
def test_never_wider_than_there_is_room(width: int) -> None:
    assert facts_line(FULL, width).cell_length <= width


def test_that_replies_are_recorded_is_never_dropped_first() -> None:
    assert facts_line(FULL, 12).plain == "Rehearsal"


def test_unknown_is_not_zero() -> None:
    unknown = State(
        usage=UsageSlice(session=Usage(10, 10, 0, None)), workspace=WorkspaceSlice(indexing=False)
    )
    assert facts_line(unknown, 100).plain == "no model"


def test_text_from_outside_is_text() -> None:
    state = State(model=ModelSlice(name="[red]m\x1b"), workspace=WorkspaceSlice(indexing=False))
    assert facts_line(state, 100).plain == "[red]m␛"


def test_hints_come_from_the_table_of_actions() -> None:
    keys = load_keys()
    words = hint_words(keys, "review", 80)
    assert [word.text for word in words][:2] == ["apply", "skip"] and words_width(keys, words) <= 80
    assert [word.action for word in hint_words(keys, "review", 28)] == ["app.palette", "app.help"]


async def test_notices_are_shown_once_and_kept(tmp_path: Path) -> None:
    async with on_screen(tmp_path) as it:
        await it.session.notice("Careful with [this]\x1b one", "warning")
        await it.shows("Careful with [this]␛ one")
        await it.press("ctrl+o", "n")
        await it.shows("warning")
        await it.session.notice("And this came meanwhile", "error")
        await it.shows("And this came meanwhile")
        await it.press("down")
        await it.session.notice("The last one")
        await it.shows("The last one")
        assert it.app.screen.query_one(OptionList).highlighted == 2  # what was chosen stays chosen


async def test_a_long_notice_is_a_short_toast_that_names_the_key_to_the_rest(tmp_path: Path) -> None:
    async with on_screen(tmp_path) as it:
        await it.session.notice(f"Left out: {', '.join(f'file{n:03}.txt' for n in range(99))}", "warning")
        await it.shows("Ctrl+O n shows all")
        assert "file005.txt" in it.text and "file090.txt" not in it.text
        await it.press("ctrl+o", "n")
        await it.shows("file090.txt")


async def test_the_hints_follow_the_focus(tmp_path: Path) -> None:
    async with on_screen(tmp_path) as it:
        assert "Enter send" in it.text.splitlines()[-1]
        await it.press("f3")
        await it.until(lambda: "/ find" in it.text.splitlines()[-1])
        await it.press("f5")
        await it.until(lambda: "/ find" not in it.text.splitlines()[-1])
        assert "apply" not in it.text.splitlines()[-1], "nothing waits, so that nothing is to be applied"


def test_a_key_is_told_once_where_a_pane_tells_its_own() -> None:
    words = [hint.action for hint in hint_words(load_keys(), "", 80, pending=True)]
    assert words[0] == "changes.apply_all" and len(set(words)) == len(words)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (32_768, "32k"),
        (131_072, "128k"),
        (128_000, "128k"),
        (40_960, "40k"),
        (200_000, "200k"),
        (1_000_000, "1M"),
        (512, "512"),
    ],
)
def test_a_window_is_said_as_models_are_told_by_it(tokens: int, said: str) -> None:
    assert window_in_short(tokens) == said


async def test_keys_that_a_pane_shows_below_itself_are_not_repeated(tmp_path: Path) -> None:
    """Its line is shown as soon as the pane has its height."""
    async with scene("graph", tmp_path, (80, 24)) as it:
        await it.shows(" f follow")
        await it.until(lambda: it.text.count("r run") == 1, "r run once")
