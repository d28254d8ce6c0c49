"""From requests to changes that wait for review."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tui_agent.answers.values import ChangeRequest, EditHunk
from tui_agent.edits.change import Change
from tui_agent.edits.proposals import Seen, is_excerpt, propose

BASE = "one\ntwo\nthree\n"


class Blobs(dict[str, str]):
    def put(self, text: str) -> str:
        key = hashlib.md5(text.encode()).hexdigest()
        self[key] = text
        return key


def ask(base: str | None, seen: Seen = "whole", **form: Any) -> tuple[Change, Blobs]:
    blobs = Blobs()
    request = ChangeRequest("a.py", **form)
    base_hash = "" if base is None else blobs.put(base)
    return propose(request, 4, 2, base, base_hash, blobs.put, seen=seen, todo="t1"), blobs


def test_an_edit_waits_with_its_hunks() -> None:
    change, blobs = ask(BASE, edits=(EditHunk("one", "1"), EditHunk("three", "3\n4")))
    assert (change.id, change.turn, change.kind, change.state, change.rung) == (
        "c4.2",
        4,
        "edit",
        "pending",
        "exact",
    )
    assert (change.hunks, change.added, change.removed) == (("pending", "pending"), 3, 2)
    assert blobs[change.base] == BASE
    assert blobs[change.new] == "1\ntwo\n3\n4\n"
    assert change.todo == "t1"


def test_create_delete_rename() -> None:
    created, blobs = ask(None, content="x\n")
    assert (created.kind, created.base, blobs[created.new], created.hunks) == (
        "create",
        "",
        "x\n",
        ("pending",),
    )
    deleted, _ = ask(BASE, delete=True)
    assert (deleted.kind, deleted.new, deleted.removed, deleted.hunks) == ("delete", "", 3, ("pending",))
    renamed, _ = ask(BASE, rename_to="b.py")
    assert (renamed.kind, renamed.rename_to, renamed.new, renamed.hunks) == (
        "rename",
        "b.py",
        renamed.base,
        (),
    )
    both, blobs = ask(BASE, rename_to="b.py", edits=(EditHunk("one", "1"),))
    assert (both.kind, blobs[both.new], len(both.hunks)) == ("rename", "1\ntwo\nthree\n", 1)


@pytest.mark.parametrize(
    ("base", "form", "reason"),
    [
        (BASE, {"edits": (EditHunk("nowhere", "x"),)}, "not in the file"),
        ("x\nx\n", {"edits": (EditHunk("x", "y"),)}, "lines 1 and 2"),
        (BASE, {"content": BASE}, "changes nothing"),
        (BASE, {"edits": (EditHunk("one", "one"),)}, "changes nothing"),
        (None, {"delete": True}, "does not exist"),
        (BASE, {"content": "a\0b"}, "NUL"),
        (BASE, {"content": "one\n# ... rest unchanged ...\n"}, "leaves something out"),
        (BASE * 5, {"content": "two\n", "fenced": True}, "excerpt"),
    ],
)
def test_what_cannot_be_done_is_a_failed_change_with_its_reason(
    base: str | None, form: dict[str, Any], reason: str
) -> None:
    change, _ = ask(base, **form)
    assert change.state == "failed"
    assert reason in change.reason
    assert not change.is_open


def test_a_file_that_was_never_seen_takes_no_near_match() -> None:
    base = "def function(alpha, beta):\n    return alpha + beta\n"
    near = (EditHunk("def function(alpha, beta):\n    return alpha+beta\n", "gone\n"),)
    assert ask(base, "whole", edits=near)[0].rung == "near"
    assert ask(base, "never", edits=near)[0].state == "failed"


@pytest.mark.parametrize(("seen", "held"), [("whole", False), ("part", True), ("never", True)])
def test_whole_content_over_a_file_not_seen_whole_is_held(seen: Seen, held: bool) -> None:
    change, _ = ask(BASE, seen, content="new\n")
    assert (change.state, bool(change.ask)) == ("pending", held)
    assert not ask(None, seen, content="new\n")[0].ask


def test_an_excerpt_is_told_from_a_whole_file() -> None:
    old = "".join(f"line {number}\n" for number in range(10))
    assert is_excerpt(ChangeRequest("a", content="line 3\nnew\n", fenced=True), old)
    assert not is_excerpt(ChangeRequest("a", content=old + "new\n", fenced=True), old)
    assert not is_excerpt(ChangeRequest("a", content="line 3\n", fenced=False), old)
    assert not is_excerpt(ChangeRequest("a", content="line 3\n", fenced=True), None)


def test_the_same_reply_gives_the_same_changes() -> None:
    edits = (EditHunk("one", "1"),)
    assert ask(BASE, edits=edits)[0] == ask(BASE, edits=edits)[0]
