"""Edits in every form, disturbed as models disturb them: the file becomes what was meant, or they are refused."""

from __future__ import annotations

import subprocess
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support.edit_files import case
from support.edit_replies import DISTURBANCES, FLOORS, FORMS, foreign_lines, placed, read_back, tried

from tui_agent.edits.change import compose, diff_of, hunks, unified

#: The same cases in every run; a failure is still made as small as it can be.
quick = settings(max_examples=12, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("kind", DISTURBANCES)
@quick
@given(draw=st.randoms(use_true_random=False), form=st.data())
def test_a_disturbed_edit_is_right_or_refused(kind: str, draw: Random, form: st.DataObject) -> None:
    one = tried(draw, form.draw(st.sampled_from(sorted(DISTURBANCES[kind].forms))), kind)
    assert one.verdict in ("right", "refused"), f"{one.verdict}\n{one.reply}\n{one.base}\n->\n{one.result}"
    if kind != "cut" and one.verdict == "right":
        assert foreign_lines(one) == []


@pytest.mark.parametrize("kind", FLOORS)
def test_enough_of_the_edits_that_are_disturbed_in_one_way_are_right(kind: str) -> None:
    forms = [form for form in FORMS if form in DISTURBANCES[kind].forms]
    cases = [tried(Random(f"{kind}/{number}"), forms[number % len(forms)], kind) for number in range(60)]
    once = [one for one in cases if one.unique]
    right = sum(one.verdict == "right" for one in once)
    assert right >= (FLOORS[kind] - 0.06) * len(once), [one.reason for one in once if one.verdict != "right"]


@pytest.mark.parametrize("form", FORMS)
def test_most_edits_in_every_form_are_placed(form: str) -> None:
    cases = [tried(Random(f"{form}/{number}"), form, "as it should be") for number in range(40)]
    once = [one for one in cases if one.unique]
    if form in ("content", "file in a fence"):
        once = [one for one in once if "in the answer" not in one.reason and not one.reason]
    assert [one.reason for one in once if one.verdict != "right"] == []


@quick
@given(draw=st.randoms(use_true_random=False), chosen=st.sets(st.integers(0, 2)))
def test_a_diff_of_ours_is_placed_where_git_places_it(
    tmp_path_factory: pytest.TempPathFactory, draw: Random, chosen: set[int]
) -> None:
    one = case(draw)
    parts = hunks(one.base, one.wanted)
    picked = {number for number in chosen if number < len(parts)} or {0}
    diff = unified(
        replace(
            diff_of(one.path, one.base, one.wanted),
            hunks=tuple(part for number, part in enumerate(parts) if number in picked),
        )
    )
    folder = tmp_path_factory.mktemp("work")
    file = folder / one.path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(one.base, newline="")
    subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], cwd=folder, input=diff.encode(), check=True)
    there = file.read_bytes().decode()
    assert compose(one.base, parts, picked) == there
    result, reason = placed(read_back(f"So:\n\n```diff\n{diff}```\n"), one.path, one.base)
    assert result == there or (result is None and reason)
