from __future__ import annotations

from pathlib import Path

import pytest
from support.repositories import git, repository
from support.sessions import reply
from support.subtasks import GoalModel, states, working
from support.trees import until

from tui_agent.errors import SessionError
from tui_agent.headless.event_lines import lines
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask

ONE, TWO, AFTER = "Count from one", "Count from two", "Count on"
TASKS = (
    SubTask("one", ONE, ("a.txt",)),
    SubTask("two", TWO, ("a.txt",)),
    SubTask("after", AFTER, ("a.txt",), ("one", "two")),
)
TEXT = "".join(f"line {number}\n" for number in range(1, 10))


def line(number: int, to: str, path: str = "a.txt") -> dict:
    return {"path": path, "edits": [{"search": f"line {number}\n", "replace": f"{to}\n"}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return repository(tmp_path / "work", {"a.txt": TEXT})


async def test_work_on_one_file_that_does_not_touch_is_one_change(folder: Path):
    model = GoalModel(
        {ONE: [reply(fileChanges=[line(2, "one")])], TWO: [reply(fileChanges=[line(8, "two")])]}
    )
    async with working(folder, model, TASKS) as session:
        for name in ("one", "two"):
            await session.subtasks.run(name)
        await session.subtasks.settled()
        (change,) = session.state.review.open
        assert set(change.tasks) == {"one", "two"} and len(change.hunks) == 2
        await session.review.apply()
    assert (folder / "a.txt").read_text() == TEXT.replace("line 2", "one").replace("line 8", "two")


async def test_results_that_wait_share_a_write_and_those_of_one_file_are_joined(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    alone = [SubTask(f"part {number}", f"Make file {number}") for number in range(6)]
    answers = {
        task.goal: [reply(fileChanges=[{"path": f"{number}.txt", "content": "new\n"}])]
        for number, task in enumerate(alone)
    }
    beside = {ONE: [reply(fileChanges=[line(2, "one")])], TWO: [reply(fileChanges=[line(8, "two")])]}
    model = GoalModel({**answers, **beside})
    tasks = [*alone, *TASKS[:2]]
    async with working(folder, model, tasks, overrides=("subtasks.max_parallel=8",)) as session:
        merger, log = session.subtasks._merger, session.storage.log
        assert log is not None
        commits, commit = [], log._writer.commit
        async with merger.one_at_a_time:
            for task in tasks:
                await session.subtasks.run(task.id)
            await until(lambda: len(merger._waiting) == 8)
            monkeypatch.setattr(log._writer, "commit", lambda: (commits.append(1), commit()))
        await session.subtasks.settled()
        assert set(states(session).values()) == {"completed"}
        assert len(commits) <= 5, "two for each group: the last result is in a group of its own"
        changes = session.state.review.open
        assert sorted(change.path for change in changes) == [
            *(f"{number}.txt" for number in range(6)),
            "a.txt",
        ]
        assert len({change.id for change in session.state.review.changes}) == 8
        (both,) = [change for change in changes if change.path == "a.txt"]
        assert set(both.tasks) == {"one", "two"} and len(both.hunks) == 2


async def test_the_same_lines_are_a_conflict_that_names_both_and_is_settled_by_side(folder: Path):
    model = GoalModel(
        {
            ONE: [reply(fileChanges=[line(2, "one")])],
            TWO: [reply(fileChanges=[line(2, "two")])],
            AFTER: [reply(fileChanges=[line(9, "after")])],
        }
    )
    async with working(folder, model, TASKS) as session:
        for name in ("one", "two"):
            await session.subtasks.run(name)
            await session.subtasks.settled()
        await session.subtasks.run("after")
        await session.subtasks.settled()
        assert states(session)["after"] == "ready"  # it waits for the conflict before it
        conflict = next(change for change in session.state.review.changes if change.state == "conflict")
        assert "“one” and “two”" in conflict.reason
        model.replies.append(reply("I see."))
        await session.chat.submit("What now?")
        await session.chat.finished()
        told = model.requests[-1].messages[-1]["content"]
        for name, other in (("one", "two"), ("two", "one")):
            row = next(row for row in told.splitlines() if row.startswith(f"- {name}: completed."))
            assert f"Its change to a.txt conflicts with that of {other}:" in row
        view = await session.review.conflict(conflict.id)
        assert (view.yours_name, view.theirs_name) == ("“one”", "“two”")
        (place,) = view.conflicts
        region = view.regions[place]
        assert (region.base, region.yours, region.theirs) == (("line 2\n",), ("one\n",), ("two\n",))
        disputed = [line for line in lines(e.ChangeProposed(conflict), session.state) if "goal" in line]
        assert {(line["id"], line["reason"]) for line in disputed} == {
            ("one", "conflict"),
            ("two", "conflict"),
        }
        await session.review.resolve(conflict.id, ["both"], seen=view.now)
        await session.subtasks.settled()
        assert states(session)["after"] == "completed"
        (change,) = session.state.review.open
        assert set(change.tasks) == {"one", "two", "after"}
        await session.review.apply()
    assert (folder / "a.txt").read_text() == TEXT.replace("line 2\n", "one\ntwo\n").replace("line 9", "after")


async def test_a_conflict_can_be_given_back_to_either_of_them(folder: Path):
    for again, other in (("two", "one"), ("one", "two")):
        goals = {"one": ONE, "two": TWO}
        model = GoalModel({goal: [reply(fileChanges=[line(2, name)])] for name, goal in goals.items()})
        model.answers[goals[again]].append(
            reply(
                fileChanges=[{"path": "a.txt", "edits": [{"search": other, "replace": f"{other} {again}"}]}]
            )
        )
        async with working(folder, model, TASKS[:2]) as session:
            for name in ("one", "two"):
                await session.subtasks.run(name)
                await session.subtasks.settled()
            conflict = next(change for change in session.state.review.changes if change.state == "conflict")
            with pytest.raises(SessionError, match="no part in the conflict"):
                await session.subtasks.redo(conflict.id, "three")
            await session.subtasks.redo(conflict.id, again)
            await session.subtasks.settled()
            (change,) = session.state.review.open
            assert set(change.tasks) == {"one", "two"}
            system = model.requests[-1].messages[0]["content"]
            assert "changed there. Your copy now holds that" in system and f"“{other}”" in system
            await session.review.apply()
            assert f"{other} {again}\n" in (folder / "a.txt").read_text()
            await session.review.undo()


async def test_todos_of_a_sub_task_join_and_are_ticked_when_its_changes_are_applied(folder: Path):
    answer = reply(todos=[{"text": "Count"}], fileChanges=[{**line(2, "one"), "todoIndex": 0}])
    async with working(folder, GoalModel({ONE: [answer]}), TASKS) as session:
        await session.subtasks.run("one")
        await session.subtasks.settled()
        (todo,) = session.state.todos
        assert (todo.text, todo.done, len(todo.changes)) == ("Count", False, 1)
        await session.review.apply()
        assert session.state.todos[0].done


async def test_the_next_request_says_how_the_sub_tasks_stand_once(folder: Path):
    model = GoalModel({ONE: [reply("Counts.", fileChanges=[line(2, "one")])]}, [reply(), reply()])
    async with working(folder, model, TASKS) as session:
        await session.subtasks.run("one")
        await session.subtasks.settled()
        for words in ("What now?", "And now?"):
            await session.chat.submit(words)
            await session.chat.finished()
        first, second = (request.messages[-1]["content"] for request in model.requests[-2:])
    assert (
        "## SUB-TASKS\n- one: completed. Counts. Changed, and shown to the person for review: a.txt." in first
    )
    assert "- after: waits for one, two" in first
    assert "## SUB-TASKS" not in second


async def test_the_person_edits_the_same_file_meanwhile(folder: Path):
    model = GoalModel({ONE: [reply(fileChanges=[line(2, "one")])]})
    async with working(folder, model, TASKS) as session:
        await session.subtasks.run("one")
        await session.subtasks.settled()
        (folder / "a.txt").write_text(TEXT.replace("line 8", "mine"))
        await session.review.apply()
    assert (folder / "a.txt").read_text() == TEXT.replace("line 2", "one").replace("line 8", "mine")


async def test_a_later_answer_of_the_conversation_does_not_push_their_work_out(folder: Path):
    model = GoalModel({ONE: [reply(fileChanges=[line(2, "one")])]}, [reply(fileChanges=[line(8, "talk")])])
    async with working(folder, model, TASKS) as session:
        await session.subtasks.run("one")
        await session.subtasks.settled()
        await session.chat.submit("Change @a.txt")
        await session.chat.finished()
        (change,) = session.state.review.open
        assert len(change.hunks) == 2
        await session.review.apply()
    assert (folder / "a.txt").read_text() == TEXT.replace("line 2", "one").replace("line 8", "talk")


async def test_what_one_deletes_and_another_edits_is_a_conflict(folder: Path):
    model = GoalModel(
        {
            ONE: [reply(fileChanges=[{"path": "a.txt", "delete": True}])],
            TWO: [reply(fileChanges=[line(2, "two")])],
        }
    )
    async with working(folder, model, TASKS[:2]) as session:
        for name in ("one", "two"):
            await session.subtasks.run(name)
            await session.subtasks.settled()
        conflict = next(change for change in session.state.review.changes if change.state == "conflict")
        assert "removes" in conflict.reason and "“one” and “two”" in conflict.reason
        view = await session.review.conflict(conflict.id)
        assert view.yours_gone and not view.theirs_gone
        await session.review.resolve(conflict.id, ["theirs"], seen=view.now)
        await session.review.apply()
    assert (folder / "a.txt").read_text() == TEXT.replace("line 2", "two")


async def test_renames_creations_and_deletions_come_as_what_they_are(folder: Path):
    (folder / "old.txt").write_text("old\n")
    (folder / "run.sh").write_text("run\n")
    (folder / "a.txt").chmod(0o600)
    bits = {"path": "run.sh", "diff": "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"}
    changes = [bits, {"path": "a.txt", "renameTo": "b.txt"}, {"path": "new.txt", "content": "new\n"}]
    model = GoalModel({ONE: [reply(fileChanges=[*changes, {"path": "old.txt", "delete": True}])]})
    async with working(folder, model, TASKS) as session:
        await session.subtasks.run("one")
        await session.subtasks.settled()
        kinds = {change.path: change.kind for change in session.state.review.open}
        assert kinds == {"a.txt": "rename", "new.txt": "create", "old.txt": "delete", "run.sh": "edit"}
        await session.review.apply()
    assert git(folder, "ls-files", "--others").split() == ["b.txt", "new.txt", "run.sh"]
    modes = {name: (folder / name).stat().st_mode & 0o777 for name in ("b.txt", "run.sh")}
    assert (modes["b.txt"], modes["run.sh"] & 0o100) == (0o600, 0o100)


async def test_what_goes_on_from_the_work_of_another_is_no_conflict_with_it(tmp_path: Path):
    folder = repository(tmp_path / "work", {"a.txt": TEXT, "c.txt": TEXT})
    steps = {
        "renames": {"path": "a.txt", "renameTo": "z.txt"},
        "edits what was renamed": line(2, "two", "z.txt"),
        "changes": line(2, "two", "c.txt"),
        "renames what was changed": {"path": "c.txt", "renameTo": "y.txt"},
        "makes": {"path": "n.txt", "content": "n\n"},
        "deletes what was made": {"path": "n.txt", "delete": True},
    }
    names = list(steps)
    tasks = [
        SubTask(name, f"Part: {name}.", (), tuple(names[at - 1 : at]) if at % 2 else ())
        for at, name in enumerate(names)
    ]
    model = GoalModel({task.goal: [reply(fileChanges=[steps[task.id]])] for task in tasks})
    async with working(folder, model, tasks) as session:
        for name in names:
            await session.subtasks.run(name)
        await session.subtasks.settled()
        kinds = {change.path: (change.kind, len(change.tasks)) for change in session.state.review.open}
        assert kinds == {
            "a.txt": ("rename", 2),
            "c.txt": ("rename", 2),
        }
        await session.review.apply()
    there = {path.name: path.read_text() for path in folder.glob("*.txt")}
    changed = TEXT.replace("line 2", "two")
    assert there == {"z.txt": changed, "y.txt": changed}


async def test_of_three_with_the_same_lines_each_is_settled_and_none_is_lost(folder: Path):
    names = ("one", "two", "three")
    tasks = [SubTask(name, f"Count from {name}.", ("a.txt",)) for name in names]
    model = GoalModel({task.goal: [reply(fileChanges=[line(2, task.id)])] for task in tasks})
    async with working(folder, model, tasks) as session:
        for name in names:
            await session.subtasks.run(name)
            await session.subtasks.settled()
        first, second, third = session.state.review.changes
        assert [change.state for change in (first, second, third)] == ["pending", "conflict", "conflict"]
        for change, before in ((second, "“one”"), (third, "“one” with “two”")):
            view = await session.review.conflict(change.id)
            assert (view.yours_name, len(view.conflicts)) == (before, 1)
            await session.review.resolve(change.id, ["both"], seen=view.now)
        await session.review.apply()
    assert (folder / "a.txt").read_text() == TEXT.replace("line 2\n", "one\ntwo\nthree\n")


async def test_what_runs_again_gives_way_to_its_second_result_and_leaves_the_work_of_others(folder: Path):
    (folder / "b.txt").write_text(TEXT)
    todos = [{"text": "Count"}]
    first = [{**line(2, "first"), "todoIndex": 0}, {"path": "n.txt", "content": "n\n"}]
    tasks = [
        TASKS[0],
        SubTask("moves", "Move it", ("b.txt",)),
        SubTask("edits", "Edit it", (), ("moves",)),
    ]
    model = GoalModel(
        {
            ONE: [
                reply(fileChanges=first, todos=todos),
                reply(fileChanges=[{**line(2, "second"), "todoIndex": 0}], todos=todos),
            ],
            "Move it": [reply(fileChanges=[{"path": "b.txt", "renameTo": "c.txt"}])],
            "Edit it": [reply(fileChanges=[line(5, word, "c.txt")]) for word in ("first", "second")],
        },
        [reply(fileChanges=[line(8, "talk")])],
    )
    async with working(folder, model, tasks) as session:
        for task in tasks:
            await session.subtasks.run(task.id)
        await session.subtasks.settled()
        await session.chat.submit("Change @a.txt")
        await session.chat.finished()
        for name in ("one", "edits"):
            await session.subtasks.retry(name)
        await session.subtasks.settled()
        assert set(states(session).values()) == {"completed"}
        assert sorted(change.path for change in session.state.review.open) == ["a.txt", "b.txt"]
        await session.review.apply()
        assert [(todo.text, todo.done) for todo in session.state.todos] == [("Count", True)]
    assert (folder / "a.txt").read_text() == TEXT.replace("line 2", "second").replace("line 8", "talk")
    assert (folder / "c.txt").read_text() == TEXT.replace("line 5", "second")
    assert not (folder / "n.txt").exists() and not (folder / "b.txt").exists()


async def test_what_waits_begins_after_what_was_given_back_and_the_work_of_all_stays(folder: Path):
    again = {"path": "a.txt", "edits": [{"search": "line 3\n", "replace": "two\n"}]}
    model = GoalModel(
        {
            ONE: [reply(fileChanges=[line(2, "one")]), reply(fileChanges=[line(2, "anew")])],
            TWO: [reply(fileChanges=[line(2, "two")]), reply(fileChanges=[again])],
            AFTER: [reply(fileChanges=[line(6, "after")])],
        },
        [reply(fileChanges=[line(8, "talk")])],
    )
    async with working(folder, model, TASKS) as session:
        await session.chat.submit("Change @a.txt")
        await session.chat.finished()
        for name in ("one", "two", "after"):
            await session.subtasks.run(name)
            await session.subtasks.settled()
        conflict = next(change for change in session.state.review.changes if change.state == "conflict")
        await session.subtasks.redo(conflict.id, "two")
        await session.subtasks.settled()
        assert (
            set(states(session).values()) == {"completed"} and model.asked(AFTER) and not model.answers[AFTER]
        )
        (change,) = session.state.review.open
        assert change.tasks == ("one", "two", "after")
        await session.subtasks.retry("one")
        await session.subtasks.settled()
        kept = [one for one in session.state.review.changes if one.is_open or one.state == "conflict"]
        assert [(one.tasks, one.state) for one in kept] == [
            (("one", "two", "after"), "pending"),
            (("one",), "conflict"),
        ]
        text = session.storage.blobs.get_text(kept[0].new)
    assert [text.count(word) for word in ("one\n", "two\n", "after\n", "talk\n")] == [1, 1, 1, 1]
