"""Changes that the person works on: conflicts settled, hunks edited, comments, hunks taken back, undo in any order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.sessions import model_of, open_session, reply

from tui_agent.edits.change import Pick
from tui_agent.errors import EditFailed, SessionError
from tui_agent.session.session import Session

LINES = [f"line {number}\n" for number in range(20)]
TEXT = "".join(LINES)


class Sample:
    """A workspace with one file."""

    def __init__(self, folder: Path) -> None:
        self.parent = folder
        self.path = folder / "a.txt"
        folder.mkdir()
        self.write(TEXT)

    @property
    def text(self) -> str:
        return self.path.read_text()

    @property
    def names(self) -> set[str]:
        return {path.name for path in self.parent.iterdir()}

    def write(self, text: str, name: str = "a.txt") -> None:
        (self.parent / name).write_text(text)


@pytest.fixture
def file(tmp_path: Path) -> Sample:
    return Sample(tmp_path / "work")


def changed(**lines: str) -> str:
    """The text with some lines replaced: `l3="x"`."""
    return "".join(lines.get(f"l{number}", line.strip()) + "\n" for number, line in enumerate(LINES))


def edits(*numbers: int) -> dict[str, Any]:
    made = [{"search": f"line {n}\nline {n + 1}\n", "replace": f"new {n}\nline {n + 1}\n"} for n in numbers]
    return reply("Edits.", fileChanges=[{"path": "a.txt", "edits": made}])


async def turn(session: Session, request: str = "Change a.txt") -> None:
    await session.chat.submit(request)
    await session.chat.finished()


async def conflicting(session: Session, file: Sample) -> None:
    """Lines 3 and 12 were changed by both."""
    await turn(session)
    file.write(changed(l3="mine 3", l12="mine 12", l17="mine 17"))
    with pytest.raises(EditFailed, match=r"a\.txt"):
        await session.review.apply()
    assert session.state.review.changes[0].state == "conflict"


async def test_a_conflict_is_settled_place_by_place_and_then_reviewed(file: Sample) -> None:
    async with open_session(file.parent, [edits(3, 8, 12)]) as session:
        await conflicting(session, file)
        view = await session.review.conflict("c1.1")
        sides = [view.regions[at] for at in view.conflicts]
        assert [(part.base, part.yours, part.theirs) for part in sides] == [
            (("line 3\n",), ("mine 3\n",), ("new 3\n",)),
            (("line 12\n",), ("mine 12\n",), ("new 12\n",)),
        ]
        await session.review.resolve("c1.1", ["theirs", "both"])
        change = session.state.review.changes[0]
        assert (change.state, change.by_hand, len(change.hunks)) == ("merged", True, 3)
        await session.review.apply()
        text = changed(l3="new 3", l8="new 8", l12="mine 12\nnew 12", l17="mine 17")
        assert file.text == text
        await session.review.undo()
        assert file.text == changed(l3="mine 3", l12="mine 12", l17="mine 17")


async def test_a_place_of_a_conflict_can_be_written_by_hand(file: Sample) -> None:
    async with open_session(file.parent, [edits(3, 12)]) as session:
        await conflicting(session, file)
        with pytest.raises(EditFailed, match="meanwhile"):
            await session.review.resolve("c1.1", ["theirs"])
        await session.review.resolve("c1.1", ["yours", "yours"], {1: "by hand\n"})
        await session.review.apply()
        assert file.text == changed(l3="mine 3", l12="by hand", l17="mine 17")


async def test_yours_everywhere_leaves_the_file_and_skips_the_change(file: Sample) -> None:
    async with open_session(file.parent, [edits(3, 12)]) as session:
        await conflicting(session, file)
        await session.review.resolve("c1.1", ["yours", "yours"])
        assert session.state.review.changes[0].state == "skipped"
        with pytest.raises(SessionError, match="only a conflict"):
            await session.review.resolve("c1.1", ["theirs", "theirs"])
        assert file.text == changed(l3="mine 3", l12="mine 12", l17="mine 17")


async def test_yours_everywhere_leaves_an_applied_hunk_applied(file: Sample) -> None:
    async with open_session(file.parent, [edits(3, 12)]) as session:
        await turn(session)
        await session.review.apply([Pick("c1.1", 0)])
        file.write(changed(l3="new 3", l12="mine 12"))
        with pytest.raises(EditFailed):
            await session.review.apply()
        await session.review.resolve("c1.1", ["yours"])
        change = session.state.review.changes[0]
        assert (change.state, change.hunks) == ("applied", ("applied", "skipped"))
        await session.review.undo()
        assert file.text == changed(l12="mine 12")


async def test_a_file_that_went_is_made_anew_or_left_gone(file: Sample) -> None:
    async with open_session(file.parent, [edits(3)]) as session:
        await turn(session)
        file.path.unlink()
        with pytest.raises(EditFailed):
            await session.review.apply()
        assert (await session.review.conflict("c1.1")).yours_gone
        await session.review.resolve("c1.1", ["theirs"])
        assert session.state.review.changes[0].kind == "create"
        await session.review.apply()
        assert file.text == changed(l3="new 3")


async def test_a_file_that_moved_on_is_deleted_only_when_the_person_says_so(file: Sample) -> None:
    gone = reply("Deletes.", fileChanges=[{"path": "a.txt", "delete": True}])
    async with open_session(file.parent, [gone]) as session:
        await turn(session)
        file.write("mine\n")
        with pytest.raises(EditFailed):
            await session.review.apply()
        assert "a.txt" in file.names and (await session.review.conflict("c1.1")).theirs_gone
        await session.review.resolve("c1.1", ["theirs"])
        await session.review.apply()
        assert "a.txt" not in file.names
        await session.review.undo()
        assert file.text == "mine\n"


async def test_a_hunk_is_edited_by_hand_and_the_model_is_told(file: Sample) -> None:
    async with open_session(file.parent, [edits(3, 12), reply("Fine.")]) as session:
        await turn(session)
        await session.review.apply([Pick("c1.1", 0)])
        await session.review.edit_hunk(Pick("c1.1", 1), "better\nand longer")
        change = session.state.review.changes[0]
        assert (change.hunks, change.by_hand) == (("applied", "pending"), True)
        with pytest.raises(SessionError, match="decided"):
            await session.review.edit_hunk(Pick("c1.1", 0), "late")
        await session.review.apply()
        assert file.text == changed(l3="new 3", l12="better\nand longer")
        await turn(session, "Thanks")
        assert "edited by hand by the person" in str(model_of(session).requests[-1].messages[-1]["content"])


async def test_a_hunk_is_the_one_that_was_seen_whatever_its_number_is_by_now(file: Sample) -> None:
    async with open_session(file.parent, [edits(3, 8, 12)]) as session:
        await turn(session)
        seen = session.state.review.changes[0].version
        await session.review.edit_hunk(
            Pick("c1.1", 0), "line 3\n"
        )  # which leaves two: the second is the first now
        await session.review.edit_hunk(Pick("c1.1", 1, seen), "mine 8")
        await session.review.comment(Pick("c1.1", 2, seen), "and this?")
        assert session.state.review.changes[0].comments[0].hunk == 1
        await session.review.skip([Pick("c1.1", 2, seen)])
        await session.review.revert([Pick("c1.1", 2, seen)])
        assert session.state.review.changes[0].hunks == ("pending", "pending")
        for gone in (
            Pick("c1.1", 0, seen),
            Pick("c1.1", 1, seen),
            Pick("c1.1", 9, seen),
            Pick("c1.1", None, seen),
        ):
            for call in (session.review.apply, session.review.skip, session.review.revert):
                with pytest.raises(SessionError, match="was another when you decided"):
                    await call([gone])
            with pytest.raises(SessionError, match="was another when you decided"):
                await session.review.edit_hunk(gone, "x")
        await session.review.apply([Pick("c1.1", 2, seen)])
        assert file.text == changed(l12="new 12")


async def test_a_comment_reaches_the_model_with_the_next_turn(file: Sample) -> None:
    async with open_session(file.parent, [edits(3, 12), reply("Fine.")]) as session:
        await turn(session)
        await session.review.comment(Pick("c1.1", 1), "  why this one?  ")
        assert session.state.review.changes[0].comments[0].text == "why this one?"
        assert len(model_of(session).requests) == 1
        await turn(session, "Go on then")
        words = str(model_of(session).requests[-1].messages[-1]["content"])
        assert "About hunk 2 of your change to a.txt (line 13) the person says: why this one?" in words


async def test_hunks_are_taken_back_one_by_one_and_done_again(file: Sample) -> None:
    async with open_session(file.parent, [edits(3, 8, 12)]) as session:
        await turn(session)
        await session.review.apply()
        file.write(file.text.replace("line 17", "mine 17"))
        await session.review.revert([Pick("c1.1", 1)])
        assert file.text == changed(l3="new 3", l12="new 12", l17="mine 17")
        assert session.state.review.changes[0].hunks == ("applied", "skipped", "applied")
        assert not session.state.review.open
        await session.review.redo()
        assert file.text == changed(l3="new 3", l8="new 8", l12="new 12", l17="mine 17")
        assert session.state.review.changes[0].hunks == ("applied",) * 3
        await session.review.revert([Pick("c1.1")])
        assert file.text == changed(l17="mine 17")
        assert session.state.review.changes[0].state == "undone"
        await session.review.revert([Pick("c1.1")])
        assert session.state.review.changes[0].hunks == ("pending",) * 3
        with pytest.raises(EditFailed, match="nothing of the change"):
            await session.review.revert([Pick("c1.1")])


async def test_after_the_undo_of_an_apply_of_all_no_file_waits_again(file: Sample) -> None:
    file.write("one\n", "b.txt")
    both = edits(3, 12)
    both["fileChanges"] = [
        *both["fileChanges"],
        {"path": "b.txt", "edits": [{"search": "one", "replace": "two"}]},
    ]
    async with open_session(file.parent, [both]) as session:
        await turn(session, "Change a.txt and b.txt")
        await session.review.apply([Pick("c1.1", 0)])
        await session.review.apply()
        await session.review.undo()
        assert (file.text, (file.parent / "b.txt").read_text()) == (changed(l3="new 3"), "one\n")
        assert [change.state for change in session.state.review.changes] == ["applied", "undone"]
        await session.review.redo()
        assert file.text == changed(l3="new 3", l12="new 12")
        assert [change.state for change in session.state.review.changes] == ["applied", "applied"]


async def test_what_was_skipped_waits_again(file: Sample) -> None:
    async with open_session(file.parent, [edits(3, 12)]) as session:
        await turn(session)
        await session.review.apply([Pick("c1.1", 0)])
        await session.review.skip()
        assert session.state.review.changes[0].state == "applied"
        await session.review.revert([Pick("c1.1", 1)])
        change = session.state.review.changes[0]
        assert (change.state, change.hunks) == ("pending", ("applied", "pending"))
        await session.review.apply()
        assert file.text == changed(l3="new 3", l12="new 12")


async def test_a_change_that_made_moved_or_removed_a_file_is_taken_back(file: Sample) -> None:
    file.write("b\n", "b.txt")
    three = reply(
        "Three.",
        fileChanges=[
            {"path": "new.txt", "content": "x\n"},
            {"path": "b.txt", "delete": True},
            {"path": "a.txt", "renameTo": "z.txt", "edits": [{"search": "line 3\n", "replace": "new 3\n"}]},
        ],
    )
    async with open_session(file.parent, [three]) as session:
        await turn(session, "Change a.txt and b.txt")
        await session.review.apply()
        file.write(TEXT.replace("line 3\n", "new 3\n") + "mine\n", "z.txt")
        await session.review.revert([Pick("c1.1"), Pick("c1.2"), Pick("c1.3")])
        assert file.names == {"a.txt", "b.txt"}
        assert file.text == TEXT + "mine\n"


async def test_applies_are_undone_in_any_order(file: Sample) -> None:
    async with open_session(file.parent, [edits(3), edits(12)]) as session:
        await turn(session)
        await session.review.apply()
        await turn(session)
        await session.review.apply()
        previews = await session.review.preview("k1")
        assert [hunk.added for hunk in previews[0].diff.hunks] == [("line 3\n",)]
        assert previews[0].merged
        await session.review.undo("k1")
        assert file.text == changed(l12="new 12")
        await session.review.redo("k1")
        await session.review.undo("k2")
        assert file.text == changed(l3="new 3")


async def test_an_undo_that_conflicts_is_settled_like_any_conflict(file: Sample) -> None:
    async with open_session(file.parent, [edits(3)]) as session:
        await turn(session)
        await session.review.apply()
        file.write(changed(l3="mine 3"))
        assert (await session.review.preview("k1"))[0].conflict
        with pytest.raises(EditFailed, match="resolve it"):
            await session.review.undo()
        assert file.text == changed(l3="mine 3")
        change = session.state.review.changes[-1]
        assert (change.id, change.state) == ("k1.a.txt", "conflict")
        await session.review.resolve(change.id, ["theirs"])
        await session.review.apply([Pick(change.id)])
        assert file.text == TEXT
