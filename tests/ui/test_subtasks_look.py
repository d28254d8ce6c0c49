from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tui_agent.store.graph import SubTask, faults
from tui_agent.ui.panes.subtasks import ViewOptions, moved_to, read_look, title, visible_tasks

CHAIN = (
    SubTask("a", "first", state="completed"),
    SubTask("b", "second", dependencies=("a",), state="running"),
    SubTask("c", "third", dependencies=("b",)),
    SubTask("d", "last", dependencies=("c", "a")),
)


def waits(tasks: tuple[SubTask, ...]) -> dict[str, tuple[str, ...]]:
    return {task.id: task.dependencies for task in tasks}


def test_done_ones_are_folded_away_with_what_led_to_them():
    assert waits(visible_tasks(CHAIN, ViewOptions(folded=True))) == {"b": (), "c": ("b",), "d": ("c",)}


def test_what_waits_for_a_hidden_one_stands_behind_what_that_one_waits_for():
    assert waits(visible_tasks(CHAIN, ViewOptions(words="st"))) == {"a": (), "d": ("a",)}


def test_words_are_looked_for_in_id_goal_and_state_and_all_must_be_there():
    found = {
        words: list(waits(visible_tasks(CHAIN, ViewOptions(words=words))))
        for words in ("C", "RUNNING b", "second a", "x")
    }
    assert found == {"C": ["a", "b", "c"], "RUNNING b": ["b"], "second a": [], "x": []}


def test_nothing_hidden_is_the_graph_itself():
    assert visible_tasks(CHAIN, ViewOptions()) == CHAIN


@given(st.lists(st.tuples(st.sets(st.integers(0, 7)), st.booleans()), min_size=1, max_size=8))
def test_what_is_seen_is_a_graph(rows):
    tasks = tuple(
        SubTask(
            f"t{n}",
            "",
            dependencies=tuple(f"t{k}" for k in sorted(needs) if k < n),
            state="completed" if done else "pending",
        )
        for n, (needs, done) in enumerate(rows)
    )
    assert faults(visible_tasks(tasks, ViewOptions(folded=True))) == []


def test_the_cursor_goes_to_what_runs_where_it_follows_and_where_its_task_is_gone():
    assert moved_to(ViewOptions("d"), CHAIN).cursor == "d"
    assert moved_to(ViewOptions("d", follows=True), CHAIN).cursor == "b"
    assert moved_to(ViewOptions("gone"), CHAIN).cursor == "b"
    still = tuple(replace(task, state="pending") for task in CHAIN)
    assert moved_to(ViewOptions("d", follows=True), still).cursor == "d"
    assert moved_to(ViewOptions("d"), ()).cursor == ""


def test_a_task_that_waits_for_the_user_is_first_and_counted():
    asking = replace(CHAIN[-1], id="asks", dependencies=(), state="ready", wanted=False)
    begun = replace(asking, id="begins", wanted=True)
    assert moved_to(ViewOptions("gone"), (*CHAIN, begun, asking)).cursor == "asks"
    words = title("Sub-tasks", (*CHAIN, begun, asking), len(CHAIN) + 2)
    assert words.startswith("Sub-tasks ") and "?1 ●1" in words, words


def test_what_was_saved_comes_back_and_anything_else_is_the_default():
    look = ViewOptions("c", folded=True, words="x", follows=True)
    assert read_look(look.saved()) == look
    assert read_look(None) == read_look({"cursor": 3}) == ViewOptions()
