"""What a start is made of, counted: imports before the first frame and before the first key, styles looked up, layouts,
cells drawn, panes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.sessions import open_session, reply
from textual import events
from textual._compositor import Compositor
from textual.app import App
from textual.css.stylesheet import Stylesheet
from textual.screen import Screen
from textual.widgets import TextArea

from tui_agent.session.session import Session
from tui_agent.ui.app import WorkspaceApp
from tui_agent.ui.layout import container
from tui_agent.ui.layout.container import PaneContainer
from tui_agent.ui.panes import PANES, RegisteredPane
from tui_agent.ui.textual_patches.spans import PiecesUpdate
from tui_agent.ui.widgets.pane import Pane
from tui_agent.workspace.early_start import start_ahead

SIZE = (160, 48)
SCREEN = SIZE[0] * SIZE[1]
#: What belongs into a child, or is imported when something asks for it.
HEAVY = (
    "litellm tiktoken openai pydantic httpx git watchfiles xml.sax http.client"
    " rapidfuzz json_repair jsonschema_rs unidiff tomlkit"
)
#: Our packages of which something is imported when keys are taken, and when every pane is filled.
OURS = (
    "answers checks cli context control debug_log edits errors files git headless log model planning processes review"
    " session settings store subtasks turn ui workspace"
)
#: What is imported when somebody begins to write, and not before.
FOR_A_TURN = ("tui_agent.turn.turn", "tui_agent.subtasks.scheduler", "tui_agent.ui.markdown.message_text")
#: Starts the screen over a new session by the command line, and says what was imported at which moment.
STARTING = """
import asyncio, gc, json, sys
from pathlib import Path
from types import ModuleType

from tui_agent import cli
from tui_agent.headless.arguments import ScreenOptions

seen, pids = {}, []

async def opened():
    seen["first frame"] = sorted(sys.modules)
    await asyncio.sleep(0)
    seen["next round"] = sorted(sys.modules)
    session = await open_session()
    assert session.workspace.child.pid == pids[0], "the child that was started is the session's"
    start = session.start_services
    async def services():
        seen["services"] = [pane.ID for pane in app.workspace_screen.workspace.panes]
        await start()
    session.start_services = services
    return session

async def main():
    global app
    from tui_agent.ui.app import WorkspaceApp
    app = WorkspaceApp(opened)
    async with app.run_test() as pilot:
        focus_pane = app.workspace_screen.focus_pane
        def focused(name):
            seen.setdefault("first key", sorted(sys.modules))
            focus_pane(name)
        app.workspace_screen.focus_pane = focused
        while not (app.workspace_screen.ready and gc.isenabled()):
            await pilot.pause(0.01)
        seen["panes"] = sorted(sys.modules)
        seen["frozen"] = gc.get_freeze_count()
        told = []
        app.session.subscribe(lambda event, state: told.append(state.model.status))
        await app.session.files.ready()
        await pilot.press("h")
        while not app.session.state.input.draft:
            await pilot.pause(0.01)
        seen["one letter"], seen["ready"] = told.copy(), sorted(sys.modules)
        from tui_agent.files import sensitive_paths
        globs = [value for value in vars(sensitive_paths).values() if isinstance(value, sensitive_paths._Names)]
        seen["globs"] = [len(globs) > 5, *("match" in vars(each) for each in globs)]
        ours = [vars(module) for name, module in sys.modules.items() if name.startswith("tui_agent.")]
        late = [value for names in ours for value in names.values() if type(value).__name__ == "LazyRegex"]
        seen["late"] = [len(late) > 20, *(each.pattern for each in late if "compiled" in vars(each))]
        await pilot.press("i")
        while not (told[-1] == "ready" and set(sys.argv[2:]) <= set(sys.modules)):
            await pilot.pause(0.01)
    await app.session.close()

def run_app(opening, *, loop, at_last, **options):
    global open_session
    open_session = opening
    with loop:
        loop.run(main())
        loop.run(at_last())
    return 0

class Screen(ModuleType):
    "In the place of `ui.run`, which needs a terminal."

    def __getattr__(self, name):
        if name != "run_app":
            raise AttributeError(name)
        seen["child"] = sorted(child_started)
        return run_app

from tui_agent.processes import child
spawn, child_started = child.spawn, set()

async def spawned(module, env):
    process = await spawn(module, env)
    pids.append(process.pid)
    child_started.update(sys.modules)
    return process

child.spawn = spawned
cli.needs_a_terminal = lambda: None
sys.modules["tui_agent.ui.run"] = Screen("tui_agent.ui.run")
cli.open_screen(ScreenOptions(Path(sys.argv[1])))
print(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Which modules there were at the first frame, at the first key, and when every pane was there."""
    home = tmp_path_factory.mktemp("home")
    done = subprocess.run(
        [sys.executable, "-c", STARTING, str(tmp_path_factory.mktemp("shop")), *FOR_A_TURN],
        env={
            **os.environ,
            "TUI_AGENT_HOME": str(home),
            "TMPDIR": str(home),  # without sessions
            "TUI_AGENT_MODEL": "openai/gpt-4o",  # one that is asked directly: litellm takes seconds
            "OPENAI_API_KEY": "sk",
        },
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    told = json.loads(done.stdout)
    assert told.pop("frozen") > 10_000, "what the start made is not looked through again"
    assert set(told.pop("one letter")) == {"idle"}, "the model's process waits for a message"
    assert told.pop("services") == ["chat"], "the folder is listed while the other panes are made"
    assert told["globs"].pop(0) and not any(told.pop("globs")), (
        "globs become expressions when a path is first asked about"
    )
    assert told["late"].pop(0) and not any(told.pop("late")), "expressions are compiled when they are used"
    return {moment: set(names) for moment, names in told.items()}


def test_the_first_frame_needs_no_session_and_no_pane(seen: dict[str, set[str]]) -> None:
    late = (
        "tui_agent.headless.running_sessions",
        "tui_agent.session.",
        "tui_agent.store.state",
        "tui_agent.store.events",
        "tui_agent.files.sensitive_paths",
        "tui_agent.edits.",
        "tui_agent.turn.",
        "tui_agent.ui.plain_screen",
        "tui_agent.ui.panes.",
        "sqlite3",
        "textual.widgets._text_area",
    )
    assert [name for name in seen["first frame"] if name.startswith(late)] == []


def test_the_workspace_child_is_started_before_the_screen_is_imported(seen: dict[str, set[str]]) -> None:
    assert "tui_agent.cli" in seen["child"] and "textual" not in seen["child"]


def test_the_opening_has_its_turn_while_the_chat_is_imported(seen: dict[str, set[str]]) -> None:
    assert "tui_agent.ui.editor.writing_area" in seen["next round"]
    assert "tui_agent.ui.panes.chat" not in seen["next round"]


def test_the_first_key_needs_no_turn_and_no_pane_but_the_chat(seen: dict[str, set[str]]) -> None:
    assert "tui_agent.ui.panes.chat" in seen["first key"]
    late = {
        f"tui_agent.ui.panes.{name}" for name in ("files", "plan", "buffers", "review", "todos", "subtasks")
    }
    assert seen["first key"] & (late | {"tui_agent.turn.turn", "tui_agent.ui.dialogs.sessions"}) == set()
    assert [
        name for name in seen["first key"] if name.startswith(("tui_agent.sandbox.", "html.entities"))
    ] == []


def test_of_turns_and_tools_the_first_key_needs_what_is_small(seen: dict[str, set[str]]) -> None:
    for moment in ("first key", "panes"):
        found = {name for name in seen[moment] if name.startswith(("tui_agent.turn.", "tui_agent.tools."))}
        turn = {f"tui_agent.turn.{name}" for name in ("context", "model_choice", "pastes")}
        assert found == {*turn, "tui_agent.tools.tool"}, moment
        packages = {name.split(".")[1] for name in seen[moment] if name.startswith("tui_agent.")}
        # The search for secrets may have begun. Extensions are read after the first key.
        later = {"sandbox", "extensions", "places"} if moment == "panes" else {"sandbox"}
        assert packages - later == {*OURS.split(), "tools"}, moment  # the values of a call


def test_what_a_turn_needs_waits_for_a_message(seen: dict[str, set[str]]) -> None:
    assert seen["ready"] & {*FOR_A_TURN, "markdown_it", "pygments", "frizbee"} == set()


def test_what_is_heavy_is_not_in_the_process_of_the_screen(seen: dict[str, set[str]]) -> None:
    assert seen["ready"] & set(HEAVY.split()) == set()


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """For each update of a screen its first row, and how many cells were written."""
    updates: list[tuple[str, int]] = []
    display = App._display

    def displayed(app: App[object], screen: Screen[object], update: object) -> None:
        row = app.screen._compositor.render_strips()[0]
        updates.append(("".join(segment.text for segment in row), cells(update)))
        display(app, screen, update)  # ty: ignore[invalid-argument-type]

    monkeypatch.setattr(App, "_display", displayed)
    return updates


async def test_the_first_frame_has_its_titles_and_little_is_drawn_again(drawn: list[tuple[str, int]]) -> None:
    opening = asyncio.Event()

    async def never() -> Session:
        await opening.wait()
        raise AssertionError("nobody opens it")

    async with WorkspaceApp(never).run_test(size=SIZE) as pilot:
        await pilot.pause(0.1)
    assert "Files" in drawn[0][0] and "Chat" in drawn[0][0]
    # Textual itself draws a screen twice at the least.
    assert sum(count for _, count in drawn) <= 3 * SCREEN


async def test_the_first_frame_is_drawn_before_the_session_is_imported(drawn: list[tuple[str, int]]) -> None:
    opening, cells_before = asyncio.Event(), list[int]()

    async def opened() -> Session:
        cells_before.append(sum(count for _, count in drawn))
        opening.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody opens it")

    async with WorkspaceApp(opened).run_test(size=SIZE):
        await opening.wait()
    assert cells_before[0] >= SCREEN


async def test_an_early_key_is_drawn_before_the_next_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the line of the opening; the chat's first frame would take more than the time until a key has to be seen."""
    shown, drawn = list[str](), asyncio.Event()

    def displayed(app: App[object], screen: Screen[object], update: object) -> None:
        pieces = update.pieces if isinstance(update, PiecesUpdate) else ()
        shown.extend(piece.strip.text.strip() for piece in pieces)
        drawn.set()

    async def never() -> Session:
        await asyncio.Event().wait()
        raise AssertionError("nobody opens it")

    app = WorkspaceApp(never)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(0.1)
        monkeypatch.setattr(App, "_display", displayed)
        monkeypatch.setattr(app.screen, "_draw_frame_later", lambda seconds, put_off: None)
        app.screen._update_timer.stop()
        app.post_message(events.Key("x", "x"))
        await asyncio.wait_for(drawn.wait(), 5)  # `pilot.pause` would draw a frame
        assert shown == ["opening …  x"]
        monkeypatch.undo()


async def test_a_start_looks_up_few_styles_lays_out_seldom_and_draws_little_again(
    tmp_path: Path, drawn: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            done[name] += 1
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, counted)

    count(Stylesheet, "apply")
    count(Compositor, "reflow")
    count(container, "areas")
    gate = asyncio.Event()
    async with open_session(tmp_path, services=False) as session:

        async def opened() -> Session:
            await gate.wait()
            return session

        app = WorkspaceApp(opened)
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause(0.1)
            assert done["apply"] <= 35, "the first frame has a widget for what is seen in it"
            drawn.clear()
            gate.set()
            while not app.workspace_screen.ready:
                await pilot.pause(0.01)
            # One screen for the chat and the status line, one for all other panes, and what appears in them later.
            assert sum(count for _, count in drawn) <= 3.2 * SCREEN
            # 75 widgets, some twice, and the parts of those that are seen. A slow machine lays out a few more times.
            assert done["apply"] <= 140 and done["reflow"] <= 18 and done["areas"] <= 4


async def test_the_pane_that_had_the_focus_comes_first_and_has_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    came: list[str] = []
    put = PaneContainer.put

    async def noted(workspace: PaneContainer, pane: Pane) -> None:
        came.append(pane.ID)
        await put(workspace, pane)

    monkeypatch.setattr(PaneContainer, "put", noted)
    async with open_session(tmp_path, services=False) as session:
        session.set_layout(replace(session.state.layout, focus="review", zoomed="review"))

        async def opened() -> Session:
            return session

        app = WorkspaceApp(opened)
        async with app.run_test(size=SIZE) as pilot:
            while not app.workspace_screen.ready:
                await pilot.pause(0.01)
            review = app.workspace_screen.workspace.pane("review")
            assert came[:2] == ["chat", "review"] and len(came) == len(PANES)
            assert session.state.layout.zoomed == "review"
            assert review is not None and review.has_focus_within


async def test_what_was_typed_early_is_in_the_input_before_other_panes_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, seen = asyncio.Event(), {}
    put, load = PaneContainer.put, RegisteredPane.load

    def typed() -> str:
        return "".join(prompt.text for prompt in app.workspace_screen.query(TextArea))

    async def noted(workspace: PaneContainer, pane: Pane) -> None:
        seen[pane.ID] = typed()
        await put(workspace, pane)

    def noted_before(pane: RegisteredPane) -> type[Pane]:
        seen[f"import of {pane.id}"] = typed()
        return load(pane)

    monkeypatch.setattr(PaneContainer, "put", noted)
    monkeypatch.setattr(RegisteredPane, "load", noted_before)
    monkeypatch.setattr("tui_agent.ui.screen.KEYS_FIRST", 60.0)  # whatever the load of the machine
    async with open_session(tmp_path, services=False) as session:

        async def opened() -> Session:
            await gate.wait()
            return session

        app = WorkspaceApp(opened)
        async with app.run_test(size=SIZE) as pilot:
            for letter in "early":
                app.post_message(events.Key(letter, letter))
            while app.keyboard.text != "early":
                await pilot.pause(0.01)
            gate.set()
            while not app.workspace_screen.ready:
                await pilot.pause(0.01)
            assert seen.pop("chat") == "" and set(seen.values()) == {"early"}
            assert "import of files" in seen


@pytest.mark.parametrize(
    ("keys", "before", "after"), [(("f8",), "one", "two"), (("ctrl+o", "u"), "two", "one")]
)
async def test_keys_of_a_pane_that_is_not_mounted_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...], before: str, after: str
) -> None:
    file = tmp_path / "a.py"
    file.write_text("one\n")
    change = {"path": "a.py", "edits": [{"search": "one", "replace": "two"}]}
    mounting, typed, put = asyncio.Event(), asyncio.Event(), PaneContainer.put
    begin = asyncio.Event()

    async def put_late(workspace: PaneContainer, pane: Pane) -> None:
        if pane.ID == "review":
            mounting.set()
            await typed.wait()
        await put(workspace, pane)

    monkeypatch.setattr(PaneContainer, "put", put_late)
    async with open_session(tmp_path, [reply(fileChanges=[change])]) as session:
        await session.chat.submit("Change it")
        await session.chat.finished()
        if before == "two":
            await session.review.apply()
        name = session.state.session.id
    assert file.read_text().strip() == before
    async with open_session(tmp_path, session=name, services=False) as session:

        async def opened() -> Session:
            await begin.wait()
            return session

        app = WorkspaceApp(opened)
        async with app.run_test(size=SIZE) as pilot:
            begin.set()
            await mounting.wait()
            for key in (*keys, "x"):
                app.post_message(events.Key(key, key if len(key) == 1 else None))
            try:
                while app.keyboard.handled < len(keys) - 1 or not app.keyboard.text.endswith("x"):
                    await pilot.pause(0.01)
            finally:
                typed.set()
            while app.workspace_screen.query_one(TextArea).text != "x":
                await pilot.pause(0.01)
            while file.read_text().strip() != after or not app.workspace_screen.ready:
                await pilot.pause(0.01)


async def test_a_child_that_was_started_for_something_else_is_ended(tmp_path: Path) -> None:
    here, other = tmp_path / "here", tmp_path / "other"
    here.mkdir()
    for started_for in ((other, ""), (here, "filters that were trusted then")):
        ahead = await start_ahead(*started_for)
        async with open_session(here, services=False, ahead=ahead) as session:
            assert ahead.process.pid is None and ahead.process.state == "closed"
            assert session.workspace.child is not ahead.process


def cells(update: object) -> int:
    """How many cells an update of the screen writes."""
    return sum(piece.strip.cell_length for piece in update.pieces) if isinstance(update, PiecesUpdate) else 0
