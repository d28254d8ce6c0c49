"""Conflicts in parts: what stands in each, and that any choice of sides is a text of their lines."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.edits.merge import Region, merge, merged_with_choices, regions, union

BASE = "a\nb\nc\nd\ne\n"


def test_the_three_sides_of_each_conflict_and_what_lies_between() -> None:
    parts = regions(BASE, "A\nb\nc\nd\nmine\n", "first\nb\nc\nd\ntheirs\n")
    assert parts == (
        Region((), ("a\n",), ("A\n",), ("first\n",), conflict=True),
        Region(("b\n", "c\n", "d\n")),
        Region((), ("e\n",), ("mine\n",), ("theirs\n",), conflict=True),
    )
    assert merged_with_choices(parts, ["yours", "theirs"]) == "A\nb\nc\nd\ntheirs\n"
    assert merged_with_choices(parts, ["both", "yours"]) == "A\nfirst\nb\nc\nd\nmine\n"
    assert merged_with_choices(parts, ["yours", "yours"], {0: "by hand\n"}) == "by hand\nb\nc\nd\nmine\n"


def test_a_missing_newline_at_the_end_stays_missing() -> None:
    parts = regions("a\nb", "a\nmine", "a\ntheirs")
    assert merged_with_choices(parts, ["yours"]) == "a\nmine"
    assert merged_with_choices(parts, ["theirs"]) == "a\ntheirs"
    assert merged_with_choices(parts, ["both"]) == "a\nmine\ntheirs"


def test_both_sides_have_the_lines_that_they_share_once() -> None:
    parts = regions("a\nz\n", "a\nimport os\nimport re\nz\n", "a\nimport os\nimport sys\nz\n")
    assert merged_with_choices(parts, ["both"]) == "a\nimport os\nimport re\nimport sys\nz\n"
    parts = regions("a\n", "a\none\nend", "a\ntwo\nend")
    assert merged_with_choices(parts, ["both"]) == "a\none\ntwo\nend"


def test_markers_in_the_texts_are_text() -> None:
    held = "<<<<<<< yours\nx\n=======\ny\n>>>>>>> theirs\n"
    parts = regions(held + "a\n", held + "mine\n", held + "theirs\n")
    assert parts[0] == Region(tuple(held.splitlines(keepends=True)))
    assert merged_with_choices(parts, ["yours"]) == held + "mine\n"


def test_a_side_without_a_file_is_one_conflict() -> None:
    parts = regions(BASE, None, "a\n")
    assert [region.conflict for region in parts] == [True]
    assert (parts[0].yours, parts[0].theirs) == ((), ("a\n",))


_line = st.sampled_from(["a\n", "b\n", "c\n", "<<<<<<<\n", "=======\n", "d\r\n", "\n"])
_text = st.lists(_line, max_size=7).map("".join)


@settings(max_examples=150, deadline=None)
@given(_text, _text, _text, st.sampled_from(["", "end"]))
def test_all_of_one_side_differs_from_it_only_where_the_other_merged_in(
    base: str, yours: str, theirs: str, end: str
) -> None:
    base, yours, theirs = base + end, yours + end, theirs + "other"
    parts = regions(base, yours, theirs)
    conflicts = [region for region in parts if region.conflict]
    assert len(conflicts) == merge(base, yours, theirs).conflicts
    for region in conflicts:
        assert "".join(region.base) in base
        assert "".join(region.yours) in yours and "".join(region.theirs) in theirs
    if not conflicts:
        assert merged_with_choices(parts, []) == merge(base, yours, theirs).text
    if len(conflicts) == 1 and len(parts) == 1:
        assert merged_with_choices(parts, ["both"]) == union(base, yours, theirs)
