"""`--debug`, in every command and for every way in which one can fail: where it came from, then the one sentence."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from tui_agent import cli, debug_log
from tui_agent.errors import Fault, PathRefused, TuiAgentError, Unreachable
from tui_agent.headless.output import OutputLost


def commands(group: click.Group, *before: str) -> Iterator[tuple[str, ...]]:
    """Every command of the program, by the words that name it; opening a folder has none."""
    for name, command in group.commands.items():
        words = (*before, name)
        command = command.imported() if isinstance(command, cli.LateCommand) else command
        if isinstance(command, click.Group):
            yield from commands(command, *words)
        else:
            yield () if words == ("open",) else words


COMMANDS = sorted(commands(cli.tui_agent))
#: What each error makes of the exit status, and how its sentence begins.
FAILURES: list[tuple[BaseException, int, str]] = [
    (ZeroDivisionError("by zero"), 1, "unexpected error: ZeroDivisionError: by zero: "),
    (PathRefused("a leads outside", "name another"), 1, "a leads outside: name another"),
    (Unreachable("nobody answers", "start it"), 3, "nobody answers: start it"),
    (click.UsageError("That is wrong."), 2, "that is wrong: "),
    (KeyboardInterrupt(), 130, "interrupted: "),
    (OutputLost("no space left"), 1, "standard output cannot be written (no space left): "),
]


def failing(words: tuple[str, ...], error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a command fail like this, whatever its arguments are."""
    command: click.Command = cli.tui_agent
    for word in words or ("open",):
        assert isinstance(command, click.Group)
        command = command.commands[word]
        command = command.imported() if isinstance(command, cli.LateCommand) else command

    def fails(**_: object) -> None:
        raise error

    monkeypatch.setattr(command, "callback", fails)
    monkeypatch.setattr(command, "params", [])


@pytest.mark.parametrize(
    ("words", "failures"),
    [(words, FAILURES if words == COMMANDS[0] else FAILURES[:2]) for words in COMMANDS],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_failure_is_told_in_a_sentence_and_with_debug_its_traceback(words, failures, run, monkeypatch):
    """Each kind of failure in one command, and in every command one that is expected and one that is not."""
    for error, status, sentence in failures:
        if isinstance(error, OutputLost):
            monkeypatch.setattr(cli, "silence", lambda: None)
        failing(words, error, monkeypatch)
        plain = run(*words)
        assert plain.status == status and "Traceback" not in plain.err
        last = plain.err.splitlines()[-1]
        assert last.startswith(f"tui-agent: {sentence}")
        before, after = ("--debug", *words), (*words, "--debug")
        for where in (before, after) if words == COMMANDS[0] else (after,):
            told = run(*where)
            assert told.status == status
            assert "Traceback" in told.err and "in fails" in told.err, told.err
            assert told.err.splitlines()[-1] == last
        if not isinstance(error, TuiAgentError | click.ClickException | KeyboardInterrupt):
            assert last.endswith(f" is in {debug_log.place()}")
            debug_log.flush()
            with open(debug_log.place(), encoding="utf-8") as log:
                assert "in fails" in log.read()


@pytest.mark.parametrize("words", [["--mdel", "x"], ["sessions", "lst"], ["run"], ["nowhere"], ["x", "y"]])
def test_wrong_arguments_too(words, run):
    assert run(*words).sentence
    assert "Traceback" in run(*words, "--debug").err


def test_what_a_command_that_goes_on_logs_is_shown_too(run, monkeypatch):
    def told(**_: object) -> int:
        try:
            raise ZeroDivisionError("by zero")
        except ZeroDivisionError as error:
            found = debug_log.fault("A fault ended the turn", error)
            assert isinstance(found, Fault)
        return 0

    monkeypatch.setattr(cli.tui_agent.commands["demo"], "callback", told)
    assert run("demo").err == ""
    assert "in told" in run("demo", "--debug").err
    assert run("demo").err == ""
