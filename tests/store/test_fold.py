"""Events fold to one state; what an event does not touch stays the same object."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import pytest

from tui_agent.answers.plans import FileAction
from tui_agent.answers.values import NextStep
from tui_agent.context.known_files import KnownFile
from tui_agent.edits.change import Change
from tui_agent.planning.chain import Attempt
from tui_agent.store import events as e
from tui_agent.store.conversation import Usage
from tui_agent.store.events import fold
from tui_agent.store.graph import SubTask
from tui_agent.store.state import State, Todo

BASES = (e.Event, e.Lasting, e.Growing, e.Passing)


def event_types() -> list[type[e.Event]]:
    found = [value for value in vars(e).values() if inspect.isclass(value) and issubclass(value, e.Event)]
    return [event for event in found if event not in BASES]


def test_every_event_is_applied() -> None:
    for event in event_types():
        assert "apply" in vars(event), event.__name__


def test_the_log_keeps_every_event_but_those_that_pass() -> None:
    kept = {event.__name__ for event in event_types() if not issubclass(event, e.Passing)}
    assert kept == {*e.LASTING, *e.GROWING} and not e.LASTING.keys() & e.GROWING


def started(turn: int = 1, request: str = "Add a timeout") -> list[e.Event]:
    return [e.SessionStarted("s", "/w"), e.TurnStarted(turn, request)]


def test_an_untouched_slice_stays_the_same_object() -> None:
    before = fold(started())
    after = e.DraftChanged("half a word").apply(before)
    assert after.input.draft == "half a word"
    for name in State.__struct_fields__:
        if name != "input":
            assert getattr(after, name) is getattr(before, name)


def test_a_turn_shows_its_attempts_as_they_run() -> None:
    action = FileAction("api", ("a/api.py", "**/api.py"))
    state = fold([*started(), e.PlanMade(1, "words", (action,))])
    state = e.AttemptStarted(Attempt("api", "a/api.py", 1, 2)).apply(state)
    assert state.plan.actions[0].state == "looking"
    state = e.AttemptEnded(Attempt("api", "a/api.py", 1, 2, "miss", ms=0.2)).apply(state)
    state = e.AttemptStarted(Attempt("api", "**/api.py", 2, 2)).apply(state)
    assert [attempt.outcome for attempt in state.plan.actions[0].attempts] == ["miss", "looking"]
    state = e.FileLoaded(KnownFile("src/api.py", "abc", 1, 10), "api").apply(state)
    assert state.plan.actions[0].state == "loaded"
    assert state.plan.actions[0].loaded == ("src/api.py",)
    assert state.known.files["src/api.py"].md5 == "abc"


def test_a_reply_is_streamed_then_said() -> None:
    state = fold([*started(), e.ReplyStreamed("summary", "Adds "), e.ReplyStreamed("summary", "it.")])
    assert state.reply.summary == "Adds it."
    assert state.turn.phase == "streaming"
    step = NextStep("Run the tests", "continue")
    state = e.ReplyRead(1, "Adds it.", "", next_steps=(step,)).apply(state)
    assert state.reply.summary == ""
    assert state.chat.messages[-1].summary == "Adds it."
    assert state.chat.next_steps == (step,)


def test_a_reply_that_broke_off_is_kept_as_far_as_it_came() -> None:
    state = fold([*started(), e.ReplyStreamed("message", "half")])
    state = e.TurnEnded(1, False, "Stopped.", stopped=True).apply(state)
    said = state.chat.messages
    assert [(message.kind, message.text, message.cut) for message in said[-2:]] == [
        ("agent", "half", True),
        ("note", "Stopped.", False),
    ]


def proposed(*changes: Change) -> list[e.Event]:
    todos = (Todo("t1", "Add timeouts", turn=1),)
    read = e.ReplyRead(1, "Adds it.", "")
    return [*started(), read, e.TodosAdded(todos), *(e.ChangeProposed(change) for change in changes)]


def change(name: str, path: str, **fields: Any) -> Change:
    return Change(name, 1, path, "edit", todo="t1", hunks=("pending",), **fields)


def test_a_todo_is_ticked_when_all_its_changes_are_decided_and_one_applied() -> None:
    state = fold(proposed(change("c1", "a.py"), change("c2", "b.py")))
    assert state.todos[0].changes == ("c1", "c2")
    state = e.ChangeMoved("c1", "applied", ("applied",)).apply(state)
    assert not state.todos[0].done
    state = e.ChangeMoved("c2", "skipped", ("skipped",)).apply(state)
    assert state.todos[0].done
    state = e.ChangeMoved("c1", "undone", ("pending",)).apply(state)
    assert not state.todos[0].done


def test_a_later_change_to_a_path_takes_the_place_of_the_open_one() -> None:
    state = fold(proposed(change("c1", "a.py"), change("c2", "a.py")))
    first, second = state.review.changes
    assert (first.state, first.reason) == ("skipped", "replaced by c2")
    assert state.review.open == (second,)


def test_what_conflicts_with_a_change_waits_again_when_that_is_skipped_or_undone() -> None:
    first, *others = (
        Change(f"s{n}", 0, "a.py", "edit", hunks=("pending",), tasks=(f"t{n}",)) for n in (1, 2, 3)
    )
    conflicts = [msgspec.structs.replace(change, state="conflict", rival="s1") for change in others]
    proposed = [e.ChangeProposed(change) for change in (first, *conflicts)]
    for word in ("skipped", "undone"):
        state = fold([*proposed, e.ChangeMoved("s1", word)], State())
        now = [(change.state, change.rival) for change in state.review.changes]
        assert now == [(word, ""), ("pending", ""), ("conflict", "s2")]


def test_the_message_names_the_changes_that_came_with_it() -> None:
    state = fold(proposed(change("c1", "a.py"), change("c2", "b.py")))
    assert state.chat.messages[-1].changes == ("c1", "c2")


def test_sub_tasks_become_ready_when_what_they_wait_for_is_done_or_skipped() -> None:
    tasks = (SubTask("api", "…"), SubTask("tests", "…", dependencies=("api",)))
    state = fold([*started(), e.SubTasksProposed(tasks)])
    assert [task.state for task in state.subtasks.tasks] == ["ready", "pending"]
    state = e.SubTaskMoved("api", "skipped").apply(state)
    assert [task.state for task in state.subtasks.tasks] == ["skipped", "ready"]


def test_a_buffer_from_open_to_closed() -> None:
    state = fold([e.BufferOpened("a.py"), e.BufferOpened("b.py"), e.BufferLoaded("a.py", "x\n", "h")])
    assert state.buffers.active == "b.py"
    state = e.BufferEdited("a.py", "y\n", "h", (0, 1), (0, 1)).apply(state)
    buffer = state.buffers.get("a.py")
    assert buffer is not None and buffer.unsaved and buffer.text == "y\n" and buffer.revision == 1
    state = e.BufferEdited("a.py", "z\n", "h", from_outside=True).apply(state)
    buffer = state.buffers.get("a.py")
    assert buffer is not None and buffer.revision == 2
    state = fold([e.BufferSaved("a.py", "h2"), e.BufferClosed("b.py")], state)
    assert state.buffers.active == "a.py"
    assert not state.buffers.open[0].unsaved


def test_a_request_appends_and_a_reset_begins_anew() -> None:
    from tui_agent.store.conversation import SentMessage

    one, two, three = (SentMessage("user", name) for name in "abc")
    sent = e.RequestSent(1, "main", (one, two), files={"a.py": "h"}, model="m", protocol="tools")
    state = fold([*started(), sent, e.RequestSent(1, "main", (three,), model="m", protocol="tools")])
    assert state.conversation.messages == (one, two, three)
    assert state.conversation.files == {"a.py": "h"}
    state = e.RequestSent(2, "main", (one,), reset=True, model="n", protocol="tools").apply(state)
    assert state.conversation.messages == (one,)
    assert state.conversation.files == {}


def test_a_planner_request_is_no_part_of_the_conversation() -> None:
    from tui_agent.store.conversation import SentMessage

    state = fold([*started(), e.RequestSent(1, "plan", (SentMessage("user", "a"),))])
    assert state.conversation.messages == ()


@pytest.mark.parametrize(("first", "second", "total"), [(0.5, 0.25, 0.75), (0.5, None, None)])
def test_an_unknown_price_makes_the_sum_unknown(
    first: float, second: float | None, total: float | None
) -> None:
    state = fold([e.UsageCounted(Usage(1, 1, cost=first)), e.UsageCounted(Usage(1, 1, cost=second))])
    assert state.usage.session.cost == total
    assert state.usage.session.input == 2
