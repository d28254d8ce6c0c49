"""Arguments: what each command is handed, and one sentence for each that is wrong."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock, create_autospec

import pytest
from support.privileges import unprivileged

from tui_agent import cli
from tui_agent.errors import Unreachable
from tui_agent.headless import arguments, run_command
from tui_agent.headless import run as run_module
from tui_agent.headless.arguments import (
    OpenOption,
    RunOptions,
    ScreenOptions,
    workspace_folder,
)

CONTRACT = [
    *(
        "acp",
        "answer",
        "apply",
        "attach",
        "completion",
        "config",
        "demo",
        "doctor",
        "hooks",
        "login",
        "logout",
        "logs",
        "manual",
    ),
    *(
        "mcp",
        "places",
        "ps",
        "redo",
        "run",
        "serve",
        "sessions",
        "setup",
        "skip",
        "ssh",
        "stats",
        "stop",
        "trust",
        "undo",
        "view",
        "worker",
    ),
]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").write_text("one\ntwo\n")
    (folder / "b:7").write_text("")
    monkeypatch.chdir(folder)
    return folder.resolve()


@pytest.fixture
def ran(monkeypatch) -> Mock:
    """Takes what `run` would do, without the processes that it would need."""
    monkeypatch.setattr(run_command, "_processes", lambda options: (None, None))
    return replaced(monkeypatch, run_module, "run")


@pytest.fixture
def opened(monkeypatch) -> Mock:
    return replaced(monkeypatch, cli, "open_screen")


def replaced(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> Mock:
    """A stand-in for a command's body that takes what the body takes."""
    stand_in = create_autospec(getattr(module, name), return_value=0)
    monkeypatch.setattr(module, name, stand_in)
    return stand_in


def handed(stand_in: Mock) -> list:
    """The one value that each call was given."""
    return [taken.args[0] for taken in stand_in.call_args_list]


class TestRun:
    def test_takes_every_option_of_the_contract(self, run, ran, workspace, tmp_path):
        recording = tmp_path / "recording.jsonl"
        recording.write_text("")
        words = [
            "--workspace",
            str(workspace),
            "--session",
            "last",
            "--model",
            "a/b",
            "--planner-model",
            "none",
        ]
        words += ["--replay", str(recording), "--record", str(tmp_path / "new.jsonl"), "--set", "max_steps=3"]
        words += ["--trust", "--protocol", "tools", "--open", "a.py:2", "--open", "b:7", "--attach", "./a.py"]
        words += ["--apply", "all", "--json", "do it"]
        assert run("run", *words).status == 0
        assert handed(ran) == [
            RunOptions(
                prompt="do it",
                workspace=workspace,
                session="last",
                overrides=("max_steps=3", "model=a/b", "planner_model=none", "protocol=tools"),
                trust=True,
                replay=recording.resolve(),
                record=(tmp_path / "new.jsonl").resolve(),
                open=(OpenOption("a.py", 2, 2), OpenOption("b:7")),
                attach=("a.py",),
                apply="all",
                as_json=True,
            )
        ]

    def test_alone_is_a_new_session_here_that_applies_nothing(self, run, ran, workspace):
        run("run", "do it")
        assert handed(ran) == [RunOptions(prompt="do it", workspace=workspace)]

    def test_a_hyphen_reads_standard_input(self, run, ran, workspace, monkeypatch, tmp_path):
        (tmp_path / "prompt").write_bytes("Füge\nhinzu\n".encode())
        with open(tmp_path / "prompt") as file:
            monkeypatch.setattr("sys.stdin", file)
            run("run", "-")
        assert handed(ran)[0].prompt == "Füge\nhinzu\n"

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            ([], "missing argument 'PROMPT'"),
            (["a", "b"], "quote arguments that contain spaces"),
            ([" "], "the request is empty"),
            (["x", "--applyy", "all"], "did you mean --apply?"),
            (["x", "--apply", "some"], "'some' is not one of"),
            (["x", "--workspace", "nowhere"], "there is no folder nowhere"),
            (["x", "--workspace", "a.py"], "a.py is a file"),
            (["x", "--replay", "none.jsonl"], "there is no recording none.jsonl"),
            (["x", "--record", "no/folder.jsonl"], "no/folder.jsonl cannot be written"),
            (["x", "--open", "none.py"], "none.py does not exist"),
            (["x", "--open", "a.py:0"], "names no lines"),
            (["x", "--open", "a.py:3-2"], "names no lines"),
            (["x", "--attach", "../a.py"], "is outside the workspace"),
            (["x", "--attach", "."], "is a folder"),
            (["x", "--attach", "a\x1b[31m.py"], "a\\x1b[31m.py does not exist"),
        ],
    )
    def test_a_wrong_argument_is_one_sentence(self, run, ran, workspace, words, says):
        outcome = run("run", *words)
        assert outcome.status == 2
        assert says in outcome.sentence
        assert outcome.out == ""
        assert not ran.called


@pytest.mark.parametrize(
    ("words", "says"),
    [
        *([(word,), "missing option '--session'"] for word in ("apply", "skip", "undo", "redo")),
        (("stats", "--all", "--session", "x"), "--session and --all cannot be combined"),
        (("stats", "--json", "--plot"), "--json and --plot cannot be combined"),
        (("login", "openrouter", "--json"), "--json works only with `tui-agent login status`"),
    ],
)
def test_options_that_are_missing_or_exclude_each_other_are_one_sentence(run, workspace, words, says):
    outcome = run(*words)
    assert outcome.status == 2
    assert says in outcome.sentence


def test_importing_says_that_it_cannot(run, workspace):
    outcome = run("sessions", "import", "a.py")
    assert outcome.status == 1
    assert "a.py was not imported" in outcome.sentence


@pytest.mark.parametrize("why", ["your home folder", "the root of the file system", "more than 0 files"])
def test_a_run_in_a_folder_that_is_hardly_a_project_needs_its_name(run, ran, workspace, monkeypatch, why):
    monkeypatch.setattr(arguments, "MOST_FILES", 0)
    if why == "your home folder":
        monkeypatch.setenv("HOME", str(workspace))
    elif "root" in why:
        monkeypatch.chdir("/")
    outcome = run("run", "change it")
    assert outcome.status == 2
    assert why in outcome.sentence and "name a folder with --workspace" in outcome.sentence
    assert not ran.called
    run("run", "change it", "--workspace", ".")
    run("run", "change it", "--session", "last")
    assert ran.call_count == 2


def test_of_a_repository_the_files_that_git_tracks_are_counted(workspace, monkeypatch):
    monkeypatch.setattr(arguments, "MOST_FILES", 1)
    for args in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *args], check=True)
    assert "more than 1 files" in arguments.why_ask_first(workspace)
    monkeypatch.setattr(arguments, "MOST_FILES", 2)
    (workspace / "untracked").touch()
    assert not arguments.why_ask_first(workspace)
    (workspace / ".git/index").unlink()
    assert not arguments.why_ask_first(workspace)


class TestOpening:
    def test_nothing_opens_this_folder(self, run, opened, workspace):
        assert run().status == 0
        assert handed(opened) == [ScreenOptions(workspace, named=False)]

    def test_takes_every_option_of_the_contract(self, run, opened, workspace, tmp_path):
        run(
            "--theme",
            "light",
            "--set",
            "a=b",
            "--model",
            "m",
            "--continue",
            "--plain",
            str(tmp_path),
            "--debug",
        )
        assert handed(opened) == [
            ScreenOptions(
                tmp_path.resolve(),
                continue_newest=True,
                overrides=("a=b", "model=m", "theme=light", "screen.plain=true"),
            )
        ]

    def test_resume_with_and_without_an_id(self, run, opened, workspace):
        run("--resume")
        run("--resume", "abc")
        run("--resume", ".")
        run(".", "--resume")
        assert [options.resume for options in handed(opened)] == ["", "abc", "", ""]
        assert "cannot be combined" in run("--resume", "--continue").sentence

    def test_a_folder_that_is_called_like_a_command_is_opened_by_its_path(self, run, opened, workspace):
        (workspace / "demo").mkdir()
        run("./demo")
        assert handed(opened) == [ScreenOptions(workspace / "demo")]

    @pytest.mark.parametrize(
        ("path", "says"),
        [
            ("./nowhere", "there is no folder ./nowhere"),
            ("no.where", "there is no folder no.where"),
            ("chat", "no command chat; commands are view, demo, setup, run, apply, skip, undo, redo,"),
            ("a.py", "a.py is a file: name its folder: ."),
            ("a.py/x", "a.py/x"),
            ("x" * 30, "there is no folder"),
            ("sessionz", "no command sessionz; commands are view, demo,"),
            ("sessionz", "sessions: did you mean `tui-agent sessions`?"),
            ("x" * 300, "too long"),
            ("", "the name of the folder is empty"),
        ],
    )
    def test_a_bad_folder_is_one_sentence(self, run, opened, workspace, path, says):
        outcome = run(path)
        assert outcome.status == 2
        assert says in outcome.sentence
        assert not opened.called

    def test_a_circle_of_links_is_one_sentence(self, run, opened, workspace):
        (workspace / "round").symlink_to("round")
        assert "round" in run("round").sentence

    def test_a_folder_without_permission_is_one_sentence(self):
        with unprivileged() as folder:
            closed = folder / "closed"
            closed.mkdir(mode=0o000)
            with pytest.raises(cli.UsageError, match="may not be read"):
                workspace_folder(str(closed))

    def test_a_folder_that_has_gone_is_one_sentence(self, run, opened, workspace):
        (workspace / "gone").mkdir()
        os.chdir(workspace / "gone")
        (workspace / "gone").rmdir()
        outcome = run()
        assert outcome.status == 2
        assert outcome.sentence


class TestErrors:
    def test_an_error_is_one_sentence_and_its_status(self, run, ran, workspace):
        ran.side_effect = Unreachable("nobody answers", "start the server")
        outcome = run("run", "x")
        assert (outcome.status, outcome.err) == (3, "tui-agent: nobody answers: start the server\n")

    def test_a_bug_is_one_sentence_too_unless_asked(self, run, ran, workspace):
        ran.side_effect = ZeroDivisionError("by \x1b zero")
        outcome = run("run", "x")
        assert outcome.status == 1
        assert "ZeroDivisionError: by \\x1b zero" in outcome.sentence
        assert "Traceback" in run("run", "x", "--debug").err
        assert handed(ran)[-1].prompt == "x"

    def test_words_behind_two_hyphens_are_no_options(self, run, ran, workspace):
        run("run", "--", "--debug")
        assert handed(ran)[0].prompt == "--debug"

    def test_an_interrupt_is_status_130(self, run, ran, workspace):
        ran.side_effect = KeyboardInterrupt()
        assert run("run", "x").status == 130

    def test_the_status_of_a_command_is_that_of_the_program(self, run, ran, workspace):
        ran.return_value = 3
        assert run("run", "x").status == 3

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["--mdel", "x"], "`tui-agent` has no option --mdel: did you mean --model?"),
            (
                ["sessions", "lst"],
                "`tui-agent sessions` has no command lst: did you mean `tui-agent sessions list`?",
            ),
            (["sessions"], "`tui-agent sessions` needs a command: write one of list,"),
            (["chat", "hello"], "no command chat; commands are view, demo,"),
            (["sessionz", "list"], "did you mean `tui-agent sessions`?"),
            (["config", "xyz"], "write one of path, show, check"),
            (["--theme", "light", "demo"], "the command must precede its options: write `tui-agent demo …`"),
            (["--model", "m", "run", "x"], "the command must precede its options: write `tui-agent run …`"),
        ],
    )
    def test_an_unknown_word_is_answered_with_the_nearest(self, run, words, says):
        outcome = run(*words)
        assert outcome.status == 2
        assert says in outcome.sentence


def test_help_names_every_command_and_option_of_the_contract(run):
    said = run("--help").out
    commands = re.findall(r"^  ([a-z]+)  ", said.partition("Commands:")[2], re.MULTILINE)
    assert commands == CONTRACT
    for option in (
        "--resume",
        "--continue",
        "--model",
        "--planner-model",
        "--theme",
        "--set",
        "--record",
        "--replay",
    ):
        assert option in said


def test_every_command_has_a_help_that_begins_as_the_list_says(run):
    listed = {
        name: it.get_short_help_str(200) for name, it in cli.tui_agent.commands.items() if not it.hidden
    }
    for command in CONTRACT:
        said = run(command, "--help").out
        assert f"Usage: tui-agent {command}" in said and listed[command] in " ".join(said.split())


def test_a_pipe_in_place_of_the_index_does_not_hold_up_the_start(workspace: Path) -> None:
    (workspace / ".git").mkdir()
    os.mkfifo(workspace / ".git" / "index")
    assert not arguments.why_ask_first(workspace)
