from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from tui_agent.edits.change import Change
from tui_agent.edits.rebase import is_nothing, joined, remaining, with_texts
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
