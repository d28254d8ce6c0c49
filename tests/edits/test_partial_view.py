"""Edits of a file that was shown in part: judged by the lines that were shown, in bounded memory."""

from __future__ import annotations

import pytest

from tui_agent.answers.values import ChangeRequest, EditHunk
from tui_agent.edits import proposals
from tui_agent.edits.change import hunks
from tui_agent.edits.proposals import is_within_view, propose_within_view, view_after
from tui_agent.errors import Ambiguous, EditFailed

BLOCK = """def read_{0}(path, encoding):
    # the file of {0} may be large
    with open(path, encoding=encoding) as {0}_file:
        lines = {0}_file.readlines()
    return parse_{0}(lines, path)


"""
BASE = "".join(
    map(BLOCK.format, ("users", "orders", "prices", "stocks", "labels", "routes", "depots", "tokens"))
)
LINES = BASE.splitlines(keepends=True)
#: The functions of users and of stocks.
SHOWN = ((1, 7), (22, 28))


def edit(search: str, replace: str = "nothing\n") -> ChangeRequest:
    return ChangeRequest("a.py", edits=(EditHunk(search, replace),))


@pytest.mark.parametrize("bound", [proposals.MOST_INDEXED, 100], ids=["small", "large"])
def test_what_is_only_near_counts_where_it_was_shown(monkeypatch: pytest.MonkeyPatch, bound: int) -> None:
    monkeypatch.setattr(proposals, "MOST_INDEXED", bound)
    near = BLOCK.replace("encoding):", "encoding,):").replace("# the file", "#the  file")

    def made(word: str, search: str) -> proposals.Proposal:
        request = edit(search.format(word), search.format(word).replace("lines, path", "lines"))
        return propose_within_view(request, BASE, SHOWN, 0.9)

    assert made("stocks", near).new_text == BASE.replace("stocks(lines, path", "stocks(lines")
    with pytest.raises(EditFailed):
        made("labels", near)
    assert made("labels", BLOCK).new_text == BASE.replace("labels(lines, path", "labels(lines")
    assert propose_within_view(ChangeRequest("a.py", delete=True), BASE, SHOWN, 0.9).kind == "delete"


def test_two_places_of_which_one_was_shown_are_still_two() -> None:
    with pytest.raises(Ambiguous):
        propose_within_view(edit("width"), "width = 1\n" + "x = 2\n" * 20 + "width = 3\n", ((1, 3),), 0.9)


def test_a_large_text_is_never_searched_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = proposals.forms.propose

    def noting(request: ChangeRequest, base: str, threshold: float) -> proposals.Proposal:
        asked.append(len(base))
        return real(request, base, threshold)

    monkeypatch.setattr(proposals, "MOST_INDEXED", 100)
    monkeypatch.setattr(proposals.forms, "propose", noting)
    with pytest.raises(EditFailed, match="as it was shown"):
        propose_within_view(edit("nothing of the kind\n"), BASE, SHOWN, 0.9)
    assert max(asked) < len(BASE) / 2


def test_the_lines_that_were_shown_move_with_the_text_and_what_was_written_is_among_them() -> None:
    new = "".join(["new\n", "new\n", *LINES[:24], "changed\n", *LINES[25:40], *LINES[42:]])
    changed = hunks(BASE, new)
    assert set(view_after(SHOWN, changed)) == {(1, 9), (24, 30), (1, 2), (27, 27)}
    assert [is_within_view([one], SHOWN) for one in changed] == [True, True, False]
