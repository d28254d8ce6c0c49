"""Permission bits: a file keeps them through rename, removal, undo and redo, and a diff may change them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from support.sessions import open_session, reply

from tui_agent.edits.change import Pick
from tui_agent.log.transfer import fork


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    for name, bits in (("run.sh", 0o755), ("private.txt", 0o600)):
        (folder / name).write_text("one\ntwo\n")
        (folder / name).chmod(bits)
    return folder


@pytest.mark.parametrize(("name", "bits"), [("run.sh", 0o755), ("private.txt", 0o600)])
@pytest.mark.parametrize("edits", [[], [{"search": "two", "replace": "2"}]], ids=["alone", "edited"])
async def test_a_renamed_file_keeps_its_mode(root: Path, name: str, bits: int, edits: list) -> None:
    change = {"path": name, "renameTo": "made/new.txt"} | ({"edits": edits} if edits else {})
    async with open_session(root, [reply("Moves.", fileChanges=[change])]) as session:
        await session.chat.submit("move it")
        await session.chat.finished()
        await session.review.apply()
        assert mode(root / "made/new.txt") == bits
        await session.review.undo()
        assert mode(root / name) == bits
        await session.review.redo()
        assert mode(root / "made/new.txt") == bits
        [change_now] = session.state.review.changes
        await session.review.revert([Pick(change_now.id)])
        assert mode(root / name) == bits


@pytest.mark.parametrize(("name", "bits"), [("run.sh", 0o755), ("private.txt", 0o600)])
async def test_a_removed_file_comes_back_with_its_mode_in_a_later_session_too(
    root: Path, name: str, bits: int
) -> None:
    async with open_session(
        root, [reply("Removes.", fileChanges=[{"path": name, "delete": True}])]
    ) as session:
        await session.chat.submit("remove it")
        await session.chat.finished()
        await session.review.apply()
        [change] = session.state.review.changes
        await session.review.revert([Pick(change.id)])
        assert mode(root / name) == bits
        await session.review.redo()
        assert not (root / name).exists()
    async with open_session(root, session="last", services=False) as session:
        await session.review.undo()
        assert mode(root / name) == bits


async def test_what_the_person_made_private_stays_so_when_an_apply_is_done_again(root: Path) -> None:
    made = reply("Makes.", fileChanges=[{"path": "new.txt", "content": "x\n"}])
    async with open_session(root, [made]) as session:
        await session.chat.submit("make it")
        await session.chat.finished()
        await session.review.apply()
        (root / "new.txt").chmod(0o600)
        await session.review.undo()
        await session.review.redo()
        assert mode(root / "new.txt") == 0o600


async def test_a_view_an_open_buffer_and_a_fork_know_the_modes_too(root: Path) -> None:
    bits = "diff --git a/b.sh b/b.sh\nold mode 100644\nnew mode 100755\n"
    (root / "b.sh").write_text("x\n")
    changes = [{"path": "private.txt", "renameTo": "d/p.txt"}, {"path": "b.sh", "diff": bits}]
    async with open_session(root, [reply("Both.", fileChanges=changes)]) as session:
        await session.files.open("b.sh")
        session.files.edit("b.sh", "typed\nx\n", (0, 0), (0, 0))
        await session.chat.submit("do both")
        await session.chat.finished()
        await session.commands.run("stat -c %a d/p.txt b.sh")
        await session.commands.ended()
        assert session.state.commands.results[0].output.split() == ["600", "755"]
        await session.review.apply()
        await session.files.save("b.sh")
        assert (mode(root / "d/p.txt"), mode(root / "b.sh")) == (0o600, 0o755)
        data, name = session.folders.data, session.state.session.id
    async with open_session(root, session=fork(data, name).id, services=False) as session:
        await session.review.undo()
        assert (mode(root / "private.txt"), mode(root / "b.sh") & 0o111) == (0o600, 0)


async def test_a_diff_may_make_files_executable(root: Path) -> None:
    os.umask(mask := os.umask(0o022))
    made = "diff --git a/new.sh b/new.sh\nnew file mode 100755\n"
    made += "--- /dev/null\n+++ b/new.sh\n@@ -0,0 +1 @@\n+#!/bin/sh\n"
    bits = "diff --git a/private.txt b/private.txt\nold mode 100644\nnew mode 100755\n"
    off = "diff --git a/run.sh b/run.sh\nold mode 100755\nnew mode 100644\n"
    off += "--- a/run.sh\n+++ b/run.sh\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    async with open_session(root, [f"As asked.\n\n```diff\n{made}{bits}{off}```\n"]) as session:
        await session.chat.submit("make them run")
        await session.chat.finished()
        changes = session.state.review.changes
        assert [change.executable for change in changes] == [True, True, False]
        await session.review.apply()
        after = {"new.sh": 0o777 & ~mask, "private.txt": 0o700, "run.sh": 0o644}
        assert {name: mode(root / name) for name in after} == after
        assert (root / "run.sh").read_text() == "one\n2\n"
        await session.review.undo()
        assert (mode(root / "private.txt"), mode(root / "run.sh")) == (0o600, 0o755)
        await session.review.redo()
        assert {name: mode(root / name) for name in after} == after
        await session.review.revert([Pick(changes[1].id)])
        assert mode(root / "private.txt") == 0o600
