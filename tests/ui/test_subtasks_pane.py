from __future__ import annotations

import time

from msgspec.structs import replace
from support.panes import HOSTILE, NotedSession, PaneApp
from textual.widgets import Input

from tui_agent.edits.change import Change, FileStep
from tui_agent.settings.loading import LoadedSettings
from tui_agent.settings.schema import LimitSettings, Settings, SubTaskSettings
from tui_agent.store.conversation import Usage, UsageSlice
from tui_agent.store.graph import SubTask
from tui_agent.store.state import ReviewSlice, State, SubTaskProgress, SubTasksSlice
from tui_agent.ui.graph.graph_view import GraphView
from tui_agent.ui.panes.subtasks import SubTasksPane

TASKS = (
    SubTask("api", "Give the client timeouts", ("api.py", "net.py"), state="running"),
    SubTask("ui", "Show them", state="completed", summary="It shows them."),
    SubTask("tests", "Test both", dependencies=("api", "ui"), auto_execute=True),
)
WIDE = (*TASKS, SubTask("a-much-longer-name", "", dependencies=("tests",)))


def drawn(*tasks: SubTask) -> PaneApp:
    return PaneApp(SubTasksPane, NotedSession(State(subtasks=SubTasksSlice(tasks))))


async def test_the_graph_stands_from_left_to_right():
    app = drawn(*TASKS)
    async with app.run_test(size=(28, 5)) as pilot:
        await pilot.pause()
        lines = [line.strip("▎ ") for line in app.text.split("\n")]
        assert lines[:2] == ["api ● ──┐", "ui  ✓ ──┴─▶ tests ◉"]
        assert str(app.pane.title_text) == "Sub-tasks 1/3 ●1"


async def test_a_narrow_pane_lists_the_tasks_by_layer():
    app = drawn(*WIDE)
    async with app.run_test(size=(24, 6)) as pilot:
        await pilot.pause()
        assert not app.query_one(GraphView).display
        assert [line[2:].split() for line in app.text.split("\n")[1:4]] == [
            ["●", "api", "running"],
            ["✓", "ui", "completed"],
            ["◉", "tests", "after", "1"],
        ]
        await pilot.resize_terminal(80, 6)
        await pilot.pause()
        assert app.query_one(GraphView).display and app.query_one(GraphView).has_focus


async def test_the_first_that_runs_is_chosen_and_its_details_are_told():
    app = drawn(*TASKS)
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.pause()
        assert "Give the client timeouts" in app.text and "files: api.py, net.py" in app.text
        await pilot.press("right")
        await pilot.pause()
        assert "waits for: api (running)" in app.text and "after: ui" in app.text and "ticked" in app.text
        await pilot.press("p")
        await pilot.pause()
        assert "It shows them." in app.text


async def test_keys_walk_and_skip_in_either_view():
    for size in ((60, 16), (20, 16)):
        app = drawn(*WIDE)
        async with app.run_test(size=size) as pilot:
            await pilot.press("down", "s")
            await pilot.pause()
            assert app.noted.named("subtasks.skip") == [("ui",)]


async def test_states_are_seen_as_they_change():
    app = drawn(*TASKS)
    async with app.run_test(size=(60, 5)) as pilot:
        app.show(State(subtasks=SubTasksSlice((SubTask("api", "", state="failed"), *TASKS[1:]))))
        await pilot.pause()
        assert "api ✗" in app.text


async def test_no_tasks_are_one_sentence():
    app = drawn()
    async with app.run_test(size=(40, 6)) as pilot:
        await pilot.press("s", "n", "p", "down")
        assert "Sub-tasks of the model" in app.text and app.noted.calls == []


async def test_hostile_text_stays_text():
    task = SubTask(HOSTILE, HOSTILE, (HOSTILE,), ("gone",), summary=HOSTILE)
    for size in ((20, 20), (100, 30)):
        app = drawn(task)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            assert "[red]" in app.text and "\x1b" not in app.text


def running(task: str, silent: float = 0, **fields) -> State:
    now = time.time()
    progress = SubTaskProgress("streaming", started=now - 90.5, heard=now - silent, turn=2, **fields)
    return State(subtasks=SubTasksSlice(TASKS, {task: progress}))


KEYS = {
    "r": "subtasks.run",
    "space": "subtasks.tick",
    "s": "subtasks.skip",
    "t": "subtasks.retry",
    "x": "subtasks.stop",
}


async def test_each_key_does_its_own_with_the_task_under_the_cursor():
    app = drawn(*TASKS)
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.press(*KEYS, "R", "X")
        await pilot.pause()
        assert [app.noted.named(call) for call in KEYS.values()] == [[("api",)]] * len(KEYS)
        assert app.noted.named("subtasks.run_ticked") == app.noted.named("subtasks.stop_all") == [()]


async def test_the_mouse_ticks_at_the_mark_and_presses_words():
    for size, tasks in (((60, 20), TASKS), ((24, 20), WIDE)):
        app = drawn(*tasks)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            graph = app.query_one(GraphView)
            view, at = "#layers", (1, 1)
            if graph.display and graph.canvas:
                node = graph.canvas.nodes["ui"]
                view, at = "GraphView", (1 + node.x + graph._mark_at(node), node.y)
            await pilot.click(view, offset=at)
            await pilot.click("HintLine", offset=(2, 0))
            await pilot.pause()
            assert (app.noted.named("subtasks.tick"), view) == (
                [("ui",)],
                "#layers" if size[0] < 40 else "GraphView",
            )
            assert app.noted.named("subtasks.run_ticked") == [()]


async def test_with_room_a_node_tells_its_time_and_what_it_does():
    app = drawn(*TASKS)
    async with app.run_test(size=(110, 20)) as pilot:
        app.show(running("api", tokens=14_200, cost=0.034, line="half of it"))
        await pilot.pause()
        assert app.line_with("api").startswith("▎ api ● 1:30 · half of it ")
        assert app.line_with("› half of it") and app.line_with("turn 2: answering")
        assert "tests ◉ waits for api" in app.text


async def test_a_row_tells_the_goal_in_the_cells_that_are_free():
    tasks = [SubTask("api", "Give the client timeouts everywhere"), SubTask("ui", f"Show {HOSTILE}")]
    app = drawn(*tasks)
    async with app.run_test(size=(110, 8)) as pilot:
        await pilot.pause()
        assert app.line_with("▎ api ○").rstrip().endswith("Give the client timeouts everywhere")
        assert "\x1b" not in app.text
        await pilot.resize_terminal(44, 8)
        await pilot.pause()
        assert "Give the client…" in app.text or "Give the clie" in app.text
        await pilot.resize_terminal(16, 8)
        await pilot.pause()
        assert "Give" not in app.text


async def test_one_without_a_word_is_shown_as_silent_by_its_mark_and_in_words():
    app = drawn(*TASKS)
    async with app.run_test(size=(110, 20)) as pilot:
        app.show(running("api", silent=65.5))
        await pilot.pause()
        assert "api ◌ silent for 1:05" in app.text
        await pilot.resize_terminal(20, 12)
        await pilot.pause()
        assert app.line_with("◌ api").endswith("silent")


async def test_what_failed_says_why_and_changes_outside_the_scope_are_named():
    failed = SubTask("api", "Do it", state="failed", reason="The provider said no: try later")
    beyond = SubTask("ui", "Do it", ("ui.py",), state="completed", changed=(FileStep("net.py", "a", "b"),))
    app = drawn(failed, beyond)
    async with app.run_test(size=(110, 20)) as pilot:
        await pilot.pause()
        assert "The provider said no: try later" in app.text and str(app.pane.title_text).endswith("✗1")
        await pilot.press("n")
        await pilot.pause()
        assert "changed beside its files: net.py" in app.text


async def test_the_clock_ticks_only_while_something_runs():
    app = drawn(*TASKS)
    async with app.run_test(size=(60, 16)):
        ticker = app.query_one(SubTasksPane).ticker
        assert ticker.timer is None
        app.show(running("api"))
        timer = ticker.timer
        assert timer is not None
        app.show(running("api", line="more"))
        assert ticker.timer is timer
        app.show(State(subtasks=SubTasksSlice(TASKS)))
        assert ticker.timer is None


async def test_a_change_of_state_moves_no_node():
    app = drawn(*TASKS)
    async with app.run_test(size=(110, 16)) as pilot:
        app.show(running("api"))
        await pilot.pause()
        canvas = app.query_one(GraphView).canvas
        app.show(running("api", line="more", tokens=5))
        app.show(State(subtasks=SubTasksSlice((replace(TASKS[0], state="completed"), *TASKS[1:]))))
        await pilot.pause()
        assert app.query_one(GraphView).canvas is canvas


async def test_done_ones_are_hidden_and_shown_again():
    app = drawn(*TASKS)
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.press("z")
        await pilot.pause()
        assert not app.line_with("ui  ") and str(app.pane.title_text) == "Sub-tasks 1/3 ●1 · 1 hidden"
        assert app.noted.state.layout.place["subtasks"]["folded"] is True
        await pilot.press("z")
        await pilot.pause()
        assert "ui" in app.line_with("✓")


async def test_a_filter_narrows_while_it_is_typed_and_goes_with_escape():
    app = drawn(*TASKS)
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.press("slash", *"both")
        await pilot.pause()
        assert (
            str(app.pane.title_text).endswith("2 hidden")
            and app.query_one(SubTasksPane).look.cursor == "tests"
        )
        await pilot.press("enter", "s")
        await pilot.pause()
        assert app.noted.named("subtasks.skip") == [("tests",)]
        await pilot.press("slash", "escape")
        await pilot.pause()
        assert app.query_one(SubTasksPane).look.words == "" and not app.query_one(Input).display


async def test_the_cursor_keeps_to_what_runs_until_it_is_moved():
    app = drawn(*TASKS)
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.press("n", "n", "f")
        assert app.query_one(SubTasksPane).look.cursor == "api"
        ended = (replace(TASKS[0], state="completed"), TASKS[1], replace(TASKS[2], state="running"))
        app.show(State(subtasks=SubTasksSlice(ended)))
        assert app.query_one(SubTasksPane).look.cursor == "tests"
        await pilot.press("p")
        assert (app.query_one(SubTasksPane).look.cursor, app.query_one(SubTasksPane).look.follows) == (
            "ui",
            False,
        )


async def test_how_it_is_looked_at_is_kept_with_the_session():
    app = drawn(*TASKS)
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.press("n", "n", "z")
        await pilot.pause()
        kept = app.noted.state
    again = PaneApp(SubTasksPane, NotedSession(kept))
    async with again.run_test(size=(60, 16)):
        assert (again.query_one(SubTasksPane).look.cursor, again.query_one(SubTasksPane).look.folded) == (
            "tests",
            True,
        )


async def test_how_they_begin_and_what_is_used_of_the_limits_stand_above():
    app = drawn(*TASKS)
    limits = LimitSettings(session_tokens=20_000, session_cost=2)
    settings = Settings(limits=limits, subtasks=SubTaskSettings("auto", 2, max_tokens=9000))
    app.noted.loaded = LoadedSettings(settings)
    app.noted.state = replace(
        app.noted.state, usage=UsageSlice(session=Usage(input=9000, output=500, cost=0.25))
    )
    async with app.run_test(size=(100, 16)) as pilot:
        await pilot.pause()
        line = app.line_with("1 of 2 run · starts automatically")
        assert "9.5k of 20k tokens, $0.25 of $2 · 9k tokens, 30 min each" in line
        await pilot.resize_terminal(30, 16)
        await pilot.pause()
        assert app.line_with("1 of 2 run").endswith("$0.25/$2")


async def test_its_changes_are_gone_to_or_said_to_be_none():
    app = drawn(*TASKS)
    changes = (
        Change("c1", 1, "a.py", "edit", hunks=("pending",), tasks=("ui",)),
        Change("c2", 1, "b.py", "edit", hunks=("applied", "pending"), tasks=("api", "ui")),
    )
    app.noted.state = replace(app.noted.state, review=ReviewSlice(changes))
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.press("v")
        await pilot.pause()
        assert app.noted.state.layout.place["review"] == {"change": "c2", "hunk": 1}
        await pilot.press("right", "v")
        await pilot.pause()
        ((said,),) = app.noted.named("notice")
        assert "No change of the sub-task tests" in said and "nothing yet" in said
