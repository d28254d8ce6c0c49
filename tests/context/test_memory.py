"""Which words bring the memory along, and what it leaves out when there is nothing to say."""

from __future__ import annotations

import pytest

from tui_agent.context.memory import Memory, TodoNote, asks_to_go_on, section, shortened


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


WHOLE = """\
## AI Memory (Continuation Context)
Turn: 7

Last request, word for word:
Do it all

Last summary: Half is done

Done todos:
- A A A
- B: the second

Open todos:
- C
- D

Batches that are carried on:
- all scripts

Proposed and not yet decided by the person:
- a.py

Files that need a refresh:
- b.py: changed on disk

Files modified by turn:
- turn 2: a.py
- turn 5: b.py, c.py

Active working files (last 3 turns):
- a.py
- b.py

How to resume: go on with the batch: do what it is about with the files that are shown, and leave the others alone."""
MEMORY = Memory(
    7,
    "Do it all",
    "Half is done",
    (TodoNote("A A A", done=True), TodoNote("B", "the second", True), TodoNote("C"), TodoNote("D")),
    ("a.py",),
    {"b.py": "changed on disk"},
    {5: ("b.py", "c.py"), 2: ("a.py",)},
    ("a.py", "b.py"),
    ("all scripts",),
)


def test_every_part_has_its_share() -> None:
    assert section(MEMORY) == WHOLE
    short = section(MEMORY, 160)
    assert "Done todos:\n- B: the second\n- [… 1 earlier left out …]\n" in short
    assert "Files modified by turn:\n- turn 5: b.py, c.py\n- [… 1 earlier left out …]\n" in short
    assert "turns):\n- a.py\n- [… 1 more left out …]\n" in section(MEMORY, 128)


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        (
            Memory(2, "x", todos=(TodoNote("A", done=True), TodoNote("B"))),
            "go on with the first open todo, “B”.",
        ),
        (Memory(2, "x", todos=(TodoNote("A", done=True),), pending=("a",)), "the proposed changes wait"),
        (Memory(2, "x"), "go on with the last request where the last summary ends."),
    ],
)
def test_what_comes_next_is_said(memory: Memory, words: str) -> None:
    assert f"How to resume: {words}" in section(memory)


@pytest.mark.parametrize(
    ("text", "most", "short"),
    [
        ("x" * 10, 10, "x" * 10),
        ("a" * 5 + "b" * 6, 10, "aaaaa\n[… 1 characters left out …]\nbbbbb"),
        ("abc", 0, "a\n[… 1 characters left out …]\nc"),
        ("a" * 3_000, 4, "aa\n[… 2,996 characters left out …]\naa"),
    ],
)
def test_a_long_text_loses_its_middle(text: str, most: int, short: str) -> None:
    assert shortened(text, most) == short
