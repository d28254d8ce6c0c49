"""`tui-agent completion` and `tui-agent manual`: print a shell's completion script and the manual page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from tui_agent import __version__
from tui_agent.headless.arguments import SHELLS, script
from tui_agent.headless.output import document

_FIRST = re.compile(r"^(?=['.])", re.M)


def manual_page(program: click.Group, version: str) -> str:
    """Hidden commands have no section, except `open`, whose options are those of the program."""
    context = click.Context(program, info_name="tui-agent")
    opening = program.commands["open"]
    lines = [
        f'.TH TUI-AGENT 1 "" "tui-agent {_text(version)}" "User Commands"',
        ".SH NAME",
        "tui\\-agent \\- change a code base together with a language model, in the terminal",
        ".SH SYNOPSIS",
        ".B tui\\-agent",
        "[OPTIONS] [PATH]",
        ".br",
        ".B tui\\-agent",
        "COMMAND ...",
        ".SH DESCRIPTION",
        *_paragraphs(program.help or ""),
        ".SH OPTIONS",
        *_options(click.Context(opening, info_name="tui-agent", parent=None)),
        ".SH COMMANDS",
        *_commands(program, context),
        ".SH EXIT STATUS",
        ".TP\n.B 0\nSuccess.",
        ".TP\n.B 1\nThe command or the turn failed, reached a limit, or was denied a permission.",
        ".TP\n.B 2\nInvalid arguments or configuration.",
        ".TP\n.B 3\nNo model could be reached, or the key was refused.",
        ".TP\n.B 130\nInterrupted.",
        ".SH FILES",
        "Run\n.B tui\\-agent config path\nto list the folders of the configuration, the data and the state.",
    ]
    return "\n".join(lines) + "\n"


def _commands(group: click.Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        found = group.commands[name]
        if found.hidden:
            continue
        inner = found.make_context(name, [], parent=context, resilient_parsing=True)
        command = inner.command
        usage = " ".join(command.collect_usage_pieces(inner))
        yield f".SS {_text(inner.command_path)} {_text(usage)}"
        yield from _paragraphs(command.help or "")
        yield from _options(inner)
        if isinstance(command, click.Group):
            yield from _commands(command, inner)


def _options(context: click.Context) -> Iterator[str]:
    for parameter in context.command.params:
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            yield ".TP"
            yield f"\\fB{_text(record[0])}\\fR"
            yield _text(record[1])


def _paragraphs(words: str) -> Iterator[str]:
    for paragraph in words.replace("\b", "").split("\n\n"):
        if paragraph.strip():
            yield ".PP"
            yield _text(" ".join(paragraph.split()))


def _text(words: str) -> str:
    return _FIRST.sub(r"\\&", words.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq"))


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
    document(manual_page(program, __version__))
    return 0
