"""Fifteen common jobs in a pseudo-terminal, with the keys that `docs/notes/keys.md` counts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.openai_wire import Answer
from support.provider import Provider
from support.sessions import reply
from support.terminal_program import Program, running

TABLE = Path(__file__).parents[2] / "docs" / "notes" / "keys.md"
BYTES = {
    "Enter": b"\r",
    "Esc": b"\x1b",
    "F5": b"\x1b[15~",
    "F8": b"\x1b[19~",
    "F12": b"\x1b[24~",
    "Ctrl+O": b"\x0f",
    "Ctrl+C": b"\x03",
    "Ctrl+K": b"\x0b",
    "Ctrl+Y": b"\x19",
    "Shift+Tab": b"\x1b[Z",
}
TWO = {
    "path": "a.py",
    "edits": [{"search": "one", "replace": "first"}, {"search": "two", "replace": "second"}],
}


def rows() -> dict[str, list[str]]:
    lines = TABLE.read_text(encoding="utf-8").partition("|---|---|---|---|---|---|---|\n")[2].splitlines()
    return {
        cells[0]: cells[1:] for line in lines if (cells := [*map(str.strip, line.strip("|").split("|"))])[1:]
    }


def keys_of(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`|(…)", cell)


def test_the_counts_are_those_of_the_keys_and_ours_are_not_above_claude_codes() -> None:
    table = rows()
    assert len(table) == 15
    for job, cells in table.items():
        for keys, count in zip(cells[::2], cells[1::2], strict=True):
            assert count == "–" or len([key for key, _ in keys_of(keys) if key]) == int(count), (job, keys)
        assert int(cells[1]) <= int(cells[3]), job


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    with Provider() as started:
        model = {"TUI_AGENT_MODEL": "openai/test-model", "TUI_AGENT_COMMANDS__ASK": "always"}
        for name, value in (started.environment | model).items():
            monkeypatch.setenv(name, value)
        yield started


def test_each_job_is_done_by_its_keys(tmp_path: Path, home: Path, provider: Provider) -> None:
    table, file = rows(), tmp_path / "a.py"
    file.write_text("one\n\n\n\n\n\n\n\ntwo\n")
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "settings.py").write_text(f"name = '{folder}'\n")
    change = Answer(json.dumps(reply("Changed.", fileChanges=[TWO])))
    provider.answer(
        *(
            Answer("First answer."),
            Answer("Second answer."),
            change,
            change,
            Answer("It begins and", hold_after=1),
        ),
        *(Answer("Third answer."), Answer('{"summary": "", "commands": [{"command": "echo seen"}]}')),
        Answer("The command has run."),
        *(Answer("OK") for _ in range(3)),  # to requests that try the other model
    )

    with running(Program(".", folder=tmp_path, home=home), sign="Chat") as program:

        def do(job: str, done: Callable[[], object], typed: str = "") -> None:
            """The keys of the job as the table has them, with `typed` for its text."""
            for key, text in keys_of(table.pop(job)[0]):
                if text:
                    program.type(typed.encode())
                    program.shows(typed)
                else:
                    program.type(BYTES.get(key, key.encode()))
                    program.settle(0.1)
            program.until(done, job)

        def shows(words: str) -> Callable[[], bool]:
            return lambda: words in program.text

        def send(words: str) -> None:
            program.type(words.encode())
            program.shows(words)
            program.type(b"\r")

        program.shows("Files 3")
        do("ask", shows("First answer."), "hello")
        do("mention a file", shows("@a.py"), "a.p")
        program.type(b" now\r")
        program.shows("Second answer.")
        send("change a.py")
        program.shows("● 2 changes")
        do("apply one change", lambda: file.read_text().startswith("first\n") and "two" in file.read_text())
        do("skip one", lambda: "● 1 change" not in program.text)
        do("undo", lambda: file.read_text().startswith("one\n"))
        send("change a.py again")
        program.shows("● 2 changes")
        do("apply all", lambda: file.read_text() == "first\n\n\n\n\n\n\n\nsecond\n")
        send("a long one")
        program.shows("It")
        do("stop", shows("Stopped"))
        provider.release()
        send("look at settings.py")
        program.shows("Which file is")
        do("answer a question", shows("Third answer."))
        send("run it")
        program.shows("1 allow once")
        program.settle(0.8)  # a digit that comes with the question is text
        do("allow a command", shows("The command has run."))
        do("run a command", shows("✓ echo ran"), "echo ran")
        do("change the mode", lambda: "edit   Shift+Tab" not in program.text)
        do("change the model", lambda: "openai/other-model · turn" in program.text, "openai/other-model")
        do(
            "new session",
            lambda: "First answer." not in program.text and "Three things to try" in program.text,
        )
        do("resume", shows("The command has run."))
        program.settle()
        do("quit", lambda: program.process.poll() is not None)
    assert not table
