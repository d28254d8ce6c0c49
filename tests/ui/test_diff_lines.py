from __future__ import annotations

import difflib

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.edits.change import Diff, Hunk
from tui_agent.ui.diff.diff_lines import DiffLines, changed_words

TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "long line\n", "\n", "tab\t\n"]), max_size=40).map(
    tuple
)


def diff_of(base: tuple[str, ...], new: tuple[str, ...]) -> Diff:
    codes = difflib.SequenceMatcher(None, base, new, autojunk=False).get_opcodes()
    return Diff(
        "f.py", base, tuple(Hunk(i, base[i:j], new[k:n]) for tag, i, j, k, n in codes if tag != "equal")
    )


@given(TEXTS, TEXTS)
def test_the_lines_of_either_side_are_all_there_in_order(base, new):
    diff = diff_of(base, new)
    before, after, old, fresh = [], [], 1, 1
    for line in DiffLines(diff).lines:
        match line.kind:
            case "fold":
                before += base[line.at : line.at + line.number]
                after += base[line.at : line.at + line.number]
                old, fresh = old + line.number, fresh + line.number
            case "removed":
                assert line.number == old
                before.append(diff.hunks[line.hunk].removed[line.at])
                old += 1
            case "added":
                assert line.number == fresh
                after.append(diff.hunks[line.hunk].added[line.at])
                fresh += 1
            case "same":
                assert line.number == fresh
                before.append(base[line.at])
                after.append(base[line.at])
                old, fresh = old + 1, fresh + 1
    assert (tuple(before), tuple(after)) == (base, new)


@given(TEXTS, TEXTS)
def test_each_hunk_is_found_between_its_first_and_last_line(base, new):
    lines = DiffLines(diff_of(base, new))
    for hunk, (first, last) in enumerate(zip(lines.firsts, lines.lasts, strict=True)):
        assert {line.hunk for line in lines.lines[first : last + 1]} == {hunk}
        assert sum(line.hunk == hunk for line in lines.lines) == last + 1 - first


def test_three_lines_stay_around_a_hunk_and_the_rest_is_folded():
    base = tuple(f"{n}\n" for n in range(30))
    lines = DiffLines(Diff("f", base, (Hunk(15, base[15:16], ("new\n",)),)))
    kinds = [line.kind for line in lines.lines]
    assert kinds == ["fold", *["same"] * 3, "removed", "added", *["same"] * 3, "fold"]
    assert lines.lines[0].number == 12 and lines.lines[-1].number == 11


def test_a_stretch_can_be_unfolded():
    base = tuple(f"{n}\n" for n in range(30))
    diff = Diff("f", base, (Hunk(15, base[15:16], ("new\n",)),))
    lines = DiffLines(diff, unfolded={0})
    assert [line.kind for line in lines.lines].count("fold") == 1
    assert [line.number for line in lines.lines[:15]] == list(range(1, 16))


def test_words_that_differ_are_marked_and_unlike_lines_are_not():
    before, after = "return get(url)", "return get(url, timeout=5)"
    old, new = changed_words(before, after)
    assert old == [] and [after[a:b] for a, b in new] == [", timeout=5"]
    assert changed_words("import os", "class Client(Base):") == ([], [])


def test_an_ending_is_told_where_a_hunk_changes_only_that():
    lines = DiffLines(Diff("f", ("a\r\n",), (Hunk(0, ("a\r\n",), ("a\n",)),)))
    assert [lines.ending(line) for line in lines.lines] == ["CR LF", "LF"]
    lines = DiffLines(Diff("f", ("a",), (Hunk(0, ("a",), ("a\n",)),)))
    assert [lines.ending(line) for line in lines.lines] == ["no newline at the end", "LF"]


def test_tabs_and_wide_characters_count_as_the_cells_they_take():
    lines = DiffLines(Diff("f", (), (Hunk(0, (), ("\tx\n", "日本語\n")),)))
    assert lines.text(lines.lines[0]) == "    x"
    assert lines.tops(6) == [0, 1, 2] and lines.tops(4) == [0, 2, 4]
