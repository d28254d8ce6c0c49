from __future__ import annotations

from typing import Literal

from msgspec.structs import replace
from support.panes import HOSTILE, NotedSession, PaneApp
from textual.widgets import Input

from tui_agent.answers.plans import DirectoryAction, FileAction
from tui_agent.planning.chain import Attempt, Outcome
from tui_agent.store.state import ActionSlice, ListedFolder, PlanSlice, State, TurnSlice
from tui_agent.ui.panes.plan import PlanPane, duration
from tui_agent.ui.widgets.line_view import Rows

Ending = Literal["looking", "loaded", "asking", "skipped", "failed"]
PATTERNS = ("src/schema.ts", "**/schema.ts", "**/*Schema*")
SCHEMA = FileAction("Schema", PATTERNS, reason="Schema definition")


def planned(*actions: ActionSlice, waiting_for: str = "", **fields) -> State:
    turn = TurnSlice(1, "waiting" if waiting_for else "finding", waiting_for=waiting_for)
    return State(plan=PlanSlice(1, "words", actions, **fields), turn=turn)


def looked(*outcomes: Outcome, state: Ending = "looking", **fields) -> ActionSlice:
    matches: dict[Outcome, int] = {"hit": 1, "too_broad": 240}
    attempts = tuple(
        Attempt("Schema", PATTERNS[n], n + 1, 3, outcome, matches.get(outcome, 0), 4)
        for n, outcome in enumerate(outcomes)
    )
    return ActionSlice(SCHEMA, attempts, state, **fields)


def shown(state: State) -> PaneApp:
    return PaneApp(PlanPane, NotedSession(state))


async def test_an_action_shows_each_pattern_as_it_was_tried():
    app = shown(planned(looked("miss", "hit", state="loaded", loaded=("src/prompts/schema.ts",))))
    async with app.run_test(size=(24, 12)):
        lines = [line[1:].rstrip() for line in app.text.split("\n")]
        assert lines[:5] == [
            "▌✓ Schema          2/3",
            "   ✗ src/schema.ts 4ms",
            "   ✓ **/schema.ts  4ms",
            "   · **/*Schema*",
            "   → …rompts/schema.ts",
        ]
        assert str(app.pane.title_text) == "Plan 1/1"


async def test_attempts_are_seen_while_they_run():
    app = shown(planned(looked("miss", "looking")))
    async with app.run_test(size=(40, 12)) as pilot:
        assert app.line_with("**/schema.ts").endswith("looking …")
        app.show(planned(looked("miss", "too_broad", "looking")))
        await pilot.pause()
        assert app.line_with("**/schema.ts").endswith("240 matches")
        assert "●" in app.line_with("**/*Schema*")


async def test_what_the_program_tried_is_marked_and_what_the_person_replaced_stays():
    action = FileAction("Schema", ("a.ts",), by="model", extra=("lib/a.ts",))
    tried = (
        Attempt("Schema", "a.ts", 1, 1, "miss", ms=4, by="model"),
        Attempt("Schema", "lib/a.ts", 1, 1, "hit", 1, 4),
    )
    replaced = Attempt("Schema", "old.ts", 1, 1, "miss", ms=4, by="model")
    app = shown(planned(ActionSlice(action, tried, "loaded", loaded=("lib/a.ts",), earlier=(replaced,))))
    async with app.run_test(size=(60, 12)):
        assert app.line_with("Schema").endswith("1/1")
        assert app.line_with("lib/a.ts").endswith("built in · 4ms")
        assert "built in" not in app.line_with(" a.ts")
        assert app.text.index("old.ts") < app.text.index(" a.ts")


async def test_a_failure_shows_every_pattern_and_says_so():
    app = shown(planned(looked("miss", "miss", "miss", state="failed")))
    async with app.run_test(size=(60, 12)):
        assert all(pattern in app.text for pattern in PATTERNS)
        assert "not found" in app.text


async def test_a_question_is_answered_by_number():
    app = shown(planned(looked("miss", state="asking", nearest=("a.ts", "b.ts")), waiting_for="Schema"))
    async with app.run_test(size=(40, 14)) as pilot:
        assert "Which file is meant?" in app.text
        await pilot.press("3")
        assert app.noted.named("chat.answer") == []
        await pilot.press("2")
        assert app.noted.named("chat.answer") == [("Schema", "b.ts")]


async def test_a_question_is_answered_by_the_cursor_the_mouse_and_by_letting_go():
    app = shown(planned(looked("miss", state="asking", nearest=("a.ts", "b.ts")), waiting_for="Schema"))
    async with app.run_test(size=(40, 14)) as pilot:
        await pilot.press("enter")
        await pilot.press("x")
        await pilot.press("0")
        row = next(y for y, line in enumerate(app.text.split("\n")) if "2 b.ts" in line)
        await pilot.click(offset=(10, row))
        await pilot.click(offset=(10, row))
        await pilot.pause()
        assert app.noted.named("chat.answer") == [
            ("Schema", "a.ts"),
            ("Schema", ""),
            ("Schema", ""),
            ("Schema", "b.ts"),
        ]


async def test_a_question_is_answered_by_a_typed_path():
    app = shown(planned(looked("miss", state="asking"), waiting_for="Schema"))
    async with app.run_test(size=(40, 14)) as pilot:
        app.query_one(Input).focus()
        await pilot.press(*"s/1.ts", "enter")
        assert app.noted.named("chat.answer") == [("Schema", "s/1.ts")]
        app.show(planned(looked("miss", state="skipped")))
        await pilot.pause()
        assert not app.query_one(Input).display


async def test_a_question_about_a_secret_offers_a_mask_all_of_it_or_nothing():
    asks = "holds what looks like a GitHub token (line 2). What may the model see?"
    asking = looked(state="asking", nearest=("mask", "send"), question=asks)
    app = shown(planned(asking, waiting_for="Schema"))
    async with app.run_test(size=(60, 14)) as pilot:
        await pilot.pause()
        assert "a GitHub token (line 2)" in app.text and "none of these patterns" not in app.text
        assert "1 the file with masked secrets" in app.text and "2 the complete file" in app.text
        assert not app.query_one(Input).display
        for key in ("enter", "1", "2", "0", "x"):
            await pilot.press(key)
        answers = [answer for _, answer in app.noted.named("chat.answer")]
        assert answers == ["mask", "mask", "send", "", ""]


async def test_a_question_does_not_take_the_focus_from_where_the_person_works():
    app = shown(planned(looked("miss")))
    async with app.run_test(size=(40, 14)) as pilot:
        before = app.focused
        app.show(planned(looked("miss", state="asking", nearest=("a.ts",)), waiting_for="Schema"))
        await pilot.pause()
        assert app.focused is before and app.line_with("1 a.ts")[1] == "▌"


async def test_the_file_under_the_cursor_is_opened():
    app = shown(planned(looked("hit", state="loaded", loaded=("src/a.ts", "src/b.ts"))))
    async with app.run_test(size=(40, 14)) as pilot:
        await pilot.press("o")
        await pilot.press("down", "down", "enter")
        assert app.noted.named("files.open") == [("src/a.ts", 0), ("src/b.ts", 0)]


async def test_many_files_are_folded_until_asked_for():
    files = tuple(f"docs/{n}.md" for n in range(30))
    app = shown(planned(looked("hit", state="loaded", loaded=files, left_out=("docs/huge.md",))))
    async with app.run_test(size=(40, 50)) as pilot:
        assert "… 26 more" in app.text and "docs/20.md" not in app.text
        await pilot.press("end", "enter")
        assert "docs/20.md" in app.text
        assert app.line_with("docs/huge.md").endswith("left out")


async def test_folders_faults_and_who_planned_it_are_named():
    listed = (
        ListedFolder(DirectoryAction("docs", False, "*.md"), 12),
        ListedFolder(DirectoryAction("build"), error="build is ignored"),
    )
    folders = (DirectoryAction("src", True, "*.ts"),)
    state = planned(looked(), directories=folders, listed=listed, faults=("Too many patterns.",))
    app = shown(replace(state, plan=replace(state.plan, source="model")))
    async with app.run_test(size=(40, 14)):
        assert app.line_with("src/ ").endswith("*.ts · and below")
        assert app.line_with("docs/ ").endswith("*.md · 12 entries")
        assert app.line_with("build/ ").endswith("build is ignored")
        assert "! Too many patterns." in app.text
        assert str(app.pane.title_text) == "Plan 0/1"


async def test_nothing_is_drawn_anew_when_only_the_countdown_moved():
    state = planned(looked("miss"))
    app = shown(state)
    async with app.run_test(size=(40, 14)):
        rows = app.query_one(Rows).rows
        app.show(replace(state, turn=replace(state.turn, retry_seconds=3)))
        assert app.query_one(Rows).rows is rows


async def test_hostile_names_stay_text():
    action = FileAction(HOSTILE, (HOSTILE, HOSTILE), reason=HOSTILE)
    attempts = (Attempt(HOSTILE, HOSTILE, 1, 2, "invalid", why=HOSTILE),)
    slot = ActionSlice(action, attempts, "asking", loaded=(HOSTILE,), left_out=(HOSTILE,), nearest=(HOSTILE,))
    state = planned(slot, waiting_for=HOSTILE, directories=(DirectoryAction(HOSTILE),), faults=(HOSTILE,))
    for size in ((24, 30), (120, 40)):
        app = shown(state)
        async with app.run_test(size=size):
            assert "[red]" in app.text and "\x1b" not in app.text


def test_durations_are_short():
    assert [duration(ms) for ms in (0.2, 4.4, 999.9, 1234)] == ["<1ms", "4ms", "1000ms", "1.2s"]


async def test_an_action_is_retried_let_go_and_its_patterns_are_changed_by_key():
    app = shown(planned(looked("miss", "hit", state="loaded", loaded=("a.ts",), others=("b.ts",))))
    async with app.run_test(size=(50, 14)) as pilot:
        await pilot.press("r", "x")
        assert app.noted.named("chat.decide") == [("Schema", "", PATTERNS), ("Schema",)]
        await pilot.press("e")
        assert app.query_one(Input).value == "src/schema.ts | **/schema.ts | **/*Schema*"
        app.query_one(Input).value = "lib/s.ts |**/{s,t}.ts| "
        await pilot.press("enter")
        assert app.noted.named("chat.decide")[-1] == ("Schema", "", ["lib/s.ts", "**/{s,t}.ts"])
        assert not app.query_one(Input).display


async def test_another_match_is_taken_from_the_list_or_by_its_name():
    app = shown(planned(looked("hit", state="loaded", loaded=("a.ts",), others=("a.ts", "lib/b.ts"))))
    async with app.run_test(size=(50, 14)) as pilot:
        assert app.line_with("lib/b.ts").endswith("or this")
        await pilot.press("end", "enter")
        await pilot.press("c", *"c.ts", "enter")
        assert app.noted.named("chat.decide") == [("Schema", "lib/b.ts"), ("Schema", "c.ts")]


async def test_of_files_of_one_name_one_or_all_are_taken():
    slot = looked("hit", state="asking", nearest=("a/s.ts", "b/s.ts"), several=True)
    app = shown(planned(slot, waiting_for="Schema"))
    async with app.run_test(size=(60, 14)) as pilot:
        assert "Several files have this name" in app.text and "none of these" not in app.text
        await pilot.press("0")
        await pilot.press("2")
        await pilot.press("x")
        assert app.noted.named("chat.decide") == [("Schema", "", (), True)]
        assert app.noted.named("chat.answer") == [("Schema", "b/s.ts"), ("Schema", "")]
