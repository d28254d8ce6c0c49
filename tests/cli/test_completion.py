"""Shell completion and the manual page, as a shell and `man` use them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from support.command_line import run_program

from tui_agent.cli import tui_agent


def completed(monkeypatch: pytest.MonkeyPatch, line: str) -> list[str]:
    """Values and types that bash is offered for the last word of a line."""
    words = line.split(" ")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    monkeypatch.setenv("_TUI_AGENT_COMPLETE", "bash_complete")
    return run_program().out.splitlines()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tui-agent ru", "plain,run"),
        ("tui-agent --res", "plain,--resume"),
        ("tui-agent ", "dir,"),
        ("tui-agent . --th", "plain,--theme"),
        ("tui-agent run --ap", "plain,--apply"),
        ("tui-agent run --apply ", "plain,checked"),
        ("tui-agent run --workspace ", "dir,"),
        ("tui-agent run --attach ", "file,"),
        ("tui-agent run --set limits.req", "plain,limits.requests="),
        ("tui-agent run --set mode=a", "plain,mode=ask"),
        ("tui-agent run --set tools.web=", "plain,tools.web=true"),
        ("tui-agent --theme da", "plain,dark"),
        ("tui-agent sessions ex", "plain,export"),
        ("tui-agent sessions export ", "plain,last"),
        ("tui-agent run --model openai/gpt-5", "plain,openai/gpt-5"),
    ],
)
def test_a_word_is_completed(home: Path, monkeypatch: pytest.MonkeyPatch, line: str, offered: str) -> None:
    assert offered in completed(monkeypatch, line)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_script_of_a_shell_asks_this_program(shell: str) -> None:
    assert f"_TUI_AGENT_COMPLETE={shell}_complete" in run_program("completion", shell).out


def test_the_manual_page_names_every_command_and_option() -> None:
    page = run_program("manual").out
    plain = page.replace("\\-", "-")
    for name, command in tui_agent.commands.items():
        made = command.make_context(name, [], resilient_parsing=True).command
        assert made.hidden or f".SS tui-agent {name}" in plain
        for option in made.params:
            if isinstance(option, click.Option):
                assert option.hidden or option.opts[-1] in plain, option.opts


@pytest.mark.skipif(shutil.which("man") is None, reason="no man on this system")
def test_the_manual_page_is_read_by_man_without_a_warning(tmp_path: Path) -> None:
    (tmp_path / "page.1").write_text(run_program("manual").out, "utf-8")
    words = ["man", "--warnings", "-l", str(tmp_path / "page.1")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert not done.stderr
    assert "tui-agent run [OPTIONS] PROMPT" in done.stdout and "EXIT STATUS" in done.stdout


BASH = r"""
compopt() { return 1; }
source <(tui-agent completion bash)
COMP_WORDS=(tui-agent "$1"); COMP_CWORD=1; COMPREPLY=()
_tui_agent_completion tui-agent "$1" tui-agent
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(("word", "offered"), [("m", ["manual", "mcp"]), ("at", ["attach"]), ("./no", [""])])
def test_bash_completes_commands_where_a_folder_may_be_too(home: Path, word: str, offered: list[str]) -> None:
    """Folders are completed by bash itself, if no command begins so."""
    place = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = ["bash", "-c", BASH, "bash", word]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=60, check=True, env={**os.environ, "PATH": place}
    )
    assert done.stdout.splitlines() == offered
