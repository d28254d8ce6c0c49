"""`tui-agent completion` and `tui-agent manual`: print a shell's completion script and the manual page."""

from __future__ import annotations

import click

from tui_agent import __version__
from tui_agent.headless.completion import SHELLS, script
from tui_agent.headless.manual import page
from tui_agent.headless.output import document


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> int:
    """Print the completion script for a shell.

    bash: add `eval "$(tui-agent completion bash)"` to ~/.bashrc. zsh: the same with zsh in ~/.zshrc, after compinit.
    fish: tui-agent completion fish > ~/.config/fish/completions/tui-agent.fish
    """
    document(script(shell))
    return 0


@click.command()
@click.pass_context
def manual(context: click.Context) -> int:
    """Print the manual page.

    `tui-agent manual | man -l -` shows it.
    """
    program = context.find_root().command
    assert isinstance(program, click.Group)
    document(page(program, __version__))
    return 0
