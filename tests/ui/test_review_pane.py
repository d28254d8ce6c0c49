from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace
from support.panes import HOSTILE, NotedSession, PaneApp

from tui_agent.edits.change import UNNAMED, Change, Checkpoint, Comment, Diff, FileStep, Hunk, HunkState, Pick
from tui_agent.edits.merge import ConflictView, Region
from tui_agent.errors import FileError, SessionError
from tui_agent.review.undo import Preview
from tui_agent.store.conversation import ConversationSlice
from tui_agent.store.state import ReviewSlice, State, TurnSlice
from tui_agent.ui.diff.diff_view import DiffView
from tui_agent.ui.panes.review import ReviewPane
from tui_agent.ui.panes.review_rows import ReviewPosition, change_rows, progress
from tui_agent.ui.widgets.line_view import Line

LINES = tuple(f"line {n}\n" for n in range(40))
API = Diff("src/api.py", LINES, (Hunk(4, LINES[4:5], ("four\n",)), Hunk(30, LINES[30:31], ("thirty\n",))))
NEW = Diff("new.py", (), (Hunk(0, (), ("brand new\n",)),))
CHANGES = (
    Change(
        "c1", 1, "src/api.py", "edit", base="a", new="b", hunks=("pending", "pending"), added=2, removed=2
    ),
    Change("c2", 1, "new.py", "create", new="c", hunks=("pending",), added=1),
)


def reviewed(*changes: Change, checkpoints: tuple[Checkpoint, ...] = ()) -> NotedSession:
    session = NotedSession(State(review=ReviewSlice(changes, checkpoints)))
    session.diffs = {"c1": API, "c2": NEW}
    session.effects = {
        "review.apply": lambda picks=(): decided(session.state, picks, "applied"),
        "review.skip": lambda picks=(): decided(session.state, picks, "skipped"),
    }
    return session


def decided(state: State, picks: Sequence[Pick], outcome: HunkState) -> State:
    """What the store would hold after that decision; no pick is all that waits."""
    changes = []
    for change in state.review.changes:
        hunks = list(change.hunks)
        for index, hunk in enumerate(hunks):
            picked = not picks or any(it.change == change.id and it.hunk in (None, index) for it in picks)
            if picked and hunk == "pending":
                hunks[index] = outcome
        over = ("applied" if "applied" in hunks else "skipped") if "pending" not in hunks else change.state
        changes.append(replace(change, hunks=tuple(hunks), state=over))
    return replace(state, review=replace(state.review, changes=tuple(changes)))


def seen(change: str, hunk: int | None = None) -> Pick:
    """A pick of what the session of these tests shows."""
    return Pick(change, hunk, {"c1": "a:b", "c2": ":c"}.get(change, ":"))


async def test_it_opens_at_the_first_hunk_that_waits():
    app = PaneApp(ReviewPane, reviewed(*CHANGES))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert str(app.pane.title_text) == "Review ●3 · api.py 1 of 2 · change 1 of 2"
        assert app.line_with("+ four")[1] == "▌"
        assert app.line_with("src/api.py").endswith("+2 −2")
        assert app.line_with("new.py").endswith("new · +1 −0")


async def test_a_change_that_names_no_file_is_shown_with_its_reason():
    why = "the answer shows a SEARCH block without a file name; nothing to apply"
    app = PaneApp(ReviewPane, reviewed(Change("c1", 1, UNNAMED, "edit", "failed", reason=why)))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert why in app.text
        assert UNNAMED not in app.text and UNNAMED not in str(app.pane.title_text)


async def test_each_key_decides_one_hunk_and_goes_on_to_the_next():
    app = PaneApp(ReviewPane, reviewed(*CHANGES))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("a")
        await pilot.pause()
        assert str(app.pane.title_text).partition(" · ")[2] == "api.py 1 of 2 · change 2 of 2"
        await pilot.press("s")
        await pilot.pause()
        assert str(app.pane.title_text).partition(" · ")[2] == "new.py 2 of 2 · change 1 of 1"
        await pilot.press("a")
        await pilot.pause()
        assert app.noted.named("review.apply") == [([seen("c1", 0)],), ([seen("c2", 0)],)]
        assert app.noted.named("review.skip") == [([seen("c1", 1)],)]
        assert "2 files written  " in app.text


async def test_keys_pressed_faster_than_they_are_done_decide_one_hunk_each():
    app = PaneApp(ReviewPane, reviewed(*CHANGES))
    async with app.run_test(size=(80, 24)) as pilot:
        pane = app.pane
        assert isinstance(pane, ReviewPane)
        pane.commands["apply"]()
        pane.commands["apply"]()
        pane.commands["apply"]()
        pane.commands["apply"]()
        await pilot.pause()
        await app.workers.wait_for_complete()
        assert app.noted.named("review.apply") == [([seen("c1", 0)],), ([seen("c1", 1)],), ([seen("c2", 0)],)]


async def test_all_is_asked_for_while_a_reply_is_still_coming_and_not_when_nothing_can_come():
    for phase, asked in (("streaming", [((),)]), ("idle", [])):
        session = NotedSession(State(turn=TurnSlice(1, phase)))
        app = PaneApp(ReviewPane, session)
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press("A")
            await pilot.pause()
            assert app.noted.named("review.apply") == asked


async def test_a_file_and_all_are_decided_at_once():
    app = PaneApp(ReviewPane, reviewed(*CHANGES))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("d")
        await pilot.pause()
        assert app.noted.named("review.skip") == [([seen("c1")],)]
        await pilot.press("A")
        await pilot.press("A")
        await pilot.pause()
        assert app.noted.named("review.apply") == [((),)]


async def test_keys_walk_through_hunks_and_files_and_the_place_is_kept():
    session = reviewed(*CHANGES)
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("n")
        await pilot.pause()
        assert app.line_with("+ thirty")[1] == "▌"
        await pilot.press("]")
        await pilot.pause()
        assert "brand new" in app.text
        assert session.state.layout.place["review"] == {"change": "c2", "hunk": 0}
        await pilot.press("p")
        await pilot.pause()
        assert app.line_with("+ thirty")[1] == "▌"
        assert [call[0] for call in session.named("review.diff")] == ["c1", "c2"]
    again = PaneApp(ReviewPane, session)
    async with again.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert str(again.pane.title_text).partition(" · ")[2] == "api.py 1 of 2 · change 2 of 2"


async def test_the_mouse_does_what_the_keys_do():
    app = PaneApp(ReviewPane, reviewed(*CHANGES))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        lines = app.text.split("\n")
        await pilot.click(offset=(6, next(y for y, line in enumerate(lines) if "new.py" in line)))
        await pilot.pause()
        assert "brand new" in app.text
        words = app.text.split("\n")[-1]
        await pilot.click(offset=(words.index("skip"), 23))
        await pilot.pause()
        assert app.noted.named("review.skip") == [([seen("c2", 0)],)]
        await pilot.pause()
        lines = app.text.split("\n")
        await pilot.click(offset=(20, next(y for y, line in enumerate(lines) if "+ thirty" in line)))
        await pilot.pause()
        assert str(app.pane.title_text).partition(" · ")[2] == "api.py 1 of 2 · change 2 of 2"


async def test_undo_goes_back_to_what_it_opened_again():
    point = Checkpoint("p1", 1, (), (Pick("c2", 0),))
    first, second = CHANGES
    applied = replace(second, hunks=("applied",), state="applied")
    session = reviewed(first, applied, checkpoints=(point,))
    session.effects["review.undo"] = lambda: State(
        review=ReviewSlice(CHANGES, (replace(point, undone=True),))
    )
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("u")
        await pilot.pause()
        assert str(app.pane.title_text).partition(" · ")[2] == "new.py 2 of 2 · change 1 of 1"
        await pilot.press("U")
        assert session.named("review.redo") == [()]


async def test_the_file_is_opened_at_the_hunk():
    session = reviewed(*CHANGES)
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("n")
        await pilot.pause()
        await pilot.press("o")
        await pilot.pause()
        assert session.named("files.open") == [("src/api.py", 31)]


async def test_a_comment_is_written_below_and_shown_with_its_change():
    session = reviewed(*CHANGES)
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("n")
        await pilot.pause()
        await pilot.press("c", *"why?", "enter")
        await pilot.pause()
        assert session.named("review.comment") == [(seen("c1", 1), "why?")]
        await pilot.press("c")
        await pilot.pause()
        assert "sent with your next message" in app.text
        await pilot.press("x", "escape")
        await pilot.pause()
        assert len(session.named("review.comment")) == 1 and not session.named("review.revert")
        noted = replace(CHANGES[0], comments=(Comment("why?", 1),))
        fact = "About change 2 of your change to src/api.py the person says: why?"
        waits = ConversationSlice(untold=(fact,))
        app.show(State(review=ReviewSlice((noted, CHANGES[1])), conversation=waits))
        await pilot.pause()
        assert "sent with your next message: change 2: why?" in app.text
        app.show(State(review=ReviewSlice((noted, CHANGES[1]))))
        await pilot.pause()
        assert "sent to the model: change 2: why?" in app.text


async def test_a_hunk_is_edited_by_hand():
    session = reviewed(*CHANGES)
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("e")
        await pilot.pause()
        assert "Edit change 1 of src/api.py" in app.text
        await pilot.press("end", *" more", "ctrl+g")
        await pilot.pause()
        assert session.named("review.edit_hunk") == [(seen("c1", 0), "four more\n")]
        await pilot.press("e")
        await pilot.pause()
        await pilot.press("x", "escape")
        await pilot.pause()
        assert len(session.named("review.edit_hunk")) == 1


async def test_what_is_written_is_about_the_hunk_that_was_seen_and_stays_where_that_is_gone():
    def gone(*_: object) -> State:
        raise SessionError("It was another", "look again")

    session = reviewed(*CHANGES)
    session.effects |= {"review.edit_hunk": gone, "review.comment": gone}
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for key, words, last in (("e", "mine ", "ctrl+g"), ("c", "why?", "enter")):
            app.show(State(review=ReviewSlice(CHANGES)))
            await pilot.pause()
            await pilot.press(key, *words)
            app.show(
                State(review=ReviewSlice((replace(CHANGES[0], new="z", hunks=("pending",)), CHANGES[1])))
            )
            await pilot.press(last)
            await pilot.pause()
            if key == "e":
                assert session.named("review.edit_hunk") == [(seen("c1", 0), "mine four\n")]
                assert "mine four" in app.text  # the dialog is there again
                await pilot.press("escape")
            else:
                assert session.named("review.comment") == [(seen("c1", 0), "why?")]
                await pilot.press("c", "enter")
                assert session.named("review.comment")[1] == (Pick("c1", 0, "a:z"), "why?")
        await pilot.press("escape")


async def test_applied_hunks_files_and_todos_are_taken_back():
    tied = [
        replace(change, todo="t1", state="applied", hunks=("applied",) * len(change.hunks))
        for change in CHANGES
    ]
    session = reviewed(*tied)
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("n", "x", "X", "Z")
        await pilot.pause()
        assert session.named("review.revert") == [
            ([seen("c1", 1)],),
            ([seen("c1")],),
            ([seen("c1"), seen("c2")],),
        ]


async def test_the_changes_of_a_todo_are_decided_together():
    other = replace(CHANGES[1], id="c3", path="other.py")
    tied = [*(replace(change, todo="t1") for change in CHANGES), other]
    session = reviewed(*tied)
    session.diffs["c3"] = NEW
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("t")
        await pilot.pause()
        assert session.named("review.apply") == [([seen("c1"), seen("c2")],)]
        assert str(app.pane.title_text).partition(" · ")[2].startswith("other.py")


async def test_the_diff_is_shown_side_by_side_and_back():
    app = PaneApp(ReviewPane, reviewed(*CHANGES))
    async with app.run_test(size=(100, 24)) as pilot:
        await pilot.pause()
        await pilot.press("v")
        await pilot.pause()
        left, right = app.line_with("four").split("│")
        assert "- line 4" in left and "+ four" in right
        await pilot.press("n", "v")
        await pilot.pause()
        assert "│" not in app.line_with("+ thirty")
        assert str(app.pane.title_text).partition(" · ")[2] == "api.py 1 of 2 · change 2 of 2"


REGIONS = (
    Region(("same\n",)),
    Region((), ("old\n",), ("mine\n",), ("new\n",), conflict=True),
    Region(tuple(f"line {n}\n" for n in range(12))),
    Region((), ("old 2\n",), ("mine 2\n",), ("new 2\n",), conflict=True),
)
CONFLICT = ConflictView("src/api.py", "the same lines", REGIONS, now="abc")


async def test_a_conflict_shows_three_sides_and_is_settled_place_by_place():
    session = reviewed(replace(CHANGES[0], state="conflict", reason="The same lines."))
    session.conflicts["c1"] = CONFLICT
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(80, 30)) as pilot:
        await pilot.pause()
        assert "base: the version that the model saw" in app.text and "6 lines without conflict" in app.text
        assert app.line_with("mine")[1] == "▌"
        await pilot.press("n")
        await pilot.pause()
        assert app.line_with("mine 2")[1] == "▌"
        await pilot.press("3")
        await pilot.pause()
        assert app.line_with("+ new")[1] == "▌" and "✓ theirs" in app.text
        assert session.named("review.resolve") == []
        await pilot.press("1")
        await pilot.pause()
        assert session.named("review.resolve") == [("c1", ["yours", "both"], {}, "abc")]


async def test_a_conflict_of_two_sub_tasks_names_both_and_is_given_back_to_one():
    broken = replace(CHANGES[0], state="conflict", tasks=("tests",), rival="c0")
    session = reviewed(replace(CHANGES[0], id="c0", tasks=("api",)), broken)
    session.diffs["c0"] = session.diffs["c1"]
    session.conflicts["c1"] = replace(CONFLICT, yours_name="“api”", theirs_name="“tests”")
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(110, 30)) as pilot:
        await pilot.press("right_square_bracket")
        await pilot.pause()
        assert app.line_with("yours: the version of “api”") and app.line_with(
            "theirs: the version of “tests”"
        )
        assert "b return" in app.text
        for keys in (("b", "enter"), ("b", "down", "enter"), ("b", "escape")):
            await pilot.press(*keys)
            await pilot.pause()
        assert session.named("subtasks.redo") == [("c1", "tests"), ("c1", "api")]


async def test_a_place_of_a_conflict_is_written_by_hand_or_taken_with_the_mouse():
    session = reviewed(replace(CHANGES[0], state="conflict", reason="The same lines."))
    session.conflicts["c1"] = CONFLICT
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(80, 30)) as pilot:
        await pilot.pause()
        await pilot.press("e")
        await pilot.pause()
        assert "conflict 1 of 2" in app.text
        await pilot.press(*"by ", "ctrl+g")
        await pilot.pause()
        assert "by hand" in app.text
        rows = app.text.split("\n")
        await pilot.click(offset=(6, max(y for y, row in enumerate(rows) if "theirs: the proposed" in row)))
        await pilot.pause()
        assert session.named("review.resolve") == [("c1", ["theirs", "theirs"], {0: "by mine\nnew\n"}, "abc")]


async def test_keys_about_a_text_wait_until_it_is_fetched(monkeypatch):
    session = reviewed(replace(CHANGES[0], state="conflict", reason="The same lines."))
    session.conflicts["c1"] = CONFLICT
    fetched = asyncio.Event()

    async def slow(session: NotedSession, change_id: str) -> ConflictView:
        await fetched.wait()
        return session.conflicts[change_id]

    monkeypatch.setattr(NotedSession, "review_conflict", slow)
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(80, 30)) as pilot:
        await pilot.press("1", "e")
        assert "old" not in app.text
        fetched.set()
        await pilot.pause()
        await pilot.pause()
        assert "conflict 2 of 2" in app.text
        await pilot.press("ctrl+g")
        await pilot.pause()
        assert session.named("review.resolve") == [("c1", ["yours", "theirs"], {1: "mine 2\nnew 2\n"}, "abc")]


async def test_any_apply_is_undone_from_the_list_after_a_look_at_what_it_would_do():
    points = (
        Checkpoint("k1", 1, (FileStep("src/api.py", "a", "b"),), (Pick("c1"),)),
        Checkpoint("k2", 2, (FileStep("new.py", "", "c"),), (Pick("c2"),), undone=True),
    )
    session = reviewed(*CHANGES, checkpoints=points)
    session.answers["review.preview"] = lambda name: [
        Preview(API if name == "k1" else NEW, merged=name == "k1")
    ]
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("H")
        await pilot.pause()
        assert "brand new" in app.text and app.line_with("k2").endswith("undone · Enter: redo")
        await pilot.press("down")
        await pilot.pause()
        assert "+ four" in app.text and "src/api.py: merged with what changed since" in app.text
        await pilot.press("enter")
        await pilot.pause()
        assert session.named("review.undo") == [("k1",)] and session.named("review.redo") == []


async def test_a_conflict_and_how_a_place_was_found_are_told():
    conflict = replace(CHANGES[0], state="conflict", reason="Line 5 is another now.", rung="near")
    app = PaneApp(ReviewPane, reviewed(conflict, CHANGES[1]))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.line_with("src/api.py").endswith("conflict · placed by similarity · +2 −2")
        assert "Line 5 is another now." in app.text
        assert str(app.pane.title_text).partition(" · ")[2].startswith("new.py 2 of 2")


async def test_the_key_leads_to_the_change_that_its_line_names_while_others_are_open():
    failed = replace(CHANGES[1], state="failed")
    session = NotedSession(State(review=ReviewSlice((CHANGES[0], failed)), turn=TurnSlice(1)))
    session.diffs = {"c1": API, "c2": NEW}
    async with PaneApp(ReviewPane, session).run_test(size=(80, 24)) as pilot:
        pane = pilot.app.query_one(ReviewPane)
        pilot.app.set_focus(None)
        pane.go(ReviewPosition("c1"))
        pane.lead()
        assert pane.position == ReviewPosition("c2")
        pane.go(ReviewPosition("c1"))
        pane.lead()
        assert pane.position == ReviewPosition("c1")


async def test_a_change_that_conflicts_is_skipped_as_a_whole():
    conflict = replace(CHANGES[0], state="conflict", reason="Line 5 is another now.")
    session = reviewed(conflict)
    session.effects["review.skip"] = lambda picks: State(
        review=ReviewSlice((replace(conflict, state="skipped"),))
    )
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("s")
        await pilot.pause()
        assert session.named("review.skip") == [([seen("c1")],)]
        assert "1 skipped  " in app.text


async def test_a_diff_that_cannot_be_made_is_one_sentence():
    session = reviewed(*CHANGES)
    session.diffs["c1"] = FileError("src/api.py is a folder now", "move the folder away")
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "src/api.py is a folder now: move the folder away" in app.text


async def test_changes_without_lines_and_an_empty_review_are_told_in_words():
    move = Change("c3", 1, "a.py", "rename", rename_to="b.py")
    session = reviewed(move)
    session.diffs["c3"] = Diff("a.py", ("x\n",), ())
    app = PaneApp(ReviewPane, session)
    async with app.run_test(size=(80, 10)) as pilot:
        await pilot.pause()
        assert "a.py becomes b.py" in app.text
        await pilot.press("a")
        await pilot.pause()
        assert session.named("review.apply") == [([seen("c3", None)],)]
        app.show(State())
        await pilot.pause()
        assert "Nothing is written until" in app.text
        await pilot.press("a", "s", "n", "]", "e", "c", "o", "x", "t", "1", "v")


async def test_hostile_text_stays_text_at_any_width():
    change = Change("c1", 1, HOSTILE, "rename", "conflict", rename_to=HOSTILE, reason=HOSTILE, rung=HOSTILE)
    session = reviewed(change)
    session.diffs["c1"] = Diff(HOSTILE, (), (Hunk(0, (), (HOSTILE,)),))
    for size in ((20, 12), (120, 40)):
        app = PaneApp(ReviewPane, session)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            assert "[red]" in app.text and "\x1b" not in app.text


def test_a_file_that_is_partly_decided_looks_it_and_says_who_made_it_and_what_is_new():
    first = Change("c1", 1, "a.py", "edit", hunks=("applied", "skipped", "pending"), tasks=("api",))
    later = Change("c2", 2, "b.py", "edit", hunks=("pending",))
    rows = change_rows((first, later))
    lines = [row.line for row in rows if isinstance(row.line, Line)]
    said = ["".join(piece.text for piece in (*line.left, *line.right[:1])) for line in lines]
    assert said[0].startswith("◐ a.py") and "2/3 ✓1" in said[0] and "by api" in said[0]
    assert "new in turn 2" in said[1] and "new in" not in said[0]
    (alone,) = change_rows((Change("c1", 0, "a.py", "edit", hunks=("pending",), tasks=("api",)),))
    assert isinstance(alone.line, Line) and "turn" not in "".join(piece.text for piece in alone.line.right)
    assert progress(later) == "" == progress(Change("c3", 1, "a", "edit", "applied", hunks=("applied",)))


async def test_a_later_turns_changes_are_selected_and_what_was_applied_stays_listed_with_its_mark():
    app = PaneApp(ReviewPane, reviewed(CHANGES[0]))
    later = replace(CHANGES[1], turn=2)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("a")
        await pilot.pause()
        assert app.line_with("◐ src/api.py").endswith("1/2 ✓1 · +2 −2")
        for away in (False, True):  # where the person works in the review, the place stays
            if away:
                app.screen.set_focus(None)
                app.pane.show(reviewed(CHANGES[0]).state)
            app.show(State(review=ReviewSlice((replace(CHANGES[0], hunks=("applied", "pending")), later))))
            await pilot.pause()
            assert ("▌" in app.line_with("new in turn 2")) is away
        done = replace(CHANGES[0], state="applied", hunks=("applied", "applied"), turn=2)
        app.show(State(review=ReviewSlice((done, later))))
        await pilot.pause()
        assert app.line_with("✓ src/api.py").endswith("applied · +2 −2")


def showing(app: PaneApp) -> list[str | None]:
    return [view.id for view in app.query(DiffView) if view.display]


async def test_two_columns_need_room():
    app = PaneApp(ReviewPane, reviewed(*CHANGES))
    async with app.run_test(size=(50, 24)) as pilot:
        await pilot.pause()
        await pilot.press("v")
        assert showing(app) == ["one-column"]
        await pilot.resize_terminal(120, 24)
        await pilot.pause()
        assert showing(app) == ["two-columns"]
