"""Shell completion and the manual page, as a shell and `man` use them."""

from __future__ import annotations

import shutil
import subprocess
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
                assert option.opts[-1] in plain, option.opts


@pytest.mark.skipif(shutil.which("man") is None, reason="no man on this system")
def test_the_manual_page_is_read_by_man_without_a_warning(tmp_path: Path) -> None:
    (tmp_path / "page.1").write_text(run_program("manual").out, "utf-8")
    words = ["man", "--warnings", "-l", str(tmp_path / "page.1")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert not done.stderr
    assert "tui-agent run [OPTIONS] PROMPT" in done.stdout and "EXIT STATUS" in done.stdout
