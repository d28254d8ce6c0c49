"""Places that are only nearly what was asked for: anchored, or of another number of lines; never a wrong one."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tui_agent.answers.values import ChangeRequest, SearchReplace
from tui_agent.edits import forms, near
from tui_agent.edits.graft import grafted
from tui_agent.edits.ground import Ground
from tui_agent.errors import Ambiguous, EditFailed

FILE = """import os


def read_settings(path, encoding):
    # the file may be large
    with open(path, encoding=encoding) as file:
        lines = file.readlines()
    return parse_settings(lines, path)


def write_settings(path, settings):
    with open(path, "w") as file:
        file.writelines(format_settings(settings))
"""
BLOCK = FILE[FILE.index("def read") : FILE.index("\n\ndef write")]


def edit(base: str, search: str, replace: str, threshold: float = 0.9) -> tuple[str, str]:
    request = ChangeRequest("a.py", edits=(SearchReplace(search, replace),))
    proposal = forms.propose(request, base, threshold)
    assert proposal.new_text is not None
    return proposal.new_text, proposal.rung


@pytest.mark.parametrize(
    ("rung", "search"),
    [
        ("anchored", BLOCK.replace("    # the file may be large\n", "")),
        ("anchored", BLOCK.replace("large\n", "large\n    # beware\n")),
        ("anchored", BLOCK.replace("open(path, encoding", "open(\n        path, encoding")),
        ("anchored", BLOCK.replace("# the file may be large", "# this file is sometimes long")),
        (
            "near",
            BLOCK.replace("path, encoding):", "path, coding):").replace(
                "may be large", "may be\n    # large"
            ),
        ),
        ("near", BLOCK[: BLOCK.index("    return")].replace("as file:\n        lines", "as file: lines")),
    ],
)
def test_a_block_that_differs_a_little_is_found_and_only_the_edited_line_changes(
    rung: str, search: str
) -> None:
    old, new = ("large", "small") if search.count("return") == 0 else ("(lines, path)", "(lines)")
    replaced = search.replace(old, new)
    if old == "large":
        old, new = "    # the file may be large\n", "    # the file may be small\n"
    assert edit(FILE, search, replaced) == (FILE.replace(old, new), rung)


def test_lines_that_only_the_file_has_stay() -> None:
    search = BLOCK.replace("    # the file may be large\n", "")
    assert edit(FILE, search, search.replace("readlines", "read_lines"))[0] == FILE.replace(
        "readlines", "read_lines"
    )


def test_a_line_that_was_wrapped_is_replaced_whole() -> None:
    base = FILE.replace("parse_settings(lines, path)", "parse_settings(\n        lines,\n        path\n    )")
    text, _ = edit(base, BLOCK, BLOCK.replace("lines, path)", "lines, path, None)"))
    assert text == FILE.replace("lines, path)", "lines, path, None)")


def test_a_long_line_is_found_where_the_file_has_it_on_two() -> None:
    base = FILE.replace("open(path, encoding=encoding)", "open(path,\n            encoding=encoding)")
    text, rung = edit(
        base, "    with open(path, encoding=encoding) as file:\n", "    with read(path) as file:\n"
    )
    assert (text, rung) == (FILE.replace("open(path, encoding=encoding)", "read(path)"), "near")


def test_it_takes_the_indentation_of_the_file() -> None:
    search = BLOCK.replace("    ", "  ").replace("  # the file may be large\n", "")
    text, rung = edit(FILE, search, search.replace("  return", "  if lines:\n    log(lines)\n  return"))
    assert (text, rung) == (
        FILE.replace("    return", "    if lines:\n        log(lines)\n    return", 1),
        "anchored",
    )


@pytest.mark.parametrize(
    ("search", "old", "new"),
    [
        # new lines between two that are apart in the file: nobody can say on which side of what is there
        (BLOCK.replace("    # the file may be large\n", ""), "encoding):\n", "encoding):\n    new()\n"),
        # the edit is about a line that the file does not have
        (BLOCK.replace("large\n", "large\n    # beware\n"), "    # beware\n", ""),
        # it would take a line along that the search text does not show
        (BLOCK.replace("    # the file may be large\n", ""), "encoding):\n    with", "encoding):\n    if"),
        # what it replaces is another line
        (BLOCK.replace("# the file may be large", "import os, x, y"), "    import os, x, y\n", ""),
    ],
)
def test_an_edit_of_what_has_no_certain_partner_is_refused(search: str, old: str, new: str) -> None:
    assert old in search
    whole = search.replace(old, new)
    if "    if" in new:
        whole = "def other():\n    if" + search.split("    with")[1]
    with pytest.raises(EditFailed, match="nearest lines"):
        edit(FILE, search, whole)


def test_an_anchor_that_says_little_is_none() -> None:
    base = "try:\n    send(mail)\nend\n"
    with pytest.raises(EditFailed):
        edit(base, "try:\n    send(mail_of())\nend\n", "gone\n")


def test_an_anchored_place_has_a_floor() -> None:
    search = BLOCK.splitlines(keepends=True)
    search[1:4] = ["    socket = connect(HOST, 80)\n", "    socket.send_all(b'GET')\n", "    wait(socket)\n"]
    with pytest.raises(EditFailed):
        edit(FILE, "".join(search), "gone\n")
    omitted = BLOCK.replace("    # the file may be large\n", "")
    with pytest.raises(EditFailed):
        edit(FILE, omitted, "gone\n", 0.99)
    with pytest.raises(EditFailed):
        edit(FILE, omitted, "gone\n", forms.NEVER_NEAR)


def test_two_anchored_places_are_an_error_that_names_both() -> None:
    other = BLOCK.replace("may be large", "is never so large")
    with pytest.raises(Ambiguous, match="lines 1 and 7"):
        edit(BLOCK + "\n" + other, BLOCK.replace("may be large", "could be large"), "gone\n")


def test_text_that_repeats_itself_is_two_places() -> None:
    lines = "    the_same_line(alpha, beta, gamma)\n" * 12
    with pytest.raises(EditFailed):
        edit(lines, lines.replace("gamma", "gama", 1)[: len(lines) // 2], "gone\n")


def test_a_long_search_compares_few_windows() -> None:
    lines = [f"value_{number} = compute(argument_{number % 40})" for number in range(2000)]
    search = [*lines[:1000], *lines[1001:1500]]
    ground = Ground("\n".join(lines))
    assert len(near._candidates(ground, search, 60_000, 75)) <= near._FEWEST
    assert near._candidates(ground, search, 60_000, 75)[0] == (0, 1500)


WORDS = st.lists(
    st.sampled_from(
        ["alpha", "beta", "gamma", "delta", "get", "put", "self", "return", "value", "name", "(", ")", "}"]
    ),
    max_size=5,
)
TEXTS = st.lists(st.builds(" ".join, WORDS), min_size=4, max_size=24)


@given(TEXTS, st.data())
def test_an_edit_changes_its_own_line_or_nothing(lines: list[str], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(lines) - 3), "first")
    count = data.draw(st.integers(3, len(lines) - first), "count")
    edited = data.draw(st.integers(0, count - 1), "edited")
    broken = data.draw(st.sampled_from([n for n in range(count) if n != edited]), "broken")
    block = lines[first : first + count]
    lines[first + edited] = block[edited] = f"the_line_that_is_meant({edited})"
    kinds = {
        "left out": [],
        "twice": [block[broken]] * 2,
        "misspelt": [block[broken] + "x"],
        "more": ["# more", block[broken]],
    }
    search = [*block]
    search[broken : broken + 1] = kinds[data.draw(st.sampled_from(sorted(kinds)), "kind")]
    replaced = ["CHANGED" if line == block[edited] else line for line in search]
    base, wanted = "".join(line + "\n" for line in lines), "".join(line + "\n" for line in search)
    assume(wanted not in base)
    try:
        text, _ = edit(base, wanted, "".join(line + "\n" for line in replaced))
    except EditFailed:
        return
    assert text == base.replace(block[edited], "CHANGED")


@settings(max_examples=40)
@given(TEXTS, TEXTS, TEXTS)
def test_what_is_grafted_keeps_the_lines_that_the_edit_leaves_alone(
    search: list[str], found: list[str], replaced: list[str]
) -> None:
    assert grafted(search, found, search, 0.8) == found
    assert grafted(search, search, replaced, 0.8) in (replaced, None)
