"""Sub-tasks that a reply proposes: taken, refused with a reason, limited, and started without asking."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from support.tool_contexts import Bench

from tui_agent.answers.values import SubTaskRequest
from tui_agent.settings.schema import Settings, SubTaskSettings
from tui_agent.store import events as e
from tui_agent.tools.spawn_subtasks import TOOL, run, with_agents
from tui_agent.tools.tool import Invocation, ToolResult


def task(name: str, *needs: str, **fields: Any) -> SubTaskRequest:
    return SubTaskRequest(name, f"Do {name}", dependencies=needs, **fields)


def bench(*, before: tuple[e.Event, ...] = (), part: str = "", **settings: Any) -> Bench:
    chosen = replace(Settings(), subtasks=SubTaskSettings(**settings))
    return Bench(before, settings=chosen, fields={"part": part})


async def propose(made: Bench, *tasks: SubTaskRequest, is_wire: bool = True) -> ToolResult:
    return await run(Invocation("c", "spawn_subtasks", tasks, is_wire=is_wire), made.context, made.emit)


def ids(made: Bench) -> list[str]:
    return [one.id for one in made.state.subtasks.tasks]


async def test_proposed_sub_tasks_are_named_and_repeated_ones_are_not_taken_again() -> None:
    made = bench()
    result = await propose(made, task("a"), task("b", "a", "a"))
    assert (result.text, result.ok, result.amount) == ("Proposed to the person: a, b.", True, "2 sub-tasks")
    assert made.state.subtasks.tasks[1].dependencies == ("a",)
    again = await propose(made, task("a"))
    assert (again.text, again.amount) == ("These sub-tasks are proposed already.", "0 sub-tasks")
    assert (await propose(made, task("a"), task("c"))).amount == "1 sub-task"
    assert ids(made) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("tasks", "settings", "why"),
    [
        ((task("a", "b"), task("b", "a")), {}, "a"),
        ((task("a", "missing"),), {}, "missing"),
        ((task("a"),), {"max_depth": 0}, "subtasks.max_depth"),
        ((task("a", agent="nobody"),), {}, "there is no agent nobody (the agents are: reviewer)"),
    ],
)
@pytest.mark.parametrize("is_wire", [True, False])
async def test_an_invalid_graph_is_refused_as_a_whole(
    tasks: tuple[SubTaskRequest, ...], settings: dict[str, Any], why: str, is_wire: bool
) -> None:
    made = bench(before=(e.AgentsListed((("reviewer", "Reviews"),)),), **settings)
    result = await propose(made, *tasks, is_wire=is_wire)
    assert not result.ok and result.text.startswith("Your sub-tasks were refused: ") and why in result.text
    assert ids(made) == []
    notices = [event for event in made.events if isinstance(event, e.NoticeGiven)]
    assert all(one.in_chat and why in one.text for one in notices) and len(notices) == 1
    news = [event for event in made.events if isinstance(event, e.ModelOwesNews)]
    assert len(news) == (not is_wire), "without a call to answer, the next request carries it"


async def test_a_turn_has_at_most_its_number_and_dependents_of_a_refused_task_are_refused() -> None:
    made = bench(max_per_turn=3)
    result = await propose(made, task("a", "d"), task("b"), task("c", "a"), task("d"), task("e"))
    assert ids(made) == ["b"]
    assert not result.ok and "refused: a, c, d, e" in result.text
    assert "a turn can have at most 3 sub-tasks" in result.text
    result = await propose(made, task("f"), task("g"), task("h"))
    assert ids(made) == ["b", "f", "g"] and "refused: h" in result.text
    result = await propose(made, task("i"))
    assert ids(made) == ["b", "f", "g"] and "Proposed" not in result.text


@pytest.mark.parametrize(
    ("begin", "part", "started"),
    [("ticked", "", ()), ("auto", "", ("b",)), ("auto", "hand-over", ("a", "b")), ("ticked", "x", ())],
)
async def test_marked_tasks_start_at_once_and_all_inside_a_sub_task(
    begin: str, part: str, started: tuple[str, ...]
) -> None:
    made = bench(part=part, begin=begin)
    await propose(made, task("a"), task("b", auto_execute=True))
    wanted = [event.ids for event in made.events if isinstance(event, e.SubTasksWanted)]
    assert wanted == ([started] if started else [])


def test_agents_are_a_field_of_a_sub_task() -> None:
    assert "agent" not in TOOL.entry["properties"]
    assert "agent" in with_agents(TOOL).entry["properties"]
    assert TOOL.targets(Invocation("c", "", (task("a"), task("b")))) == ("a", "b")
