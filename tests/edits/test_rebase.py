from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from tui_agent.edits.change import Change
from tui_agent.edits.merge import followed, is_nothing, joined, rebased, remaining, with_texts
from tui_agent.files.text import md5


class Texts(dict[str, str]):
    """Texts under their hashes, as the blob store keeps them."""

    def keep(self, text: str) -> str:
        key = md5(text.encode())
        self[key] = text
        return key

    def change(self, name: str, base: str, new: str, **more: object) -> Change:
        made = Change(name, 0, "a.txt", "edit", base=self.keep(base), tasks=(name,), **more)  # ty: ignore[invalid-argument-type]
        return with_texts(made, base, new, self.keep)


def edited(lines: list[str], places: range, by: str, rng: random.Random) -> list[str]:
    """The lines with those at `places` changed, removed or followed by others."""
    made = []
    for number, line in enumerate(lines):
        if number not in places:
            made.append(line)
            continue
        match rng.choice(("change", "remove", "add")):
            case "change":
                made.append(f"{by} changed {line}")
            case "add":
                made += [line, f"{by} added\n"]
    return made


@pytest.mark.parametrize("seed", range(25))
def test_work_that_does_not_touch_joins_in_any_order_to_what_one_after_the_other_makes(seed: int) -> None:
    rng = random.Random(seed)
    lines = [f"{number} {rng.randint(0, 3)}\n" for number in range(60)]
    base = "".join(lines)
    # stretches of their own, with lines between them that nobody touches
    tasks = {f"t{n}": range(12 * n, 12 * n + rng.randint(1, 8)) for n in range(5)}
    texts, changes = Texts(), []
    in_turn = list(lines)
    for name, places in sorted(tasks.items(), key=lambda item: -item[1].start):
        mine = edited(lines, places, name, random.Random(seed))
        changes.append(texts.change(name, base, "".join(mine)))
        in_turn[places.start : places.stop] = mine[places.start : len(mine) - (len(lines) - places.stop)]
    rng.shuffle(changes)
    one = changes[0]
    for change in changes[1:]:
        one = joined(one, change, texts.get, texts.keep)
        assert one.state != "conflict"
    assert texts[one.new] == "".join(in_turn)
    assert set(one.tasks) == set(tasks) and one.base == changes[0].base


def test_what_the_person_skipped_stays_out_and_what_was_applied_stays_in() -> None:
    texts = Texts()
    base = "".join(f"{number}\n" for number in range(20))
    first = texts.change("a", base, base.replace("2\n", "two\n", 1).replace("\n9\n", "\nnine\n"))
    decided = replace(first, hunks=("skipped", "applied"))
    assert remaining(decided, texts.get) == base.replace("\n9\n", "\nnine\n")
    one = joined(decided, texts.change("b", base, base + "more\n"), texts.get, texts.keep)
    assert texts[one.new] == base.replace("\n9\n", "\nnine\n") + "more\n"


def test_a_rename_and_an_edit_are_in_conflict() -> None:
    texts = Texts()
    moved = texts.change("a", "one\n", "one\n", rename_to="b.txt")
    one = joined(moved, texts.change("b", "one\n", "two\n"), texts.get, texts.keep)
    assert (one.state, one.rival) == ("conflict", "a")
    assert one.reason == "“a” and “b” do not go together: one of them removes or renames it"


def test_what_deletes_or_makes_again_where_the_other_ended_is_no_conflict() -> None:
    texts = Texts()
    edit = texts.change("a", "one\n", "two\n")
    gone = replace(texts.change("b", "two\n", ""), kind="delete", new="")
    both = joined(edit, gone, texts.get, texts.keep)
    assert (both.kind, both.base, both.new, both.state, both.tasks) == (
        "delete",
        edit.base,
        "",
        "pending",
        ("a", "b"),
    )
    again = replace(texts.change("c", "", "three\n"), kind="create", base="")
    both = joined(both, again, texts.get, texts.keep)
    assert (both.kind, both.base, texts[both.new], both.state) == ("edit", edit.base, "three\n", "pending")
    made = replace(texts.change("a", "", "two\n"), kind="create", base="")
    assert is_nothing(joined(made, gone, texts.get, texts.keep))
    moved = replace(texts.change("b", "two\n", "two\n"), kind="rename", rename_to="b.txt")
    both = joined(made, moved, texts.get, texts.keep)
    assert (both.kind, both.path, both.rename_to, both.base) == ("create", "b.txt", "", "")


@pytest.mark.parametrize(
    ("fields", "now", "state", "text"),
    [
        ({}, "one\nTWO\n", "applied", None),
        ({}, "zero\n\n\none\ntwo\n", "merged", "zero\n\n\none\nTWO\n"),
        ({}, "one\n2\n", "conflict", None),
        ({}, None, "conflict", None),
        ({"kind": "create"}, "one\nTWO\n", "applied", None),
        ({"kind": "create"}, "other\n", "conflict", None),
        ({"kind": "delete"}, "other\n", "conflict", None),
        ({"executable": True}, "one\nTWO\n", "merged", "one\nTWO\n"),
        ({"kind": "rename", "rename_to": "b.txt"}, "one\nTWO\n", "merged", "one\nTWO\n"),
    ],
)
def test_an_open_change_moves_to_the_current_text(
    fields: dict[str, object], now: str | None, state: str, text: str | None
) -> None:
    texts = Texts()
    base, new = "one\ntwo\n", "one\nTWO\n"
    change = replace(texts.change("c", base, new), **fields)
    moved = rebased(change, base, new, now, md5((now or "").encode()), texts.keep)
    assert moved.state == state and bool(moved.reason)
    if text is None:
        assert (moved.base, moved.new) == (change.base, change.new)
        assert set(moved.hunks) == ({"applied"} if state == "applied" else {"pending"})
    else:
        assert texts[moved.new] == text and moved.base == md5((now or "").encode())


@pytest.mark.parametrize(
    ("rung", "by_hand", "asks"),
    [("", False, False), ("exact", False, False), ("near", False, True), ("near", True, False)],
)
def test_a_guess_on_another_version_is_asked_about(rung: str, by_hand: bool, asks: bool) -> None:
    texts = Texts()
    change = replace(texts.change("c", "one\ntwo\n", "one\nTWO\n"), rung=rung, by_hand=by_hand)
    now = "zero\n\n\none\ntwo\n"
    assert bool(rebased(change, "one\ntwo\n", "one\nTWO\n", now, "h", texts.keep).ask) is asks


@pytest.mark.parametrize(
    ("fields", "hunks", "expected"),
    [
        ({}, True, ("b.txt", "", "edit", "pending")),
        ({"kind": "rename", "rename_to": "b.txt"}, True, ("b.txt", "", "edit", "pending")),
        ({"kind": "rename", "rename_to": "b.txt"}, False, ("b.txt", "", "edit", "applied")),
        (
            {"kind": "rename", "rename_to": "b.txt", "executable": True},
            False,
            ("b.txt", "", "edit", "pending"),
        ),
        ({"kind": "rename", "rename_to": "c.txt"}, False, ("b.txt", "c.txt", "rename", "pending")),
    ],
)
def test_a_change_follows_its_renamed_file(
    fields: dict[str, object], hunks: bool, expected: tuple[str, str, str, str]
) -> None:
    change = replace(Texts().change("c", "one\n", "two\n" if hunks else "one\n"), **fields)
    moved = followed(change, "b.txt")
    assert (moved.path, moved.rename_to, moved.kind, moved.state) == expected


def test_a_deletion_and_an_edit_of_one_file_do_not_go_together() -> None:
    texts = Texts()
    edit = texts.change("one", "a\n", "b\n")
    gone = replace(texts.change("two", "a\n", ""), kind="delete", new="")
    both = joined(edit, gone, texts.get, texts.keep)
    assert (both.state, both.rival) == ("conflict", "one")
    same = joined(gone, replace(gone, id="three"), texts.get, texts.keep)
    assert (same.state, same.kind) == ("pending", "delete")
