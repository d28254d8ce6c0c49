"""Hunks: any subset gives what git gives."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Collection
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tui_agent.answers.values import ChangeRequest, EditHunk
from tui_agent.edits import forms
from tui_agent.edits import lines as alignment
from tui_agent.edits.change import Diff, Hunk, compose, counts, diff_of, hunks, unified
from tui_agent.edits.lines import matches, split
from tui_agent.errors import EditFailed

LINES = st.lists(
    st.sampled_from(["a\n", "b\n", "c\n", "\n", "  d\r\n", "-e\n", "+f\n", "\\ g\n", "h\x0cu\u2028v\n"]),
    max_size=14,
)
TEXTS = st.builds(lambda lines, end: "".join(lines) + end, LINES, st.sampled_from(["", "", "last"]))
#: A file of this project before and after one of its commits.
SAMPLES = Path(__file__).parent / "samples"
IN_PLACE = [HealthCheck.function_scoped_fixture]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    return tmp_path


def git_apply(folder: Path, base: str, patch: str) -> str:
    target = folder / "f.txt"
    target.write_bytes(base.encode())
    if patch:
        command = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "--unidiff-zero", "-"]
        subprocess.run(command, cwd=folder, input=patch.encode(), check=True, env=dict(os.environ))
    return target.read_bytes().decode()


def subsets(count: int) -> list[frozenset[int]]:
    return [frozenset(pick) for size in range(count + 1) for pick in combinations(range(count), size)]


@given(TEXTS, TEXTS)
def test_all_hunks_give_the_new_text_and_none_the_base(base: str, new: str) -> None:
    parts = hunks(base, new)
    assert compose(base, parts, range(len(parts))) == new
    assert compose(base, parts, ()) == base
    for before, after in pairwise(parts):
        assert before.start + len(before.removed) < after.start


@given(TEXTS, TEXTS)
def test_hunks_say_what_they_remove_and_add(base: str, new: str) -> None:
    lines = split(base)
    parts = hunks(base, new)
    for hunk in parts:
        assert tuple(lines[hunk.start : hunk.start + len(hunk.removed)]) == hunk.removed
        assert hunk.removed != hunk.added
    added, removed = counts(parts)
    assert len(split(new)) == len(lines) + added - removed


@settings(max_examples=25, deadline=None, suppress_health_check=IN_PLACE)
@given(base=TEXTS, new=TEXTS, steps=st.sampled_from([0, 8, alignment.MAX_STEPS]))
def test_any_subset_is_what_git_apply_gives(
    folder: Path, monkeypatch: pytest.MonkeyPatch, base: str, new: str, steps: int
) -> None:
    monkeypatch.setattr(alignment, "MAX_STEPS", steps)  # also what is given up on the way is a diff
    diff = diff_of("f.txt", base, new)
    if not base:
        return  # git makes the file anew: there is nothing to apply a part to
    for chosen in subsets(min(len(diff.hunks), 4)):
        composed = compose(base, diff.hunks, chosen)
        if composed:  # git would take an emptied file away
            assert composed == git_apply(folder, base, unified(with_hunks(diff, chosen)))


@settings(max_examples=5, deadline=None, suppress_health_check=IN_PLACE)
@given(st.data())
def test_all_subsets_of_six_hunks_are_what_git_apply_gives(folder: Path, data: st.DataObject) -> None:
    base = "".join(f"line {number}\n" for number in range(30))
    new = base
    for number in range(0, 30, 5):
        replaced = data.draw(st.sampled_from(["", "changed\n", "two\nlines\n", f"line {number}\nadded\n"]))
        new = new.replace(f"line {number}\n", replaced, 1)
    check_every_subset(folder, base, new)


@pytest.mark.parametrize("name", ["sent", "locate"])
def test_every_subset_of_the_hunks_of_a_real_patch_is_what_git_apply_gives(folder: Path, name: str) -> None:
    base, new = ((SAMPLES / f"{name}-{state}.txt").read_text() for state in ("before", "after"))
    assert len(hunks(base, new)) == 6
    check_every_subset(folder, base, new)


def with_hunks(diff: Diff, chosen: Collection[int]) -> Diff:
    return replace(diff, hunks=tuple(hunk for number, hunk in enumerate(diff.hunks) if number in chosen))


def check_every_subset(folder: Path, base: str, new: str) -> None:
    """Compose every subset of the hunks, and let git apply each to a file of its own, all in one patch."""
    parts = hunks(base, new)
    patches = []
    for number, chosen in enumerate(subsets(len(parts))):
        (folder / f"{number}.txt").write_text(base)
        patches.append(unified(with_hunks(diff_of(f"{number}.txt", base, new), chosen)))
    if any(patches):
        command = ["git", "apply", "--whitespace=nowarn", "-"]
        subprocess.run(command, cwd=folder, input="".join(patches).encode(), check=True)
    for number, chosen in enumerate(subsets(len(parts))):
        assert (folder / f"{number}.txt").read_text() == compose(base, parts, chosen), chosen


@settings(max_examples=25, deadline=None, suppress_health_check=IN_PLACE)
@given(base=TEXTS, new=TEXTS)
def test_git_takes_the_patch_as_a_whole_with_checks(folder: Path, base: str, new: str) -> None:
    patch = unified(diff_of("f.txt", base, new))
    if base and new:
        assert git_apply(folder, base, patch) == new


def test_equal_lines_are_runs_in_order() -> None:
    assert matches(["a", "b", "c", "d"], ["a", "x", "c", "d"]) == [(0, 0, 1), (2, 2, 2)]
    assert matches([], ["a"]) == matches(["b"], ["a"]) == []


def test_one_change_in_many_lines_is_one_hunk() -> None:
    base = "}\n" * 30_000
    new = "}\n" * 15_000 + "x\n" + "}\n" * 15_000
    assert hunks(base, new) == (Hunk(15_000, (), ("x\n",)),)


def test_a_file_of_twenty_thousand_lines_with_many_changes() -> None:
    lines = [f"{number % 700}\n" if number % 3 else "\n" for number in range(20_000)]
    changed = [line if number % 97 else f"new {number}\n" for number, line in enumerate(lines)]
    parts = hunks("".join(lines), "".join(changed))
    assert compose("".join(lines), parts, range(len(parts))) == "".join(changed)
    assert counts(parts)[0] < 1_000


@pytest.mark.parametrize("kinds", [1_000_000, 3_000, 300, 10])
def test_texts_that_have_nothing_to_do_with_each_other_are_compared_in_few_steps(
    kinds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(7)
    one, two = ("".join(f"{draw.randrange(kinds)}\n" for _ in range(4_000)) for _ in range(2))
    asked: list[int] = []
    shortest = alignment.shortest_matches

    def counted(old: list[str], new: list[str], most: int) -> list[alignment.Match] | None:
        found = shortest(old, new, most)
        edits = most if found is None else len(old) + len(new) - 2 * sum(length for *_, length in found)
        asked.append(edits * edits // 2)
        return found

    monkeypatch.setattr(alignment, "shortest_matches", counted)
    parts = hunks(one, two)
    assert compose(one, parts, range(len(parts))) == two
    assert compose(one, parts, ()) == one
    assert sum(asked) <= alignment.MAX_STEPS


def test_a_long_text_of_few_kinds_of_lines_shows_what_changed_and_little_more() -> None:
    draw = random.Random(7)
    lines = [f"{draw.randrange(50)}\n" for _ in range(8_000)]
    changed = [line if draw.random() > 0.05 else "new\n" for line in lines]
    parts = hunks("".join(lines), "".join(changed))
    assert compose("".join(lines), parts, range(len(parts))) == "".join(changed)
    assert counts(parts)[0] < 2 * changed.count("new\n")


def test_what_would_take_too_long_counts_as_different(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "MAX_ROUNDS", 0)
    assert hunks("a\nb\nc\n", "x\nb\ny\n") == (Hunk(0, ("a\n", "b\n", "c\n"), ("x\n", "b\n", "y\n")),)


SHORT = st.lists(st.sampled_from("abc"), max_size=12)


@given(SHORT, SHORT)
def test_the_shortest_way_is_as_short_as_the_longest_common_subsequence_allows(
    old: list[str], new: list[str]
) -> None:
    found = alignment.shortest_matches(old, new, 100)
    assert found is not None
    for i, j, length in found:
        assert old[i : i + length] == new[j : j + length]
    assert all(a[0] + a[2] <= b[0] and a[1] + a[2] <= b[1] for a, b in pairwise(found))
    assert sum(length for *_, length in found) == common(old, new)


def common(old: list[str], new: list[str]) -> int:
    """The length of the longest common subsequence, by the table."""
    row = [0] * (len(new) + 1)
    for line in old:
        above = row
        row = [0]
        for number, other in enumerate(new):
            row.append(above[number] + 1 if line == other else max(above[number + 1], row[number]))
    return row[-1]


def test_a_long_way_is_given_up() -> None:
    assert alignment.shortest_matches(["a"] * 50, ["b"] * 50, 99) is None


def test_only_line_feeds_end_lines() -> None:
    assert split("a\x0cb\u2028c\rd\x85e\nf") == ["a\x0cb\u2028c\rd\x85e\n", "f"]


@pytest.mark.parametrize(
    ("base", "ends_file", "anchors", "text"),
    [
        ("a\n", True, (), "a\nnew\n"),
        ("", False, (), "new\n"),
        ("a\n", False, (), None),
        ("def f():\n    a\n", False, ("def g():",), None),
    ],
)
def test_lines_that_are_only_added_need_a_place(
    base: str, ends_file: bool, anchors: tuple[str, ...], text: str | None
) -> None:
    request = ChangeRequest(
        "a.py", diff=(EditHunk("", "new\n", ends_file=ends_file, anchors=anchors, marks="+"),)
    )
    if text is None:
        with pytest.raises(EditFailed, match="does not say where"):
            forms.propose(request, base, 0.9)
    else:
        assert forms.propose(request, base, 0.9).new_text == text
