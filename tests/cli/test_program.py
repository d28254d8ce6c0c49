"""The program as a process: what it imports, how it ends, what it does with its output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from support.command_line import run_program
from support.recordings import recorded

from tui_agent import __version__

HEAVY = {"textual", "rich", "litellm", "tiktoken", "git", "watchfiles"}
#: Runs a command; says what was imported, whether garbage was looked for meanwhile, and whether it is after that.
_IMPORTED = """
import gc, sys
early = []
gc.callbacks.append(lambda *_: hasattr(sys.modules.get("tui_agent.cli"), "main") or early.append(1))
from tui_agent.__main__ import main
main()
print(*sys.modules, f"collected-early-{len(early) > 4}", f"collects-{gc.isenabled()}", file=sys.stderr)
"""


def imported(*words: str) -> set[str]:
    """The top packages that were imported when the command had ended."""
    return {name.partition(".")[0] for name in modules(*words)}


def modules(*words: str) -> set[str]:
    """All modules that were."""
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED, *words], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stderr.split())


def test_version_is_answered_without_importing_anything():
    assert run_program("--version").out == f"tui-agent {__version__}\n"
    assert not imported("--version") & (HEAVY | {"click", "msgspec", "asyncio"})


def test_version_is_answered_among_other_words_too():
    assert run_program("--debug", "--version").out == f"tui-agent {__version__}\n"


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["config", "show"]])
def test_help_and_configuration_import_nothing_heavy(words):
    found = imported(*words)
    assert not found & HEAVY
    assert found >= {"collected-early-False", "collects-True"}


def test_a_turn_without_a_screen_imports_what_it_needs(home, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    replay = recorded(tmp_path / "recording.jsonl", ("Hello", '{"summary": "Hello."}'))
    found = modules("run", "--workspace", str(work), "--replay", str(replay), "Hello")
    assert "tui_agent.turn.turn" in found
    of_some = ("checks.found", "checks.projects.", "subtasks.scheduler", "subtasks.run", "model.login.access")
    assert [name for name in found if name.startswith(tuple(f"tui_agent.{some}" for some in of_some))] == []


def test_an_interrupt_while_it_runs_is_status_130(tmp_path):
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTED, str(write)], pass_fds=[write], stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    assert os.read(read, 1) == b"."
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in said


#: Runs a command that waits forever, and says when it does.
_INTERRUPTED = """
import os, sys, time
from tui_agent import cli
from tui_agent.headless import config_command
def wait():
    os.write(int(sys.argv[1]), b".")
    time.sleep(60)
config_command.check.callback = wait
sys.exit(cli.main(["config", "check"]))
"""


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "tui_agent", "config", "show"]
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(
            command, stdout=closed, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert done.returncode == 1
    assert done.stderr == ""


def test_names_that_are_no_text_are_written_out(tmp_path):
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    outcome = run_program(name, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert outcome.status == 2
    assert "\\udcff" in outcome.sentence
