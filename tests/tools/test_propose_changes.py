"""Changes of one reply: placed on the newest version, refused with a reason, and answered one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.sessions import calls, model_of, open_session, reply
from support.trees import make_tree

from tui_agent.edits.change import Change
from tui_agent.files.masking import MASK
from tui_agent.session.session import Session

DONE = reply("Done.")
TEXT = "one\ntwo\nthree\nfour\nfive\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_tree(
        tmp_path / "work", {"a.txt": TEXT, "b.txt": TEXT, ".env": "PASSWORD=quokka-7431-Vermilion\n"}
    )


def edit(path: str, old: str, new: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "edits": [{"search": old, "replace": new}], **more}


def look(*paths: str) -> tuple[str, dict[str, Any]]:
    actions = [{"type": "file", "name": path, "patterns": [path]} for path in paths]
    return "read_files", {"actions": actions}


async def proposed(session: Session, *changes: dict[str, Any], after: Any = ()) -> list[Change]:
    """The changes of a reply that follows the calls `after`."""
    first = [calls(*after)] if after else []
    model_of(session).replies[:] = [
        *first,
        calls(("propose_changes", {"changes": list(changes)}), look("b.txt")),
        DONE,
    ]
    before = len(session.state.review.changes)
    await session.chat.submit("Change them")
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error
    return list(session.state.review.changes[before:])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (edit("../a.txt", "one", "1"), "name it from the root"),
        (edit(".git/config", "one", "1"), ".git"),
        (edit("missing.txt", "one", "1"), "missing.txt"),
        (edit("a.txt", "not there", "1"), "not"),
        (edit("a.txt", "two", MASK), "stands for a secret"),
        (edit(".env", "PASSWORD", "WORD"), "looks like a secret and was not shown to you"),
        ({"path": "a.txt", "content": TEXT}, "nothing"),
    ],
)
async def test_a_change_that_cannot_be_placed_fails_with_the_reason_and_the_others_stay(
    root: Path, change: dict[str, Any], why: str
) -> None:
    async with open_session(root, protocol="tools") as session:
        made = await proposed(session, edit("b.txt", "two", "2"), change)
        assert made[0].is_open and made[0].path == "b.txt"
        assert [one.state for one in made[1:]] == ["failed"] and why in made[1].reason
        answer = str(
            next(m["content"] for m in model_of(session).requests[-1].messages if m["role"] == "tool")
        )
        assert answer.startswith("Proposed; the person decides:\n- b.txt\nNot taken:\n- ") and why in answer


async def test_a_change_of_the_version_that_was_shown_is_merged_into_the_newer_file(root: Path) -> None:
    async with open_session(root, protocol="tools") as session:
        await proposed(session, edit("b.txt", "one", "1"), after=[look("a.txt")])
        (root / "a.txt").write_text("zero\n" + TEXT)
        (made,) = await proposed(session, edit("a.txt", "five", "5"))
        assert made.is_open
        assert session.storage.blobs.get(made.new).decode() == "zero\n" + TEXT.replace("five", "5")


async def test_a_new_file_with_the_name_of_a_secret_asks_and_says_why(root: Path) -> None:
    async with open_session(root, protocol="tools") as session:
        (made,) = await proposed(session, {"path": "secrets/.env", "content": "A=1\n"})
        assert (made.is_open, made.ask, made.reason) == (
            True,
            "it looks like a secret",
            "it looks like a secret",
        )


async def test_a_whole_content_creates_a_file_that_is_gone_and_a_deletion_needs_it(root: Path) -> None:
    async with open_session(root, protocol="tools") as session:
        await proposed(session, edit("b.txt", "one", "1"), after=[look("a.txt")])
        (root / "a.txt").unlink()
        created, deleted = await proposed(
            session, {"path": "a.txt", "content": "new\n"}, {"path": "c.txt", "delete": True}
        )
        assert (created.kind, created.is_open) == ("create", True)
        assert deleted.state == "failed" and "does not exist" in deleted.reason


async def test_a_renamed_file_is_changed_under_its_name_now(root: Path) -> None:
    async with open_session(root, protocol="tools") as session:
        await proposed(session, edit("b.txt", "one", "1"), after=[look("a.txt")])
        (root / "a.txt").rename(root / "moved.txt")
        (made,) = await proposed(session, edit("a.txt", "two", "2"))
        assert (made.path, made.is_open) == ("moved.txt", True)
        assert any("a.txt was renamed to moved.txt" in one.text for one in session.state.notices.items)


async def test_unsaved_text_is_the_newest_version(root: Path) -> None:
    async with open_session(root, protocol="tools") as session:
        await session.files.open("a.txt")
        session.files.edit("a.txt", TEXT.replace("two", "typed"), (0, 0), (0, 0))
        (made,) = await proposed(session, edit("a.txt", "typed", "2"))
        assert session.storage.blobs.get(made.new).decode() == TEXT.replace("two", "2")
