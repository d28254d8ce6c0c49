"""Places that are only nearly what was asked for: the same words in another layout, or lines left out."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.edit_requests import by_diff

from tui_agent.answers.values import ChangeRequest, EditHunk
from tui_agent.edits import forms
from tui_agent.edits.locate import carried, one_by_one
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
WITHOUT_REMARK = BLOCK.replace("    # the file may be large\n", "")


def edit(base: str, search: str, replace: str, threshold: float = 0.9) -> tuple[str, str]:
    request = ChangeRequest("a.py", edits=(EditHunk(search, replace),))
    proposal = forms.propose(request, base, threshold)
    assert proposal.new_text is not None
    return proposal.new_text, proposal.rung


@pytest.mark.parametrize(
    ("rung", "search"),
    [
        ("anchored", WITHOUT_REMARK),
        ("near", BLOCK.replace("open(path, encoding", "open(\n        path, encoding")),
        ("near", BLOCK.replace("path, encoding)", "path,encoding,)").replace("# the file", "#the  file")),
        ("near", BLOCK.replace("as file:\n        lines", "as file: lines")),
        ("near", BLOCK.replace("    # the", "\n    # the")),
    ],
)
def test_a_block_in_another_layout_is_found_and_only_the_edited_line_changes(rung: str, search: str) -> None:
    replaced = search.replace("(lines, path)", "(lines)")
    assert edit(FILE, search, replaced) == (FILE.replace("(lines, path)", "(lines)"), rung)


def test_the_text_of_one_line_that_the_file_has_on_four_is_replaced_whole() -> None:
    base = FILE.replace("parse_settings(lines, path)", "parse_settings(\n        lines,\n        path\n    )")
    text, _ = edit(base, BLOCK, BLOCK.replace("lines, path)", "lines, path, None)"))
    assert text == FILE.replace("lines, path)", "lines, path, None)")
    line = "    return parse_settings(lines, path)\n"
    assert edit(base, line, "    return None\n") == (FILE.replace(line, "    return None\n"), "near")


def test_a_new_line_is_the_models_and_a_kept_one_the_files_to_the_letter() -> None:
    base = "settings = read( 'the-path',  encoding )\nother( 1 )\n"
    search = 'settings = read("the-path", encoding)\nother(1)\n'
    assert edit(base, search, search.replace("encoding", "None")) == (
        'settings = read("the-path", None)\nother( 1 )\n',
        "near",
    )


def test_words_of_a_new_line_are_never_glued_together() -> None:
    base = "def f(self, order):\n    result=self.compute(order)\n    return result\n"
    search = "    result = self.compute(order)\n    return result\n"
    new = "    if not self.compute(order):\n        return None\n    return result\n"
    assert edit(base, search, new)[0] == base.replace(
        "    result=self.compute(order)\n    return result\n", new
    )


@pytest.mark.parametrize(
    ("search", "new"),
    [
        ("call(alpha, beta)\n", "call(alpha, gamma)\n"),  # the file has a comma behind it
        ("x = [one two three]\n", "x = [one two four]\n"),
    ],
)
def test_an_edit_that_would_lose_a_comma_of_the_file_is_refused(search: str, new: str) -> None:
    with pytest.raises(EditFailed):
        edit("x = [one, two, three]\n  call( alpha, beta ),\n", search, new)


def test_a_comma_that_the_search_text_forgot_and_the_new_line_has_is_written_once() -> None:
    base = "x = [\n    first_of_all,\n    second,\n]\n"
    search, new = "    first_of_all\n    second,\n", "    third_of_all,\n    second,\n"
    assert edit(base, search, new)[0] == base.replace("first", "third")


def test_it_takes_the_indentation_of_the_file() -> None:
    search = WITHOUT_REMARK.replace("    ", "  ")
    text, rung = edit(FILE, search, search.replace("  return", "  if lines:\n    log(lines)\n  return"))
    assert (text, rung) == (
        FILE.replace("    return", "    if lines:\n        log(lines)\n    return", 1),
        "anchored",
    )


@pytest.mark.parametrize(
    ("search", "old", "new"),
    [
        # new lines between two that are apart in the file: nobody can say on which side of what is there
        (WITHOUT_REMARK, "encoding):\n", "encoding):\n    new()\n"),
        # the search text has a line that the file does not have
        (BLOCK.replace("large\n", "large\n    # beware\n"), "return", "yield"),
        # it would take a line along that the search text does not show
        (WITHOUT_REMARK, "def read_settings(path, encoding):\n    with", "def other():\n    if"),
        # the words of a remark are words
        (BLOCK.replace("may be large", "is sometimes long"), "return", "yield"),
        (BLOCK.replace("path, encoding):", "path, coding):"), "return", "yield"),
        # only half of the lines for which a line stands in the file changes
        (BLOCK.replace("open(path, ", "open(\n        path,\n        "), "        path,", "        None,"),
    ],
)
def test_an_edit_of_what_has_no_certain_partner_is_refused(search: str, old: str, new: str) -> None:
    assert old in search
    with pytest.raises(EditFailed, match=r"nearest lines|not\s+certain"):
        edit(FILE, search, search.replace(old, new))


def test_what_lies_between_must_not_begin_something_else() -> None:
    body = "    rows = database.all()\n    total = count(rows)\n    return rows\n"
    base = f"def load_users(database):\n    return 0\n\ndef load_orders(database):\n{body}"
    search = f"def load_users(database):\n{body}"
    with pytest.raises(EditFailed):
        edit(base, search, search.replace("return rows", "return list(rows)"))


def test_where_either_of_two_equal_lines_may_go_and_the_file_has_more_between_them_it_is_refused() -> None:
    base = "event:\n  index: 184\nevent:\n  index: 184\n\n"
    request = by_diff("@@\n-event:\n event:\n   index: 184\n", "a.yaml")
    with pytest.raises(EditFailed):
        forms.propose(request, base, 0.9)
    assert carried(["a", "a"], ["a", "b", "a"], ["a"], [(0, 1, 0, 1), (1, 2, 2, 3)]) is None


def test_what_says_little_is_near_nothing() -> None:
    base = "try:\n    send(mail)\n    # end\nend\n"
    for search in ("try:\n    send(mail)\nend\n", "end ;\n"):
        with pytest.raises(EditFailed):
            edit(base, search, "gone\n")


def test_a_near_place_has_a_floor() -> None:
    lines = [f"    step_{number}(alpha)\n" for number in range(12)]
    search = "".join([*lines[:2], *lines[4:6], *lines[8:10]])
    assert edit("".join(lines), search, search.replace("9", "10"), 0.8)[1] == "anchored"
    for threshold in (0.95, forms.NEVER_NEAR):
        with pytest.raises(EditFailed):
            edit("".join(lines), search, search.replace("9", "10"), threshold)


def test_two_near_places_are_an_error_that_names_both() -> None:
    with pytest.raises(Ambiguous, match="lines 1 and 7"):
        edit(f"{BLOCK}\n{BLOCK}", WITHOUT_REMARK, "gone\n")


def test_text_that_repeats_itself_is_two_places() -> None:
    lines = "    the_same_line(alpha, beta, gamma)\n" * 12
    with pytest.raises(EditFailed):
        edit(lines, lines.replace("beta, gamma", "beta,  gamma", 1)[: len(lines) // 2], "gone\n")


WORDS = st.lists(
    st.sampled_from(
        ["alpha", "beta", "gamma", "delta", "get", "put", "self", "return", "value", "name", "(", ")", "}"]
    ),
    max_size=5,
)
TEXTS = st.lists(st.builds(" ".join, WORDS), min_size=4, max_size=24)


@settings(deadline=None)
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
        "wider": [block[broken].replace(" ", "  ")],
        "wrapped": block[broken].split(" "),
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
@given(TEXTS, TEXTS)
def test_what_is_grafted_keeps_the_lines_that_the_edit_leaves_alone(
    search: list[str], replaced: list[str]
) -> None:
    assume("".join(search).strip())
    found = [f"  {line} " if line.strip() else line for line in search]
    ties = one_by_one(len(search))
    assert carried(search, found, search, ties) == found
    assert carried(search, search, replaced, ties) == replaced


def test_the_hint_shows_the_nearest_line_with_its_neighbours() -> None:
    for search, lines in (("import oss.path", "1: import os\n2: "), ("return parse_settings(line)", "7:")):
        with pytest.raises(EditFailed) as failed:
            edit(FILE, f"# not there\n{search}\n# and not there\n", "x\n")
        assert f"the nearest lines are\n{lines}" in str(failed.value.remedy)
