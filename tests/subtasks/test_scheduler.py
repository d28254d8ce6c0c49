from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.repositories import git, repository
from support.sessions import open_session, reply
from support.subtasks import GoalModel, states, working
from support.trees import until

from tui_agent.edits.change import Pick
from tui_agent.errors import Refused, SessionError
from tui_agent.model.client import EndChunk, TextChunk, UsageChunk
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask

GOALS = {name: f"Do part {name}" for name in ("a", "b", "c", "d")}
TASKS = tuple(SubTask(name, goal, (f"{name}.txt",)) for name, goal in GOALS.items())


def made(name: str, text: str = "new\n", **more: object) -> dict:
    return reply(f"Made {name}.", fileChanges=[{"path": f"{name}.txt", "content": text}], **more)


def answers(*names: str) -> dict[str, list]:
    return {GOALS[name]: [made(name)] for name in names}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return repository(tmp_path / "work", {"start.txt": "start\n"})


def left(home: Path, folder: Path) -> list[str]:
    """What of copies lies about: folders, worktrees, branches, refs; not what is about to go."""
    found = (home / "data" / "worktrees").glob("*/*")
    copies = [str(path) for path in found if not path.name.startswith((".seed", ".gone-"))]
    worktrees = git(folder, "worktree", "list", "--porcelain").count("worktree ") - 1
    refs = git(folder, "for-each-ref", "--format=%(refname)").split()
    return [*copies, *["worktree"] * worktrees, *(ref for ref in refs if ref != "refs/heads/main")]


def copies_of(home: Path) -> list[Path]:
    return list((home / "data" / "worktrees").glob("*/a-1*"))


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name != ".git"}


@pytest.mark.parametrize(("most", "slots"), [(2, 0), (4, 2)])
async def test_no_more_run_at_once_than_may_or_than_a_local_server_works_on(
    folder: Path, most: int, slots: int
):
    model = GoalModel(answers("a", "b", "c", "d"))
    model.slots = slots
    model.held = {goal: asyncio.Event() for goal in GOALS.values()}
    async with working(folder, model, TASKS, overrides=(f"subtasks.max_parallel={most}",)) as session:
        await session.models.get_ready()
        for name in GOALS:
            await session.subtasks.run(name)
        await until(lambda: model.open == 2)
        assert sorted(states(session).values()) == ["ready", "ready", "running", "running"]
        for held in model.held.values():
            held.set()
        await session.subtasks.settled()
        assert set(states(session).values()) == {"completed"} and model.at_once == 2


async def test_the_one_with_the_longest_way_behind_it_begins_first(folder: Path):
    marked = [SubTask(name, GOALS[name], auto_execute=True) for name in ("a", "b")]
    tasks = (*marked, SubTask("c", GOALS["c"], (), ("b",), auto_execute=True))
    model = GoalModel(answers("a", "b", "c"))
    async with working(folder, model, tasks, overrides=("subtasks.max_parallel=1",)) as session:
        await session.subtasks.run_ticked()
        await session.subtasks.settled()
        asked = [next(g for g in GOALS.values() if g in str(r.messages[-1])) for r in model.requests]
    assert asked == [GOALS["b"], GOALS["a"], GOALS["c"]]


async def test_stopped_is_cancelled_and_leaves_nothing_and_can_be_retried(folder: Path, home: Path):
    model = GoalModel({GOALS["a"]: [made("a"), made("a")]})
    model.held[GOALS["a"]] = asyncio.Event()
    async with working(folder, model, TASKS) as session:
        await session.subtasks.run("a")
        await until(lambda: model.open == 1)
        await until(lambda: session.state.subtasks.running["a"].phase == "asking")
        await session.subtasks.stop("a")
        task = session.state.subtasks.get("a")
        assert task and (task.state, task.wanted) == ("cancelled", False)
        assert "a" not in session.state.subtasks.running
        assert left(home, folder) == []
        model.held[GOALS["a"]].set()
        await session.subtasks.retry("a")
        await session.subtasks.settled()
        assert states(session)["a"] == "completed"


async def test_what_fails_says_why_and_those_behind_it_wait_until_it_is_skipped(folder: Path, home: Path):
    tasks = (TASKS[0], SubTask("b", GOALS["b"], ("b.txt",), ("a",)))
    model = GoalModel({GOALS["a"]: [Refused("It declined", "ask otherwise")], **answers("b")})
    async with working(folder, model, tasks) as session:
        for name in ("a", "b"):
            await session.subtasks.run(name)
        await session.subtasks.settled()
        assert states(session) == {"a": "failed", "b": "pending"}
        assert [task.reason for task in session.state.subtasks.tasks] == ["It declined: ask otherwise", ""]
        assert [task.cause for task in session.state.subtasks.tasks] == ["error", ""]
        assert left(home, folder) == []
        await session.subtasks.skip("a")
        await session.subtasks.settled()
        assert states(session) == {"a": "skipped", "b": "completed"}
        said = [(message.text, message.level) for message in session.state.chat.messages]
        assert said == [
            ("Sub-task a failed: It declined: ask otherwise", "warning"),
            ("Sub-task b completed: Made b.", "info"),
        ]


async def test_closing_ends_what_runs_and_the_next_start_can_run_it_again(folder: Path, home: Path):
    model = GoalModel({GOALS["a"]: [made("a")]})
    model.held[GOALS["a"]] = asyncio.Event()
    async with working(folder, model, TASKS) as session:
        await session.subtasks.run("a")
        await until(lambda: model.open == 1)
    assert left(home, folder) == []
    again = GoalModel(answers("a"))
    async with working(folder, again, session="last") as session:
        assert states(session)["a"] == "failed"
        await session.subtasks.retry("a")
        await session.subtasks.settled()
        assert states(session)["a"] == "completed"


async def test_what_is_marked_begins_at_once_and_mode_auto_applies_it(folder: Path):
    split = [
        {"id": "a", "goal": GOALS["a"], "autoExecute": True},
        {"id": "b", "goal": GOALS["b"], "autoExecute": False},
    ]
    model = GoalModel(answers("a"), [reply(subTasks=split)])
    async with working(
        folder,
        model,
        overrides=(
            "mode=auto",
            "subtasks.begin=auto",
            'checks.commands=[{"name": "true", "command": "true"}]',
        ),
    ) as session:
        await session.chat.submit("Split it")
        await session.chat.finished()
        await session.subtasks.settled()
        assert states(session) == {"a": "completed", "b": "ready"}
        assert (folder / "a.txt").read_text() == "new\n"


async def test_the_ticked_ones_run_when_the_batch_is_approved(folder: Path, home: Path):
    split = [{"id": "a", "goal": GOALS["a"], "autoExecute": True}, {"id": "b", "goal": GOALS["b"]}]
    model = GoalModel(answers("a", "b"), [reply(subTasks=split)])
    async with working(folder, model) as session:
        await session.chat.submit("Split it")
        await session.chat.finished()
        await session.subtasks.settled()
        assert set(states(session).values()) == {"ready"}
        seeds = home / "data" / "worktrees"
        await until(lambda: list(seeds.glob("*/.seed/start.txt")), "what copies share, made ahead")
        await session.subtasks.tick("b")
        await session.subtasks.run_ticked()
        await session.subtasks.settled()
        assert set(states(session).values()) == {"completed"}
        assert not (folder / "a.txt").exists()


async def test_unsaved_text_and_uncommitted_work_are_what_a_sub_task_sees(folder: Path):
    (folder / "start.txt").write_text("on disk\n")
    (folder / "b.txt").write_text("untracked\n")
    change = [{"path": "start.txt", "edits": [{"search": "unsaved", "replace": "seen"}]}]
    more = [{"path": "b.txt", "edits": [{"search": "untracked", "replace": "seen"}]}]
    model = GoalModel({GOALS["a"]: [reply(fileChanges=[*change, *more])]})
    async with working(folder, model, TASKS) as session:
        await session.files.open("start.txt")
        session.files.edit("start.txt", "unsaved\n", (0, 0), (0, 0))
        await session.subtasks.run("a")
        await session.subtasks.settled()
        assert states(session)["a"] == "completed"
        assert {change.path: change.state for change in session.state.review.open} == {
            "start.txt": "pending",
            "b.txt": "pending",
        }


async def test_it_goes_on_while_todos_are_open_and_ends_at_the_limit_of_turns(folder: Path):
    todos = [{"text": "one"}, {"text": "two"}]
    first = made("a", todos=todos)
    model = GoalModel({GOALS["a"]: [first, *(made("a", f"{n}\n") for n in range(4))]})
    async with working(folder, model, TASKS, overrides=("limits.turns=3",)) as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        task = session.state.subtasks.get("a")
        assert task and task.state == "failed" and "not finished after 3 turns" in task.reason
        assert task.cause == "limit"
        assert len(model.requests) == 3 and not session.state.review.open


async def test_a_sub_task_has_a_limit_on_tokens_of_its_own(folder: Path):
    todos = [{"text": "one"}, {"text": "two"}]
    model = GoalModel({GOALS["a"]: [made("a", todos=todos), made("a", "2\n")]})
    async with working(folder, model, TASKS, overrides=("subtasks.max_tokens=10000",)) as session:
        model.answers[GOALS["a"]][0] = [
            TextChunk('{"summary": "Much.", "todos": [{"text": "x"}], "fileChanges": '),
            TextChunk('[{"path": "a.txt", "content": "1"}]}'),
            UsageChunk(9_000, 900, 0, 0.5),
            EndChunk("stop"),
        ]
        await session.subtasks.run("a")
        await session.subtasks.settled()
        task = session.state.subtasks.get("a")
        assert task and task.state == "failed" and "subtasks.max_tokens (10,000)" in task.reason
        assert task.cause == "limit"
        assert (task.tokens, task.cost) == (9_900, 0.5)
        assert session.state.usage.session.cost == 0.5 and session.state.usage.turn.cost == 0.0


async def test_together_they_keep_the_limits_of_the_session(folder: Path):
    model = GoalModel(answers("a", "b"))
    model.held[GOALS["b"]] = asyncio.Event()
    async with working(folder, model, TASKS, overrides=("limits.session_tokens=100",)) as session:
        for name in ("b", "a"):
            await session.subtasks.run(name)
        await session.subtasks.settled()
        reasons = {task.id: task.reason for task in session.state.subtasks.tasks}
        assert "limits.session_tokens (100)" in reasons["b"]
        assert {task.cause for task in session.state.subtasks.tasks if task.state == "failed"} == {"limit"}


async def test_sub_tasks_of_sub_tasks_run_to_the_depth_that_is_set(folder: Path):
    split = [{"id": "x", "goal": GOALS["b"]}, {"id": "y", "goal": GOALS["c"]}]
    for depth in (1, 2):
        model = GoalModel(
            {GOALS["a"]: [reply("Splits.", subTasks=split), reply("No more.")], **answers("b", "c")}
        )
        overrides = (f"subtasks.max_depth={depth}", "subtasks.max_parallel=1")
        async with working(folder, model, TASKS, overrides=overrides) as session:
            await session.subtasks.run("a")
            await session.subtasks.settled()
            changed = {change.path for change in session.state.review.open}
            assert changed == ({"b.txt", "c.txt"} if depth == 2 else set())
            child = await session.subtasks.state_of("a")
            assert any("max_depth" in notice.text for notice in child.notices.items) == (depth == 1)


async def test_its_chat_is_there_while_it_runs_and_afterwards(folder: Path):
    model = GoalModel(answers("a"))
    model.held[GOALS["a"]] = asyncio.Event()
    async with working(folder, model, TASKS) as session:
        with pytest.raises(SessionError, match="has no chat"):
            await session.subtasks.state_of("a")
        await session.subtasks.run("a")
        await until(lambda: model.open == 1)
        running = await session.subtasks.state_of("a")
        assert [message.text for message in running.chat.messages] == [GOALS["a"]]
        model.held[GOALS["a"]].set()
        await session.subtasks.settled()
        ended = await session.subtasks.state_of("a")
        assert ended.chat.messages[-1].summary == "Made a."
        assert ended.known.files == {} or "a.txt" not in ended.known.stale


async def test_the_instructions_in_force_for_the_parent_are_in_force_for_it(folder: Path):
    (folder / "deep").mkdir()
    for place in ("", "deep/"):
        (folder / f"{place}AGENTS.md").write_text(f"Rules of {place or 'the root'}.\n")
    model = GoalModel(answers("a"))
    async with working(folder, model, TASKS, started_from=folder / "deep") as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        system = model.requests[0].messages[0]["content"]
        assert "Rules of the root." in system and "Rules of deep/." in system


async def test_the_hand_over_tells_of_the_request_the_scope_and_what_came_before(folder: Path):
    tasks = (TASKS[0], SubTask("b", GOALS["b"], ("b.txt", "start.txt"), ("a",)))
    model = GoalModel(answers("a", "b"), [reply("Parts it.")])
    async with working(folder, model, tasks) as session:
        await session.chat.submit("Make both files")
        await session.chat.finished()
        for name in ("a", "b"):
            await session.subtasks.run(name)
        await session.subtasks.settled()
    request = model.requests[-1]
    system = request.messages[0]["content"]
    for words in ("“b”", "Make both files", "Parts it.", "b.txt, start.txt", "a: Made a. Changed: a.txt."):
        assert words in system
    newest = request.messages[-1]["content"]
    assert f"<user_query>\n{GOALS['b']}\n</user_query>" in newest and "1: start" in newest


@pytest.mark.parametrize("git_there", [True, False])
async def test_what_looks_like_a_secret_is_in_no_copy(tmp_path: Path, home: Path, git_there: bool):
    files = {"a.txt": "a\n"}
    folder = repository(tmp_path / "work", files) if git_there else tmp_path / "work"
    folder.mkdir(exist_ok=True)
    for name in ("a.txt", ".env", "b.txt"):
        (folder / name).write_text("here\n")
    model = GoalModel({GOALS["a"]: [reply()]})
    model.held[GOALS["a"]] = asyncio.Event()
    async with working(folder, model, [SubTask("a", GOALS["a"], (".env",))]) as session:
        await session.subtasks.run("a")
        await until(lambda: model.open == 1)
        (copy,) = copies_of(home)
        assert names_in(copy) == {"a.txt", "b.txt"}
        model.held[GOALS["a"]].set()
        await session.subtasks.settled()


@pytest.mark.parametrize("kind", ["plain", "unborn", "bare"])
async def test_it_runs_without_a_repository_without_commits_and_in_a_bare_one(tmp_path: Path, kind: str):
    folder = tmp_path / "work"
    folder.mkdir()
    if kind != "plain":
        git(folder, "init", "-q", *(["--bare"] if kind == "bare" else []))
    (folder / "b.txt").write_text("there\n")
    change = [{"path": "b.txt", "edits": [{"search": "there", "replace": "done"}]}]
    async with working(folder, GoalModel({GOALS["b"]: [reply(fileChanges=change)]}), TASKS) as session:
        await session.subtasks.run("b")
        await session.subtasks.settled()
        assert states(session)["b"] == "completed"
        await session.review.apply()
    assert (folder / "b.txt").read_text() == "done\n"


async def test_it_sees_the_folder_in_the_middle_of_a_merge(folder: Path):
    git(folder, "checkout", "-q", "-b", "side")
    (folder / "start.txt").write_text("side\n")
    git(folder, "commit", "-q", "-a", "-m", "Side")
    git(folder, "checkout", "-q", "main")
    (folder / "start.txt").write_text("main\n")
    git(folder, "commit", "-q", "-a", "-m", "Main")
    with pytest.raises(Exception, match="merge"):
        git(folder, "merge", "side")
    before = git(folder, "status", "--porcelain")
    change = [{"path": "start.txt", "edits": [{"search": "main\n", "replace": "both\n"}]}]
    async with working(folder, GoalModel({GOALS["a"]: [reply(fileChanges=change)]}), TASKS) as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        assert states(session)["a"] == "completed"
        assert [change.path for change in session.state.review.open] == ["start.txt"]
    assert git(folder, "status", "--porcelain") == before


async def test_the_graph_is_made_by_hand_and_what_can_be_none_is_refused_with_its_ids(folder: Path):
    async with open_session(folder) as session:
        await session.subtasks.add("a", "First", ["a.txt"])
        await session.subtasks.add("b", "Second", dependencies=["a"])
        for make, words in (
            (session.subtasks.add("a", "Again"), "A sub-task a already"),
            (session.subtasks.add("c", "Third", dependencies=["nobody"]), "unknown ids: nobody"),
            (session.subtasks.connect("a", ["b"]), "circle: a, b"),
            (session.subtasks.add("d", " "), "needs an id and a goal"),
            (session.subtasks.retry("a"), "is ready"),
            (session.subtasks.remove("z"), "no sub-task z"),
        ):
            with pytest.raises(SessionError, match=words):
                await make
        await session.subtasks.edit("b", "Then", ["b.txt"])
        await session.subtasks.connect("b", [])
        assert states(session) == {"a": "ready", "b": "ready"}
        await session.subtasks.connect("b", ["a"])
        await session.subtasks.remove("a")
        (task,) = session.state.subtasks.tasks
        assert (task.id, task.goal, task.dependencies, task.state) == ("b", "Then", (), "ready")


async def test_what_found_no_place_is_told_and_done_again(folder: Path):
    wrong = {"path": "start.txt", "edits": [{"search": "nowhere", "replace": "x"}]}
    right = {"path": "start.txt", "edits": [{"search": "start", "replace": "x"}]}
    model = GoalModel(
        {GOALS["a"]: [reply(fileChanges=[wrong]), reply(fileChanges=[wrong]), reply(fileChanges=[right])]}
    )
    async with working(folder, model, TASKS) as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        assert states(session)["a"] == "completed"
        assert "Your change to start.txt was not taken" in model.asked(GOALS["a"])[-1]


async def test_nonsense_changes_nothing_and_half_an_answer_is_a_failure(folder: Path):
    half = [TextChunk('{"summary": "Half", "fileChanges": [{"pa'), EndChunk("cut")]
    model = GoalModel({GOALS["a"]: ["mumble mumble"], GOALS["b"]: [half]})
    async with working(folder, model, TASKS) as session:
        for name in ("a", "b"):
            await session.subtasks.run(name)
        await session.subtasks.settled()
        assert states(session)["a"] == "completed" and states(session)["b"] == "failed"
        assert not session.state.review.changes
        assert "The answer was cut off" in [task.reason for task in session.state.subtasks.tasks][1]


async def test_one_that_never_answers_ends_when_its_time_is_up(folder: Path, home: Path):
    model = GoalModel({GOALS["a"]: [made("a")]})
    model.held[GOALS["a"]] = asyncio.Event()
    async with working(folder, model, TASKS, overrides=("subtasks.max_seconds=1",)) as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        task = session.state.subtasks.get("a")
        assert task and task.state == "failed" and "exceeded 1 s" in task.reason
        assert left(home, folder) == []


async def test_ignored_files_of_its_scope_are_brought_and_submodules_are_said_to_be_missing(
    folder: Path, tmp_path: Path
):
    library = repository(tmp_path / "library", {"lib.txt": "lib\n"})
    git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "vendor")
    (folder / ".gitignore").write_text("local.txt\n.env\n")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "Library")
    for name in ("local.txt", ".env"):
        (folder / name).write_text("local\n")
    changes = [
        {"path": "local.txt", "edits": [{"search": "local", "replace": "changed"}]},
        {"path": "vendor/lib.txt", "edits": [{"search": "lib", "replace": "changed"}]},
    ]
    tasks = (SubTask("a", GOALS["a"], ("local.txt", "vendor/lib.txt", ".env")),)
    model = GoalModel({GOALS["a"]: [reply(fileChanges=changes)]})
    async with working(folder, model, tasks) as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        assert sorted(change.path for change in session.state.review.open) == ["local.txt", "vendor/lib.txt"]
        system = model.requests[-1].messages[0]["content"]
        assert "leave them alone:\n- vendor" in system
        assert "1: local" in model.requests[0].messages[-1]["content"]
        child = await session.subtasks.state_of("a")
        assert ".env" not in child.known.files and not any(
            "local" in note.text for note in child.notices.items
        )
        await session.review.apply([Pick(change.id) for change in session.state.review.open])
    assert (folder / "local.txt").read_text() == "changed\n"
    assert (folder / "vendor/lib.txt").read_text() == "changed\n"


async def test_where_no_copy_can_be_made_it_fails_with_the_reason(folder: Path, home: Path):
    model = GoalModel(answers("a", "b"))
    async with working(folder, model, TASKS) as session:
        (home / "data" / "worktrees").write_text("in the way")
        await session.subtasks.run("a")
        await session.subtasks.settled()
        task = session.state.subtasks.get("a")
        assert task and task.state == "failed" and "worktrees" in task.reason
        assert model.requests == []
        (home / "data" / "worktrees").unlink()
        await session.subtasks.retry("a")
        await session.subtasks.settled()
        assert states(session)["a"] == "completed"


async def test_the_conversation_goes_on_while_they_run(folder: Path):
    model = GoalModel(answers("a"), [reply("Meanwhile.")])
    model.held[GOALS["a"]] = asyncio.Event()
    async with working(folder, model, TASKS) as session:
        await session.subtasks.run("a")
        await until(lambda: model.open == 1)
        await session.chat.submit("And what else?")
        await session.chat.finished()
        assert session.state.chat.messages[-1].summary == "Meanwhile." and states(session)["a"] == "running"
        assert "- a: running" in model.requests[-1].messages[-1]["content"]
        await session.subtasks.tick("a")
        model.held[GOALS["a"]].set()
        await session.subtasks.settled()
        assert states(session)["a"] == "completed"


async def test_the_same_parts_said_again_are_no_news_and_others_join_them(folder: Path):
    parts = [{"id": name, "goal": GOALS[name]} for name in ("a", "b", "c")]
    replies = [
        reply(subTasks=parts[:2]),
        reply(subTasks=parts),
        reply(subTasks=[{"id": "a", "goal": "Another"}]),
    ]
    async with working(folder, GoalModel({}, replies)) as session:
        for words in ("Split", "More", "Again"):
            await session.chat.submit(words)
            await session.chat.finished()
        assert list(states(session)) == ["a", "b", "c"]
        assert "occur twice: a" in session.state.notices.items[-1].text


async def test_a_batch_is_not_run_where_each_begins_by_key(folder: Path):
    async with working(folder, GoalModel({}), TASKS, overrides=("subtasks.begin=manual",)) as session:
        with pytest.raises(SessionError, match="each sub-task is run alone"):
            await session.subtasks.run_ticked()


async def test_a_session_that_closes_early_ends_the_preparation_of_the_first_copy(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    begun, ended = asyncio.Event(), asyncio.Event()

    async def prepare(parent: Path) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with working(folder, GoalModel({})) as session:
        monkeypatch.setattr(session.workspace.copies, "prepare", prepare)
        await session.journal.record(e.SubTasksProposed(TASKS))
        await begun.wait()
        assert not ended.is_set()
    assert ended.is_set()
