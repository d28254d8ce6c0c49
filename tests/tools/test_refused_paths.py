"""Every path that the gate refuses, through every form in which a change can be written: nothing is touched."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest
from support.sessions import calls, open_session, reply

from tui_agent.edits.change import Pick
from tui_agent.session.session import Session
from tui_agent.store import events as e

PATHS = (
    "../x",
    "a/../../x",
    "src/../src/a.py",
    "/nowhere/x",
    "~",
    "~/x",
    "src/",
    "src/new.",
    "src /new",
    "nul\0",
    "new\nline",
    "new\x1b[31m",
    "new\u202etxt",
    "src\\new.py",
    "n" * 256,
    "/".join(["d" * 200] * 21),
    "src/a.py/x",
    "src",
    ".git",
    ".git/config",
    "src/.git/hooks/x",
    ".GIT/config",
    "sub/.git",
    "out.txt",
    "out/secret",
    "chain",
    "loop",
    "dangling",
    "dangling-outside",
    "pipe",
    "socket",
    "null",
)
DIFF = "@@ -1 +1 @@\n-inside\n+taken\n"
FORMS: dict[str, dict[str, Any]] = {
    "content": {"content": "taken\n"},
    "edits": {"edits": [{"search": "inside", "replace": "taken"}]},
    "diff": {"diff": DIFF},
    "delete": {"delete": True},
    "rename from": {"renameTo": "moved.txt"},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder, outside = tmp_path / "work", tmp_path / "outside"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("inside\n")
    (folder / "sub").mkdir()
    (folder / "sub" / ".git").write_text("gitdir: ../../outside\n")
    outside.mkdir()
    (outside / "secret").write_text("inside\n")
    links = {
        "out.txt": "../outside/secret",
        "out": "../outside",
        "chain": "out.txt",
        "loop": "loop",
        "dangling": "nowhere",
        "dangling-outside": "../outside/nowhere",
        "null": "/dev/null",
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "socket"))
    (outside / "plain").write_text("inside\n")
    os.link(outside / "plain", folder / "twin.txt")
    return folder


def seen(root: Path) -> dict[str, object]:
    """Everything inside and outside: contents, targets of links, and what kind of thing the rest is."""
    found: dict[str, object] = {}
    for path in sorted(root.parent.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            found[str(path)] = os.readlink(path)
        else:
            found[str(path)] = path.read_bytes() if stat.S_ISREG(mode) else stat.S_IFMT(mode)
    return found


async def proposed(session: Session, request: str = "Go on") -> list[e.ChangeProposed]:
    happened: list[e.Event] = []
    end = session.subscribe(lambda event, _: happened.append(event))
    await session.chat.submit(request)
    await session.chat.finished()
    end()
    assert session.state.turn.ok, session.state.turn.error
    return [event for event in happened if isinstance(event, e.ChangeProposed)]


async def test_no_form_of_a_change_reaches_a_path_that_the_gate_refuses(root: Path) -> None:
    before = seen(root)
    replies: list[Any] = [
        reply(name, fileChanges=[{"path": path, **form} for path in PATHS]) for name, form in FORMS.items()
    ]
    replies.append(reply("to", fileChanges=[{"path": "src/a.py", "renameTo": path} for path in PATHS]))
    async with open_session(root, replies) as session:
        for name in (*FORMS, "rename to"):
            told = await proposed(session)
            assert len(told) == len(PATHS), name
            for event in told:
                change = event.change
                assert change.state == "failed", (name, change.path[:40])
                assert change.reason.isprintable() and len(change.reason) < 500
            assert not session.state.review.open
    assert seen(root) == before


async def test_neither_does_a_function_call_nor_an_envelope_in_prose(root: Path) -> None:
    before = seen(root)
    made = calls(("propose_changes", {"changes": [{"path": path, "content": "taken\n"} for path in PATHS]}))
    on_one_line = [path for path in PATHS if "\n" not in path and path.strip() == path]
    sections = [f"*** Add File: {path}\n+taken\n" for path in on_one_line]
    sections += [f"*** Delete File: {path}\n" for path in on_one_line]
    envelope = "I will.\n\n*** Begin Patch\n" + "".join(sections) + "*** End Patch\n"
    async with open_session(root, [made, "Done."], protocol="tools") as session:
        assert {event.change.state for event in await proposed(session)} == {"failed"}
    async with open_session(root, [envelope]) as session:
        told = await proposed(session)
        assert {event.change.path for event in told} == set(on_one_line)
        assert {event.change.state for event in told} == {"failed"}
    assert seen(root) == before


async def test_a_hard_link_to_a_file_outside_is_cut_and_that_file_stays(root: Path) -> None:
    edit = {"path": "twin.txt", "edits": [{"search": "inside", "replace": "changed"}]}
    async with open_session(root, [reply("One.", fileChanges=[edit])]) as session:
        await proposed(session, "Change twin.txt")
        await session.review.apply([Pick(change.id) for change in session.state.review.open])
    assert (root / "twin.txt").read_text() == "changed\n"
    assert (root.parent / "outside" / "plain").read_text() == "inside\n"
