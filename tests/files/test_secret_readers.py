"""No reader sends a secret that nobody allowed, whatever it is called; what is allowed is exactly those bytes."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from support.disguises import CANARY, DISGUISES, PRIVATE_KEY
from support.repositories import git, repository
from support.sessions import Reply, calls, model_of, open_session, reply
from support.trees import make_tree

from tui_agent.files import secret_files
from tui_agent.log.log import events_of
from tui_agent.log.transfer import as_json, parsed
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.conversation import PermissionDecision

TOKEN = f"ghp_{CANARY}x9"


def requests(session: Session) -> str:
    return json.dumps([request.messages for request in model_of(session).requests], ensure_ascii=False)


def exported(session: Session) -> str:
    assert session.log_path is not None
    text = as_json(session.state.session.id, list(events_of(session.log_path)), session.storage.blobs)
    assert parsed(text, Path("export"))
    return text


def asks_for(name: str) -> list[Reply]:
    """Replies that go for the file in every way that a reply has."""
    found = {"type": "file", "name": "It", "patterns": [name, f"**/{name}"], "required": True}
    everything = {"type": "file", "name": "All", "patterns": ["**/*"], "all": True}
    edit = {"path": name, "edits": [{"search": "PASSWORD=CANARYq7Zw9", "replace": "PASSWORD=x"}]}
    return [
        calls(("read_files", {"actions": [found, everything]})),
        calls(
            ("search_text", {"pattern": "CANARY"}), ("search_text", {"pattern": "[A-Z]{6}", "regex": True})
        ),
        calls(("list_directory", {"requests": [{"path": ".", "recursive": True}]})),
        calls(("propose_changes", {"changes": [edit]})),
        calls(text="Nothing more."),
        calls(text="Nothing more."),
    ]


@pytest.mark.parametrize("kind", DISGUISES)
async def test_nothing_is_sent_without_asking(tmp_path: Path, home: Path, kind: str) -> None:
    root = make_tree(tmp_path / "work", {"a.py": "import json\n", "b.txt": "b\n"})
    name = DISGUISES[kind](root, "notes.txt")
    (root / "AGENTS.md").symlink_to(name)
    overrides = ("base_files=**/*",)
    async with open_session(root, asks_for(name), protocol="tools", overrides=overrides) as session:
        if kind != "a link that leads out":
            await session.files.open(name)
            size = (root / name).stat().st_size
            assert CANARY in session.state.buffers.open[0].text and size
        await session.chat.submit(f"Look at {name} and b.txt", [name])
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        assert len(model_of(session).requests) >= 4
        assert "b.txt" in requests(session)
        assert CANARY not in requests(session)
        assert CANARY not in exported(session)
        told = " ".join(notice.text for notice in session.state.notices.items)
        assert "sent only with your consent" in told or kind == "a link that leads out"
        assert CANARY not in json.dumps([change.reason for change in session.state.review.changes])


def question(session: Session) -> str:
    name = session.state.turn.waiting_for
    return next(slot.question for slot in session.state.plan.actions if slot.action.name == name)


async def waiting(session: Session) -> str:
    """Wait until the turn asks; the name of what it asks about."""
    asked = asyncio.Event()
    end = session.subscribe(lambda _, state: asked.set() if state.turn.waiting_for else None)
    async with asyncio.timeout(30):
        if not session.state.turn.waiting_for:
            await asked.wait()
    end()
    return session.state.turn.waiting_for


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return make_tree(
        tmp_path / "work", {"conf.txt": f"name = a\ntoken = {TOKEN}\nlast = 1\n", "b.py": "b = 1\n"}
    )


async def turn(session: Session, words: str, choice: str | None = None) -> str:
    """Do a turn in which one question is answered, or none comes; the newest message of its first request."""
    before = len(model_of(session).requests)
    await session.chat.submit(words)
    if choice is not None:
        await session.chat.answer(await waiting(session), choice)
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error
    return model_of(session).requests[before].messages[-1]["content"]


@pytest.mark.parametrize(
    ("choice", "sees"), [("mask", "2: token = [masked]"), ("send", TOKEN), ("", "name = a")]
)
async def test_the_person_says_what_becomes_of_it_and_is_asked_once(
    work: Path, choice: str, sees: str
) -> None:
    async with open_session(work, [reply(), reply()], interactive=True) as session:
        await session.chat.submit("Look at conf.txt")
        name = await waiting(session)
        assert "conf.txt" in name and "a GitHub token (line 2)" in question(session)
        await session.chat.answer(name, choice)
        await session.chat.finished()
        text = requests(session)
        assert (sees in text) is bool(choice) and (TOKEN in text) is (choice == "send")
        identity = session.state.session.id
    async with open_session(work, [reply()], interactive=True, session=identity) as session:
        assert (await turn(session, "And once more, conf.txt")).count(TOKEN) == 0
        assert (TOKEN in requests(session)) is (choice == "send")


async def test_the_answer_is_about_those_bytes_alone(work: Path) -> None:
    async with open_session(work, [reply(), reply()], interactive=True) as session:
        await turn(session, "Look at conf.txt", "send")
        (work / "conf.txt").write_text(f"token = {TOKEN[:-1]}Q\n")
        assert TOKEN[:-1] + "Q" not in await turn(session, "Look at conf.txt again", "")


async def test_a_masked_file_is_known_in_part_and_edited_around_its_secrets(work: Path) -> None:
    def edits(*pairs: tuple[str, str]) -> dict:
        return {"path": "conf.txt", "edits": [{"search": old, "replace": new} for old, new in pairs]}

    replies = [
        reply(fileChanges=[edits(("last = 1", "last = 2"))]),
        reply(fileChanges=[{"path": "conf.txt", "content": "name = b\n"}]),
        reply(fileChanges=[edits(("name = a", "name = [masked]"))]),
        reply(fileChanges=[edits(("token = [masked]", "token = none"))]),
        *[reply()] * 6,
    ]
    async with open_session(work, replies, interactive=True) as session:
        await turn(session, "Look at conf.txt", "mask")
        entry = session.state.known.files["conf.txt"]
        assert not entry.whole and entry.masked
        await session.review.apply()
        assert (work / "conf.txt").read_text() == f"name = a\ntoken = {TOKEN}\nlast = 2\n"
        for words, why in (("Whole", "not shown to you"), ("Mask", "stands for a secret"), ("Value", "")):
            await session.chat.submit(words)
            await session.chat.finished()
            change = [
                change for change in session.state.review.changes if change.turn == session.state.turn.number
            ]
            assert change[0].state == "failed" and why in change[0].reason, change
        assert TOKEN not in requests(session)
        assert TOKEN not in json.dumps([change.reason for change in session.state.review.changes])
        assert CANARY not in exported(session)


async def test_an_unsaved_secret_in_the_editor_is_asked_about_and_selected_parts_of_it_are_masked(
    work: Path,
) -> None:
    async with open_session(work, [reply()], interactive=True) as session:
        await session.files.open("b.py")
        text = f"b = 1\nkey = '{TOKEN}'\n"
        session.files.edit("b.py", text, (1, 20), (0, 2))
        seen = await turn(session, "What is this", "mask")
        assert "key = '[masked]'" in seen and TOKEN[:10] not in seen
        assert "manually_added_selection" in seen


async def test_what_the_built_in_files_say_of_secrets_is_left_alone(work: Path) -> None:
    fixtures = {
        "test_login.py": 'password = "hunter2hunter2"\nAPI_KEY = "test-key-123456"\nsecret = "s3cr3t-s3cr3t"\n',
        "doc.md": "Keys look like `sk-...`, `ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` or "
        "-----BEGIN PRIVATE KEY-----\nMIIE...\n-----END PRIVATE KEY-----\n",
        "keys.py": 'PEM = "-----BEGIN RSA PRIVATE KEY-----"\nPATTERN = r"AKIA[A-Z0-9]{16}"\n',
    }
    make_tree(work, fixtures)
    async with open_session(work, [reply()], interactive=True) as session:
        await session.chat.submit("Look at test_login.py, doc.md and keys.py")
        await session.chat.finished()
        assert "hunter2hunter2" in requests(session) and "AKIA[A-Z0-9]" in requests(session)


async def test_a_batch_leaves_secrets_out_without_asking(work: Path) -> None:
    make_tree(work, {"docs/a.md": "a\n", "docs/b.md": f"{PRIVATE_KEY}\n", "docs/.env": f"A={CANARY}\n"})
    async with open_session(work, [reply()], interactive=True) as session:
        await session.chat.submit("Summarise all files in docs/")
        await session.chat.finished()
        assert "1: a" in requests(session) and CANARY not in requests(session)


async def test_instructions_and_bundles_ask_too(work: Path) -> None:
    make_tree(
        work,
        {"AGENTS.md": f"Use {TOKEN}.\n", "a.ts": "import './c.json'\nlet a = 1\n", "c.json": f'["{TOKEN}"]'},
    )
    change = {"path": "a.ts", "edits": [{"search": "let a = 1", "replace": "let a = 2"}]}
    async with open_session(work, [reply(fileChanges=[change]), reply()], interactive=True) as session:
        await turn(session, "Change a.ts", "mask")
        assert "Use [masked]." in requests(session)
        await session.review.apply()
        assert '["[masked]"]' in await turn(session, "What belongs to it", "mask")
        assert TOKEN not in requests(session)


async def test_a_sub_task_gets_no_secret_by_another_name(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "a\n", ".gitignore": ".env\nvalues.env\n"})
    (root / ".env").write_text(f"A={CANARY}\n")
    os.link(root / ".env", root / "notes.txt")
    (root / "more.dat").write_text(f"A={CANARY}\n")
    (root / "values.env").symlink_to("more.dat")
    everything = [{"type": "file", "name": "All", "patterns": ["**/*"], "all": True}]
    names = ["a.txt", ".env", "notes.txt", "more.dat"]
    wanted = [reply(fileRequests=everything), reply(), reply(), reply()]
    task = {"id": "a", "goal": "Read all of it", "files": names, "dependencies": [], "autoExecute": True}
    replies = [reply(subTasks=[task]), *wanted]
    async with open_session(root, replies, overrides=("subtasks.begin=auto",)) as session:
        await session.chat.submit("Split it")
        await session.chat.finished()
        await session.subtasks.settled()
        assert session.state.subtasks.tasks[0].state == "completed", session.state.subtasks.tasks
        assert len(model_of(session).requests) >= 3 and CANARY not in requests(session)


async def test_a_commit_message_is_drafted_from_no_secret(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "a\n", "notes.txt": "n\n", "b.txt": "b\n"})
    (root / ".env").write_text(f"A={CANARY}\n")
    (root / "notes.txt").unlink()
    os.link(root / ".env", root / "notes.txt")
    (root / "b.txt").write_text(PRIVATE_KEY)
    (root / "a.txt").write_text("changed\n")
    git(root, "add", "--all")
    async with open_session(root, ["A message"]) as session:
        plan = await session.review.commit_plan()
        assert len(plan.paths) == 4
        await session.review.draft_commit(plan)
        assert "changed" in requests(session) and CANARY not in requests(session)


async def test_decisions_do_not_come_along_with_an_import(work: Path) -> None:
    async with open_session(work, [reply()], interactive=True) as session:
        await turn(session, "Look at conf.txt", "send")
        allowed = PermissionDecision("0" * 64, "run_command", "make", "make", answer="session")
        await session.journal.record(e.PermissionDecided(allowed))
        events = parsed(exported(session), Path("export"))
    assert not any(isinstance(event, (e.SecretDecided, e.PermissionDecided)) for event in events)


def test_files_at_a_place_are_named_below_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("a", "d/b", "d/e/c"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / "leads").symlink_to("nowhere")
    cut = len(f"{tmp_path}/")
    found = {
        name: secret_files._files_at(f"{tmp_path}/{name}", cut) for name in ("a", "d", "leads", "missing")
    }
    assert found == {"a": ["a"], "d": ["d/b", "d/e/c"], "leads": ["leads"], "missing": []}
    monkeypatch.setattr(secret_files, "MOST_LINKED", 0)
    assert secret_files._files_at(f"{tmp_path}/d", cut) == ["d/b"]


@pytest.mark.parametrize("answers", [0, 1])
def test_keys_are_found_although_the_searching_child_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: int
) -> None:
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"key = {TOKEN}{name}\n")
    monkeypatch.setattr(secret_files, "CHILD_FROM", 1)
    monkeypatch.setattr(secret_files, "BATCH", 1)
    asked: list[object] = []
    search = secret_files.KeySearch.keys_in

    def ended(child: secret_files.KeySearch, paths: list[str]) -> object:
        asked.append(paths)
        if len(asked) > answers:
            child.close()
        return search(child, paths)

    monkeypatch.setattr(secret_files.KeySearch, "keys_in", ended)
    found = secret_files.SecretFiles(tmp_path).found()
    assert [one.path for one in found] == ["a.txt", "b.txt", "c.txt"]
