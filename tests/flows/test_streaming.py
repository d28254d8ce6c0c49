"""A reply that streams into a real terminal, which is resized meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from pyte.screens import Char
from support.provider import Answer, Provider
from support.terminal_program import PATIENCE, Program, running

STEP = (
    "## Step {0}\n\nThe **store** writes a value to the `journal` and only then tells its listeners {0}.\n\n"
    "- it opens the file\n- it keeps the *offset* {0}\n\n"
    "```python\ndef step_{0}(store):\n    return store.journal.append({0})\n```\n\n"
    "| step | record | kept |\n|---|---|---|\n| {0} | a value and its time | yes |\n\n"
)
STEPS = 12
REPLY = "".join(STEP.format(number) for number in range(1, STEPS + 1)) + "That is all."
PIECES = tuple(REPLY[at : at + 40] for at in range(0, len(REPLY), 40))
#: Before which piece the terminal gets which size; the last is the one at which pictures are compared.
SIZES = {12: (300, 100), 36: (40, 10), 60: (80, 24)}
PAGE_UP, END = b"\x1b[5~", b"\x1b[6~" * 12


class ResizedMeanwhile(tuple[str, ...]):
    """Pieces of a reply, each of these sizes waited for before the next is sent."""

    sizes: ClassVar = {before: (threading.Event(), threading.Event(), size) for before, size in SIZES.items()}

    def __iter__(self) -> Iterator[str]:
        for number, piece in enumerate(super().__iter__()):
            if number in self.sizes:
                reached, resized, _ = self.sizes[number]
                reached.set()
                resized.wait(PATIENCE)
            yield piece


def pictures(program: Program) -> list[list[list[Char]]]:
    """The end of the reply and what is above it, a page at a time; without the scrollbar and what is around."""
    pages = []
    program.settle(1.0)  # code gets its colours a moment after it is complete
    for _ in range(3):
        program.settle()
        pages.append([row[:-2] for row in program.picture[3:-8]])
        program.type(PAGE_UP)
    program.type(END)
    program.settle()
    return pages


def written(row: list[Char]) -> str:
    return "".join(cell.data for cell in row)


def test_a_reply_that_streams_while_the_terminal_is_resized_looks_like_one_that_came_at_once(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Provider() as provider:
        model = {"TUI_AGENT_MODEL": "openai/test-model", "TUI_AGENT_PLANNER_MODEL": "none"}
        for name, value in (provider.environment | model).items():
            monkeypatch.setenv(name, value)
        provider.answer(Answer(chunks=ResizedMeanwhile(PIECES), pause=0.02))
        provider.answer(Answer(chunks=(REPLY,)))
        with running(Program(".", folder=tmp_path, home=home), sign="Chat") as program:
            seen = []
            for asked in (b"stream", b"at once"):
                program.type(asked)
                program.shows(asked.decode())
                program.type(b"\r")
                for reached, resized, size in () if seen else ResizedMeanwhile.sizes.values():
                    program.until(reached.is_set, f"{size}")
                    program.resize(*size)
                    resized.set()
                program.until(provider.wait_for(len(seen) + 1)[-1].done.is_set, "the end of the reply")
                program.shows("That is all.")
                seen.append(pictures(program))
            for page, (streamed, once) in enumerate(zip(*seen, strict=True)):
                for y, rows in enumerate(zip(streamed, once, strict=True)):
                    assert rows[0] == rows[1], f"row {y}, {page} pages up: {[written(row) for row in rows]}"
            text = "\n".join(written(row) for page in seen[0] for row in page)
            assert f"def step_{STEPS}(store)" in text and "a value and its time" in text
            assert len({cell.fg for page in seen[0] for row in page for cell in row}) > 4, "with its colours"
