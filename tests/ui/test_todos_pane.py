from __future__ import annotations

from asyncio import Event

from support.panes import HOSTILE, NotedSession, PaneApp
from support.trees import until
from textual.widgets import Input

from tui_agent.edits.change import Change
from tui_agent.store.state import ReviewSlice, State, Todo
from tui_agent.ui.panes.todos import TodosPane
from tui_agent.ui.widgets.line_view import Rows

TODOS = (
    Todo("t1", "Fix syntax error", done=True),
    Todo("t2", "Add timeouts", details="wrap fetch() and push()", changes=("c1", "c2", "c3")),
    Todo("t3", "Write it up"),
)
CHANGES = tuple(Change(f"c{n}", 1, path, "edit") for n, path in ((1, "a.py"), (2, "a.py"), (3, "b.py")))


def listed(*todos: Todo) -> PaneApp:
    return PaneApp(TodosPane, NotedSession(State(todos=todos, review=ReviewSlice(CHANGES))))


async def test_todos_show_their_state_and_how_many_files_they_touch():
    app = listed(*TODOS)
    async with app.run_test(size=(22, 8)):
        lines = [line[1:].rstrip() for line in app.text.split("\n")]
        assert lines[0] == "▌✓ Fix syntax error"
        assert lines[1].split() == ["○", "Add", "2", "files"] and lines[2] == "   timeouts"
        assert str(app.pane.title_text) == "Todos 1/3"


async def test_keys_tick_remove_and_reorder():
    app = listed(*TODOS)
    async with app.run_test(size=(24, 8)) as pilot:
        await pilot.press("space", "down", "d", "K", "J")
        await pilot.pause()
        assert app.noted.calls == [
            ("todos.toggle", "t1"),
            ("todos.remove", "t2"),
            ("todos.move", "t2", -1),
            ("todos.move", "t2", 1),
        ]


async def test_a_todo_is_added_in_the_line_at_the_bottom():
    app = listed(*TODOS)
    async with app.run_test(size=(24, 8)) as pilot:
        await pilot.press("a", *"do it")
        assert app.query_one(Input).styles.padding.left == 1, "in line with the rows"
        await pilot.press("enter")
        await pilot.pause()
        assert app.noted.named("todos.add") == [("do it",)]
        assert not app.query_one(Input).display and app.query_one(Rows).has_focus


async def test_a_todo_is_edited_and_escape_leaves_it_as_it_was():
    app = listed(*TODOS)
    async with app.run_test(size=(24, 8)) as pilot:
        await pilot.press("down", "e")
        assert app.query_one(Input).value == "Add timeouts"
        await pilot.press("!", "enter")
        await pilot.press("e", "x", "escape")
        await pilot.pause()
        assert app.noted.named("todos.edit") == [("t2", "Add timeouts!")]
        assert app.query_one(Rows).has_focus


async def test_the_mouse_ticks_and_unfolds_details():
    app = listed(*TODOS)
    async with app.run_test(size=(40, 8)) as pilot:
        await pilot.click(Rows, offset=(1, 2))
        await pilot.click(Rows, offset=(8, 1))
        assert "wrap fetch()" not in app.text
        await pilot.click(Rows, offset=(8, 1))
        await pilot.pause()
        assert app.noted.named("todos.toggle") == [("t3",)]
        assert "wrap fetch() and push()" in app.text


async def test_an_empty_list_says_what_it_is_for_and_keys_do_nothing():
    app = listed()
    async with app.run_test(size=(40, 8)) as pilot:
        await pilot.press("space", "d", "e", "K")
        assert "Steps of the work" in app.text and app.noted.calls == []


async def test_hostile_text_stays_text():
    app = listed(Todo("t", HOSTILE, details=HOSTILE))
    async with app.run_test(size=(60, 8)) as pilot:
        await pilot.click(Rows, offset=(8, 0))
        await pilot.pause()
        assert app.text.count("[red]") == 2 and "\x1b" not in app.text


async def test_the_end_of_a_long_step_that_is_edited_is_in_sight():
    app = listed(Todo("t1", "a step that is longer than the pane is wide"))
    async with app.run_test(size=(24, 8)) as pilot:
        await pilot.press("e")
        await pilot.pause()
        assert app.text.split("\n")[-1].rstrip().endswith("pane is wide")


async def test_the_line_of_a_new_todo_stays_open_if_its_focus_is_late():
    app, late, handled = listed(*TODOS), Event(), Event()
    async with app.run_test(size=(24, 8)):
        line = app.query_one(Input)
        line.call_next(late.wait)  # it is focused before it has read the message about that
        app.pane.commands["add"]()
        await until(lambda: not app.query_one(Rows).has_focus)
        app.pane.call_later(handled.set)  # behind the message that the rows lost the focus
        await handled.wait()
        assert not line.has_focus
        late.set()
        await until(lambda: line.has_focus)
        assert line.display and app.focused is line
