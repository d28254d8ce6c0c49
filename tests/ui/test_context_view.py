"""The view of what the model has in view: figures, instruction files and why, the timeline; from the state alone."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace
from support.screens import on_screen
from support.sessions import reply
from support.trees import make_tree

from tui_agent.context.known_files import Touch
from tui_agent.store.conversation import Usage, UsageSlice
from tui_agent.store.files import KnownSlice
from tui_agent.store.state import InstructionFile, ModelSlice, State
from tui_agent.ui.dialogs.context import ContextView, rows


def text(state: State) -> str:
    return "\n".join("".join(piece for piece, _ in row) for row in rows(state))


def test_parts_share_cache_and_an_unknown_price() -> None:
    usage = UsageSlice(
        turn=Usage(1000, 10, 990, None),
        context=12_400,
        context_estimated=True,
        parts={"system": 2000, "files": 9000},
        prefix_share=1.0,
    )
    shown = text(State(model=ModelSlice(window=200_000, window_known=True), usage=usage))
    assert "about 12,400 tokens, 6% of the window of 200,000" in shown
    assert "planning" not in shown, "nobody was asked for one"
    planned = replace(usage, planning=Usage(700, 20, 0, 0.0021))
    assert "planning       700 tokens in, 0% from the cache, 20 out, $0.0021" in text(State(usage=planned))
    assert "99% from the cache" in shown and "unknown" not in shown and "9,000" in shown


def test_instructions_say_for_which_folder_and_why() -> None:
    files = (
        InstructionFile("AGENTS.md", "", "the root of the workspace", "h", 12),
        InstructionFile("src/AGENTS.md", "src", "for src/a.py", "h", 3),
        InstructionFile("x/[red]AGENTS.md", "x", "for x/a.py", left_out="ignored by git"),
    )
    shown = text(State(instructions=files))
    assert "src/AGENTS.md  for src/ · for src/a.py · 3 tokens" in shown
    assert "x/[red]AGENTS.md  ignored: ignored by git" in shown


def test_the_timeline_stands_newest_first() -> None:
    touches = (Touch("a.py", 1, "read", "h"), Touch("b.py", 2, "changed outside", "", active=False))
    shown = text(State(known=KnownSlice(touches=touches)))
    assert shown.index("b.py") < shown.index("a.py")


async def test_a_key_opens_it(tmp_path: Path) -> None:
    work = make_tree(tmp_path / "work", {"AGENTS.md": "Be brief.\n", "a.py": "x = 1\n"})
    async with on_screen(work, [reply("Fine.")]) as driven:
        await driven.session.chat.submit("Look at a.py")
        await driven.session.chat.finished()
        await driven.screen.do("session.context")
        await driven.until(lambda: isinstance(driven.app.screen, ContextView), "the view")
        await driven.shows("AGENTS.md  everywhere")
        await driven.press("escape")
        await driven.until(lambda: not isinstance(driven.app.screen, ContextView), "the view to close")
