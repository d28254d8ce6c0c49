"""Whatever a model made permanent in a session, one more short message goes out."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.sessions import calls, model_of, open_session, reply

from tui_agent.answers.plans import FileAction
from tui_agent.context.known_files import KnownFile
from tui_agent.edits.change import Change
from tui_agent.model.parts import calls_of
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.event import Lasting
from tui_agent.store.graph import SubTask
from tui_agent.store.state import Todo
from tui_agent.tools.tool import all_tools

WINDOW = 100_000  # as the scripted model has it; a token has four characters
LONG = "words and words " * 40
DEEP = 950  # read by the standard library, and too deep for what walks it further down the stack


async def says(session: Session, words: str) -> None:
    await session.chat.submit(words)
    await session.chat.finished()


async def takes_one_more(session: Session) -> None:
    model_of(session).replies = [reply("Hello."), reply("Hello again.")]
    await says(session, "hello")
    assert session.state.turn.error == "", session.state.turn.error
    assert session.state.chat.messages[-1].summary == "Hello."
    request = model_of(session).requests[-1]
    assert sum(len(str(message)) for message in request.messages) < WINDOW * 4


def todos(count: int) -> list[dict[str, Any]]:
    return [
        {"text": f"{number} {LONG}", "aiText": LONG * 3, "done": number % 3 == 0} for number in range(count)
    ]


def many_calls(kind: str, count: int) -> Any:
    """A reply with `count` function calls."""
    arguments = {
        "search_text": lambda n: {"pattern": f"one of many patterns, number {n}", "glob": "**/*.py"},
        "read_files": lambda n: {
            "actions": [{"type": "file", "name": f"File {n}", "patterns": [f"src/{n}.py"]}]
        },
        "set_todos": lambda n: {"todos": [{"text": f"todo {n}"}]},
        "propose_changes": lambda n: {"changes": [{"path": f"{n}.txt", "content": LONG}]},
        "no_such_tool": lambda n: {"argument": LONG, "n": n},
    }[kind]
    return calls(*[(kind, arguments(number)) for number in range(count)])


def large(kind: str, chance: random.Random, name: Callable[[str], str]) -> list[Lasting]:
    """Events that make one part of the state large; `name` gives names of any length."""
    many = range(chance.choice((300, 3_000)))
    match kind:
        case "notices":
            return [
                e.NoticeGiven("warning", f"{name('Notice')} {LONG}", in_chat=n % 2 == 0)
                for n in range(10_000)
            ]
        case "facts":
            return [e.ModelOwesNews(f"{n} {name('Fact')} {LONG}") for n in many]
        case "plan":
            actions = [FileAction(f"{n} {name('Step')}", (f"{name('p')}/{n}.py",)) for n in range(5_000)]
            return [e.PlanMade(1, "model", tuple(actions), faults=(LONG,) * 99)]
        case "todos":
            return [e.TodosAdded(tuple(Todo(f"t{n}", f"{name('Todo')} {LONG}", LONG) for n in many))]
        case "known files":
            files = [
                KnownFile(f"{name('d')}/{n}.py", f"{n:032x}", 1, 9, 1, whole=n % 2 == 0) for n in range(3_000)
            ]
            return [
                *(e.FileLoaded(file) for file in files),
                e.KnownFilesDropped(tuple(f.path for f in files[::3])),
            ]
        case "stale files":
            files = [KnownFile(f"{name('s')}/{n}.py", f"{n:032x}", 1, 9, 1) for n in range(500)]
            stale = (e.FreshnessChanged(file.path, "disk") for file in files)
            return [*(e.FileLoaded(file) for file in files), *stale]
        case "sub-tasks":
            tasks = tuple(
                SubTask(f"s{n}", f"{name('Goal')} {LONG}", (f"{name('f')}{n}",)) for n in range(1_000)
            )
            ended = (e.SubTaskEnded(task.id, "completed", LONG * 9, reason=LONG) for task in tasks[::2])
            return [e.SubTasksProposed(tasks), *ended]
        case "skills":
            listed = tuple((f"{name('skill')}-{n}", LONG) for n in many)
            return [e.SkillsListed(listed), e.AgentsListed(listed)]
        case "changes":
            hashed = "0" * 32
            made = (
                Change(f"c{n}", 1, f"{name('c')}/{n}.py", "edit", base=hashed, new=hashed) for n in range(999)
            )
            return [e.ChangeProposed(change) for change in made]
        case "goal and memory":
            return [e.GoalSet(f"{name('Goal')} {LONG * 999}"), e.MemoryEdited(LONG * 2_000)]
        case "listing":
            entries = tuple((f"{name('entry')}{n}", "file", n) for n in range(100))
            return [e.DirectoryListed("src", entries, total=10**9) for _ in many[:300]]
    raise AssertionError(kind)


LARGE = (
    *("notices", "facts", "plan", "todos", "known files", "stale files", "sub-tasks", "skills", "changes"),
    *("goal and memory", "listing"),
)


@pytest.mark.parametrize(
    ("kind", "window"),
    [
        *(("search_text", 16_000), ("read_files", WINDOW), ("set_todos", 16_000)),
        *(("propose_changes", WINDOW), ("propose_changes", 16_000), ("no_such_tool", WINDOW)),
    ],
)
async def test_a_reply_of_thousands_of_calls(tmp_path: Path, kind: str, window: int) -> None:
    opened = open_session(
        tmp_path,
        [many_calls(kind, 3_000), *[calls(text="Done.")] * 9],
        protocol="tools",
        overrides=(f"context.window={window}",),
    )
    async with opened as session:
        await says(session, "do it")
        assert session.state.turn.error == ""
        said = [notice.text for notice in session.state.notices.items]
        assert any("3,000 calls: only the first 128" in text for text in said)
        if kind == "propose_changes":
            assert len(session.state.review.open) == 1_000, "changes of the other calls are kept"
        model_of(session).replies = [calls(text="Hello.")] * 3
        await says(session, "hello")
        assert session.state.turn.error == ""
        request = model_of(session).requests[-1]
        assert sum(len(str(message)) for message in request.messages) < window * 4
        assert all(
            len(calls_of(message)) <= 128 for one in model_of(session).requests for message in one.messages
        )


@pytest.mark.parametrize(("length", "window"), [(8, WINDOW), (200_000, 16_000)])
@pytest.mark.parametrize("kind", LARGE)
async def test_each_part_of_the_state(tmp_path: Path, kind: str, length: int, window: int) -> None:
    """With many names, or with one that is very long."""
    await grown(tmp_path, [kind], random.Random(kind), length, window)


@pytest.mark.parametrize("seed", range(4))
async def test_any_parts_of_the_state_together(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    kinds = chance.sample(LARGE, 4)
    await grown(tmp_path, kinds, chance, chance.choice((8, 200_000)), chance.choice((16_000, WINDOW)))


async def grown(folder: Path, kinds: Sequence[str], chance: random.Random, length: int, window: int) -> None:
    given = [length]

    def name(words: str) -> str:
        """The first name is as long as asked for."""
        return f"{words}{'x' * given.pop()}" if given else words

    overrides = (f"context.window={window}",)
    async with open_session(folder, [reply("One.")], overrides=overrides) as session:
        await says(session, "one")
        for kind in kinds:
            await session.journal.record(*large(kind, chance, name))
            given = [length]
        for words in ("hello", "continue"):
            model_of(session).replies = [reply("Hello.")] * 5
            await says(session, words)
            assert session.state.turn.error == "", session.state.turn.error
            request = model_of(session).requests[-1]
            assert sum(len(str(message)) for message in request.messages) < window * 4
            assert words in str(request.messages[-1])


def deep(levels: int) -> str:
    return '{"fileChanges": [{"path": "a.txt", "x": ' + "[" * levels + "]" * levels + "}]}"


async def test_three_hundred_long_todos_beside_a_summary(tmp_path: Path) -> None:
    async with open_session(tmp_path, [reply("Planned.", todos=todos(300)), "A summary."]) as session:
        await says(session, "plan it")
        await session.chat.compact()
        await session.chat.finished()
        await takes_one_more(session)
        model_of(session).replies = [reply("Went on.")]
        await says(session, "continue")
        assert session.state.turn.error == ""


async def test_a_summary_longer_than_the_window(tmp_path: Path) -> None:
    async with open_session(tmp_path, [reply("One."), "long " * WINDOW * 2]) as session:
        await says(session, "one")
        await session.chat.compact()
        await session.chat.finished()
        await takes_one_more(session)


async def test_a_summary_that_the_person_made_too_long(tmp_path: Path) -> None:
    async with open_session(tmp_path, [reply("One."), "A summary."]) as session:
        await says(session, "one")
        await session.chat.compact()
        await session.chat.finished()
        assert await session.chat.edit_summary("mine " * WINDOW * 2)
        await takes_one_more(session)


@pytest.mark.parametrize("levels", [DEEP, 20_000])
async def test_deeply_nested_json_in_the_history(tmp_path: Path, levels: int) -> None:
    async with open_session(tmp_path, [deep(levels)] * 9) as session:
        await says(session, "nest")
        model_of(session).replies = ["A summary."]
        await session.chat.compact()
        await session.chat.finished()
        await takes_one_more(session)


@pytest.mark.parametrize("seed", range(3))
async def test_any_history(tmp_path: Path, seed: int) -> None:
    """A random history of all that grows: prose, todos, calls, nested text, summaries, facts."""
    chance = random.Random(seed)
    tools = chance.random() < 0.5

    def answer() -> Any:
        size = chance.choice((1, 300, 3_000, 9_000))
        match chance.randrange(4):
            case 0:
                return (
                    calls(("set_todos", {"todos": todos(size // 30)}), text="x ")
                    if tools
                    else reply("T.", todos=todos(size // 30))
                )
            case 1:
                return LONG * (size // 20) if tools else reply(LONG * (size // 20))
            case 2:
                return deep(chance.choice((10, DEEP, 5_000)))
            case _:
                return json.dumps({"summary": "é世" * size * 5})

    async with open_session(tmp_path, [], protocol="tools" if tools else "structured") as session:
        for number in range(6):
            model_of(session).replies = [answer(), *[reply("Done.")] * 9]
            await says(session, f"request {number}")
            if chance.random() < 0.4:
                model_of(session).replies = [chance.choice((LONG * 30, "short", "世" * WINDOW))]
                await session.chat.compact()
                await session.chat.finished()
        model_of(session).replies = [reply("Hello.")] * 3
        await says(session, "hello")
        assert session.state.turn.error == "", session.state.turn.error


def entries(key: str, size: int) -> list[Any]:
    """What a model may write under a key of its reply, `size` characters long altogether."""
    long = "word " * (size // 5)
    each = [f"{number} {'x' * 90}" for number in range(size // 100)]
    match key:
        case "nextSteps":
            return [{"html": long, "inputText": long}, *({"html": one, "inputText": one} for one in each)]
        case "subTasks":
            made = [{"id": one[:9], "goal": one, "files": [one], "dependsOn": []} for one in each]
            return [{"id": "a", "goal": long, "files": [long], "dependsOn": [long]}, *made]
        case "todos":
            made = [{"text": one, "aiText": one, "done": False} for one in each]
            return [{"text": long, "aiText": long, "done": False}, *made]
        case "fileRequests":
            made = [{"type": "file", "name": one, "patterns": [f"{one}.py"]} for one in each]
            return [{"type": "file", "name": long, "patterns": [long]}, *made]
        case "searches":
            return [{"pattern": long, "glob": long}, *({"pattern": one, "glob": one} for one in each)]
        case "fileChanges":
            made = [{"path": f"{number}.txt", "content": one} for number, one in enumerate(each)]
            return [
                {"path": long, "content": long},
                *made,
                {"path": "a.txt", "edits": [{"search": long}] * 9},
            ]
        case "commands" | "findFiles" | "directoryRequests" | "useSkills" | "pages":
            named = {"command": long, "pattern": long, "path": long, "name": long, "url": f"https://x/{long}"}
            return [named, *(dict.fromkeys(named, one) for one in each)]
    raise AssertionError(key)


@pytest.mark.parametrize("protocol", ["tools", "structured"])
@pytest.mark.parametrize(
    "key",
    [
        *("nextSteps", "subTasks", "todos", "fileRequests", "searches", "fileChanges", "commands"),
        *("findFiles", "directoryRequests", "useSkills", "pages"),
    ],
)
async def test_each_field_of_a_reply(tmp_path: Path, key: str, protocol: str, window: int = 16_000) -> None:
    """The model's own words: options of a question, plans, todos, names of sub-tasks and of files."""
    tool = next(tool for tool in all_tools() if tool.key == key)
    given = entries(key, window * 8)
    answer = (
        calls((tool.name, {tool.parameter: given})) if protocol == "tools" else reply("Look.", **{key: given})
    )
    overrides = (f"context.window={window}", "max_steps=2")
    done: Any = calls(text="Done.") if protocol == "tools" else reply("Done.")
    async with open_session(
        tmp_path, [answer, *[done] * 5], protocol=protocol, overrides=overrides
    ) as session:
        await says(session, "do it")
        for words in ("hello", "continue"):
            model_of(session).replies = [done] * 5
            await says(session, words)
            assert session.state.turn.error == "", session.state.turn.error
            request = model_of(session).requests[-1]
            assert sum(len(str(message)) for message in request.messages) < window * 4
            assert words in str(request.messages[-1])
