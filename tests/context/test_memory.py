"""Which words bring the memory along, and what it leaves out when there is nothing to say."""

from __future__ import annotations

import pytest

from tui_agent.context.memory import Memory, TodoNote, asks_to_go_on, section


@pytest.mark.parametrize(
    "words",
    ["continue", "Continue.", "GO ON", "proceed", "next", "keep going.", "go ahead", "resume", " continue \n",
     "continue with the tests", "Go ahead and write it"],
)  # fmt: skip
def test_these_words_go_on(words: str) -> None:
    assert asks_to_go_on(words, 2)
    assert not asks_to_go_on(words, 1)


@pytest.mark.parametrize(
    "words",
    ["", "continued", "next question", "go on with it", "please continue", "continue..", "resume it", "go"],
)
def test_these_words_do_not(words: str) -> None:
    assert not asks_to_go_on(words, 5)


def test_parts_with_nothing_to_say_are_left_out() -> None:
    text = section(Memory(3, "Do it"))
    assert text.splitlines()[0] == "## AI Memory (Continuation Context)"
    assert "todos" not in text.replace("How to resume", "") and "Files" not in text


def test_details_of_several_lines_stay_in_their_item() -> None:
    text = section(Memory(3, "Do it", todos=(TodoNote("A", "one\ntwo"),)))
    assert "- A: one\n  two" in text
