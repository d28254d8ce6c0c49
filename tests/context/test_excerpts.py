"""Excerpts: the ends of a long text, the lines of a file that are asked about, and summaries of an answer."""

from __future__ import annotations

import pytest

from tui_agent.context import file_contents
from tui_agent.context.blocks import fenced, head_and_tail, holds, summary_line
from tui_agent.context.file_contents import (
    FilesInPrompt,
    LoadedFile,
    PortionRequest,
    Portions,
    bundle_section,
)

LINES = [f"line {number}" for number in range(1, 1_001)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a", "```\na\n```"), ("``` b", "````\n``` b\n````"), ("`", "```\n`\n```"), ("", "```\n\n```")],
)
def test_a_fence_is_longer_than_those_in_its_text(text: str, expected: str) -> None:
    assert fenced(text) == expected
    assert fenced(text, "py").startswith(expected.partition("\n")[0] + "py\n")


def test_both_ends_are_kept_with_three_quarters_for_the_end() -> None:
    shown, left = head_and_tail("\n".join(LINES), 1_000)
    lines = shown.splitlines()
    at = lines.index(f"[{left} lines left out]")
    assert lines[:at] + LINES[at : at + left] + lines[at + 1 :] == LINES
    assert 200 < sum(len(line) + 1 for line in lines[:at]) <= 250
    assert 700 < sum(len(line) + 1 for line in lines[at + 1 :]) <= 1_000 - 200


@pytest.mark.parametrize(
    ("text", "letters", "expected"),
    [
        ("x" * 50, 50, ("x" * 50, 0)),
        ("x" * 100 + "y" * 100, 100, ("x" * 30 + " [140 characters left out] " + "y" * 30, 0)),
        ("a\nb\nc", 4, ("a\n[1 line left out]\nc", 1)),
        ("a\nb", 2, ("a\nb", 0)),
        ("x" * 51, 50, ("x" * 51, 0)),
        ("x" * 61, 60, ("x" * 30 + " [1 characters left out] " + "x" * 30, 0)),
        ("aa\nbb\ncc\ndd\nee\nff", 12, ("aa\n[2 lines left out]\ndd\nee\nff", 2)),
        ("aa\nbb\ncc\ndd\nee\nff", 11, ("aa\n[3 lines left out]\nee\nff", 3)),
    ],
)
def test_short_and_single_lines(text: str, letters: int, expected: tuple[str, int]) -> None:
    assert head_and_tail(text, letters) == expected


def test_a_colour_is_not_cut_in_the_middle() -> None:
    for shift in range(12):
        line = "x" * (24 + shift) + "\x1b[38;5;100m" + "y" * 200 + "\x1b[0m" + "z" * (34 - shift)
        shown, _ = head_and_tail(line, 100)
        before, _, after = shown.partition(" [")
        assert before.count("\x1b") == before.count("m"), shown
        assert after.partition("] ")[2].count("\x1b") == after.partition("] ")[2].count("m"), shown


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("", ""),
        ("Done.", "Done."),
        ("One thing was changed. Then more happened.", "One thing was changed."),
        ("# Title\n\nFirst.\n\nThe\nlast.", "The last."),
        ("# Only a title", "# Only a title"),
        ("Words.\n\n| a | b |\n|---|---|", "Words."),
        ("Words first here. And on.\n\n```\ncode\n```", "Words first here."),
        ("First.\n\n" + "The long one ends here. " + "x" * 300, "The long one ends here."),
        ("y" * 400, "y" * 300),
        ("Begin.\n\n" + "m" * 200_000 + "\n\nThe end.", "The end."),
    ],
)
def test_a_summary_is_the_last_words_on_one_line(text: str, summary: str) -> None:
    assert summary_line(text) == summary


@pytest.mark.parametrize(
    ("text", "summary", "expected"),
    [
        ("First.\n  The  last.", "The last.", True),
        ("First. The last.", "The last.", False),
        ("The\nlast.", "The last.", True),
        ("", "", True),
        ("x", "", False),
    ],
)
def test_a_text_holds_a_summary_at_the_begin_of_a_line(text: str, summary: str, expected: bool) -> None:
    assert holds(text, summary) is expected


SOURCE = "".join(
    f"def function_{number}():\n    return {number}\n\n" for number in range(100)
)  # 300 lines of at most 25 bytes


@pytest.mark.parametrize(
    ("wanted", "room", "expected"),
    [
        (PortionRequest(), 100_000, ((1, 300),)),
        (PortionRequest(((10, 12),)), 100_000, ((10, 12),)),
        (PortionRequest(((10, 12), (200, 201))), 100_000, ((10, 12), (200, 201))),
        (PortionRequest(((299, 400),)), 100_000, ((299, 300),)),
        (PortionRequest(((5, 5),)), 100_000, ((1, 300),)),
        (PortionRequest(hits=(150,)), 500, ((1, 12), (146, 158))),
        (PortionRequest(words="change function_50 please"), 500, ((1, 12), (147, 159))),
        (PortionRequest(hits=(150,)), 750, ((1, 12), (142, 166))),
        (PortionRequest(), 5, ()),
        (PortionRequest(((10, 12),)), 5, ()),
    ],
)
def test_the_lines_that_are_asked_about_are_shown(
    wanted: PortionRequest, room: int, expected: tuple[tuple[int, int], ...]
) -> None:
    assert Portions(SOURCE, wanted).fitting(room) == expected


def test_portions_fit_their_room_and_grow_with_it() -> None:
    portions = Portions(SOURCE, PortionRequest(hits=(60, 240)))
    lines = SOURCE.splitlines(keepends=True)
    before = 0
    for room in range(300, 9_000, 300):
        shown = [line for first, last in portions.fitting(room) for line in lines[first - 1 : last]]
        assert sum(len(line) + 7 for line in shown) <= room
        assert len(shown) >= before * 0.5
        before = len(shown)
    assert before == len(lines)


def test_requested_lines_are_shown_as_far_as_they_fit() -> None:
    shown = Portions(SOURCE, PortionRequest(((1, 3), (10, 90)))).fitting(200)
    assert shown[0] == (1, 3) and shown[1][0] == 10 and 10 < shown[1][1] < 20 and len(shown) == 2


def test_a_definition_is_nearer_than_a_mention_and_a_frequent_word_is_ignored() -> None:
    text = "".join(f"call(target) # {n}\n" for n in range(30)) + "x\n" * 200 + "def target():\n" + "y\n" * 50
    ranges = Portions(text, PortionRequest(words="target")).fitting(600)
    assert any(first <= 231 <= last for first, last in ranges)
    frequent = "".join(f"word = {n}\n" for n in range(100))
    assert Portions(frequent, PortionRequest(words="word")).fitting(300)[0][0] == 1
    assert Portions("a.needle_x needle\n", PortionRequest(words="needle")).fitting(100) == ((1, 1),)


def test_bundled_files_have_their_facts_and_contents() -> None:
    assert bundle_section([]) == ""
    one = LoadedFile("a.py", "m1", "x = 1\n", 6, "bundle", action="named by AGENTS.md")
    other = LoadedFile("b.py", "m2", "y\nz\n", 4, "bundle")
    assert bundle_section([one, other]) == (
        "## AUTO-BUNDLED FILES\n### a.py (6 bytes, 1 lines, md5 m1)\nnamed by AGENTS.md\n1: x = 1\n\n"
        "### b.py (4 bytes, 2 lines, md5 m2)\n1: y\n2: z"
    )


@pytest.mark.parametrize(
    ("sent", "proposed", "attached", "expected"),
    [
        ({}, {}, {}, None),
        ({"a.py": "m"}, {}, {}, {"unchanged": True}),
        ({"a.py": "other"}, {}, {}, None),
        ({}, {"a.py": "m"}, {}, {"asProposed": True}),
        ({}, {"a.py": "m"}, {"a.py": "m"}, {"attached": True}),
        ({"b.py": "m"}, {}, {}, {"sameAs": "b.py"}),
    ],
)
def test_a_content_in_view_is_a_reference(
    sent: dict[str, str],
    proposed: dict[str, str],
    attached: dict[str, str],
    expected: dict[str, object] | None,
) -> None:
    view = FilesInPrompt(sent, proposed, attached)
    assert view.reference(LoadedFile("a.py", "m", "x\n", 2, "plan")) == expected
    if proposed and not attached:
        assert view.reference(LoadedFile("a.py", "m", "x\n", 2, "request")) is None
    assert FilesInPrompt({"b.py": "m"}).reference(LoadedFile("a.py", "m", "", 0, "plan")) is None


def test_places_are_shown_evenly_and_never_more_than_there_is_room_for() -> None:
    text = "\n".join(LINES)
    found = Portions(text, PortionRequest(hits=(300, 700))).fitting(3_000)
    assert found[0] == (1, 12) and len(found) == 3
    assert all(any(first <= hit <= last for first, last in found) for hit in (300, 700))
    assert sum(len(LINES[n - 1]) + 8 for first, last in found for n in range(first, last + 1)) <= 3_000
    assert Portions(text, PortionRequest()).fitting(100) == ((1, 7),)
    assert Portions(text, PortionRequest(words="Rename line 555")).fitting(600) == (
        (1, 12),
        (547, 571),
    )
    assert Portions("x" * 5_000, PortionRequest()).fitting(100) == ()


def test_places_in_a_text_of_several_pieces_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = PortionRequest(words="function_63 and function_7, not function_99999")
    whole = Portions(SOURCE, wanted).fitting(2_000)
    assert any(first <= 1 + 3 * 63 <= last for first, last in whole)
    for size in (1, 11, 12, 13, 500):
        monkeypatch.setattr(file_contents, "PIECE", size)
        assert Portions(SOURCE, wanted).fitting(2_000) == whole


def test_of_two_definitions_the_rarer_word_is_shown_first() -> None:
    text = "def common():\n" + "common()\n" * 9 + "x = 1\n" * 300 + "def rare():\n" + "y = 2\n" * 50
    ranges = Portions(text, PortionRequest(words="change common and rare")).fitting(300)
    assert any(first <= 311 <= last for first, last in ranges)
