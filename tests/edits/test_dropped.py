"""Whole content that drops most of a long file is asked about, and says how many lines it drops."""

from __future__ import annotations

import pytest

from tui_agent.answers.values import ChangeRequest, EditHunk
from tui_agent.edits.change import Change
from tui_agent.edits.proposals import propose

LONG = "".join(f"line {number}\n" for number in range(60))


def proposed(
    content: str, base: str = LONG, offered: str = "", labelled: bool = False, path: str = "m.txt"
) -> Change:
    request = ChangeRequest(path, content=content, fenced=labelled, labelled=labelled, offered=offered)
    return propose(request, 1, 1, base, "h", lambda text: "new")


@pytest.mark.parametrize(("kept", "drops"), [(20, 40), (29, 31), (31, 0), (59, 0)])
def test_more_than_half_of_a_long_file_is_asked_about(kept: int, drops: int) -> None:
    change = proposed("".join(LONG.splitlines(True)[:kept]))
    assert (change.state, change.drops) == ("pending", drops)
    assert (f"it drops {drops} of the 60 lines" in change.ask) == bool(drops)


def test_a_short_file_may_be_written_anew() -> None:
    assert not proposed("all new\n", "".join(LONG.splitlines(True)[:39])).ask


def test_what_is_only_offered_is_asked_about_for_that_reason() -> None:
    change = proposed(LONG + "more\n", offered="a reason")
    assert (change.state, change.ask) == ("pending", "a reason")


def test_a_labelled_fence_is_a_change_where_it_resembles_its_file() -> None:
    assert not proposed(LONG.replace("line 7", "seven").replace("line 8\n", ""), labelled=True).ask
    assert (
        "does not name the file"
        in proposed("def f():\n    pass\n", "".join(LONG.splitlines(True)[:20]), labelled=True).ask
    )
    package = '{\n  "name": "mine",\n  "version": "1.0.0"\n}\n'
    for base in ("x = 1\n", "import os\n\nprint(os.name)\n", package):
        assert proposed('{\n  "name": "theirs",\n  "files": []\n}\n', base, labelled=True).ask
    assert not proposed(package.replace("mine", "yours"), package, labelled=True).ask


def test_a_diff_that_adds_a_file_that_is_there_is_asked_about() -> None:
    request = ChangeRequest("m.txt", content="new\n", fresh=True)
    assert "already exists" in propose(request, 1, 1, "old\n", "h", lambda text: "new").ask
    assert not propose(request, 1, 1, None, "", lambda text: "new").ask


CODE = "".join(f"def f{number}():\n    return {number}\n\n\n" for number in range(12))
KEPT, REST = CODE[: CODE.index("def f9")], CODE[CODE.index("def f9") :]


@pytest.mark.parametrize(
    "remark", ["# continued below", "# 나머지 코드는 동일", "// nothing new here", "<three more>", "/* v */"]
)
def test_a_remark_alone_in_place_of_lines_is_asked_about(remark: str) -> None:
    change = proposed(f"{KEPT}{remark}\n", CODE, path="m.py")
    assert change.state == "pending" and f"`{remark}` takes the place of 6 lines" in change.ask


@pytest.mark.parametrize("new", [KEPT, f"{KEPT}# a\nf8()\n", f"{CODE}# more to come\n", f"# v2\n{KEPT}"])
def test_other_remarks_are_not(new: str) -> None:
    assert not proposed(new, CODE, path="m.py").ask


@pytest.mark.parametrize(
    "remark", ["# rest as is", "# el resto queda igual", "# bez zmian", "<...>", "# idem", "# (생략)"]
)
def test_a_remark_that_hints_at_more_is_asked_about_beside_new_lines_too(remark: str) -> None:
    new = f"{KEPT}def more():\n    return None\n{remark}\n"
    assert f"`{remark}` may stand for lines" in proposed(new, CODE, path="m.py").ask
    edit = EditHunk(REST, f"    more()\n{remark}\n")
    change = propose(ChangeRequest("m.py", edits=(edit,)), 1, 1, CODE, "h", lambda text: "new")
    assert f"`{remark}` may stand for lines" in change.ask
    assert not proposed(f"{CODE}{remark}\n", CODE, path="m.py").ask
