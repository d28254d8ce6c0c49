"""Shell completion of option values: files, folders, sessions, models, themes and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from tui_agent.errors import UsageError

SHELLS = ("bash", "zsh", "fish")
#: The variable by which a shell asks for completions, as click derives it from the program's name.
VARIABLE = "_TUI_AGENT_COMPLETE"
#: Number of sessions offered, newest first.
MOST_SESSIONS = 50

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def script(shell: str) -> str:
    """Raises `UsageError` if an installed bash is too old."""
    found = get_completion_class(shell)
    assert found is not None, shell
    try:
        return found(click.Group("tui-agent"), {}, "tui-agent", VARIABLE).source()
    except RuntimeError as error:
        raise UsageError(str(error).rstrip("."), "update bash, or use zsh or fish") from None


def files(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def folders(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


def sessions(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """`last` and ids of this workspace's sessions, with the first request of each as help."""
    from tui_agent.files.text import escaped
    from tui_agent.log.catalog import list_sessions
    from tui_agent.settings.folders import user_folders

    folder = Path(context.params.get("workspace") or ".").expanduser().resolve()
    entries = list_sessions(user_folders().data, folder)[:MOST_SESSIONS]
    known = {
        "last": "the newest session",
        **{entry.id: escaped(entry.name or entry.first_request) for entry in entries},
    }
    return _matching(known.items(), incomplete)


def models(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from tui_agent.model.model_table import table

    return _matching(
        ((f"{provider}/{name}", "") for provider, names in table().models.items() for name in names),
        incomplete,
    )


def themes(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from tui_agent.settings.folders import themes_folder, user_folders

    places = (themes_folder(), user_folders().config / "themes")
    names = {path.stem for place in places for path in place.glob("*.toml")}
    return _matching(((name, "") for name in sorted(names)), incomplete)


def settings(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from tui_agent.settings.schema import entries

    return _matching(((f"{key}=", "") for key in entries()), incomplete)


def _matching(known: Iterable[tuple[str, str]], incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(name, help=" ".join(words.split())[:80])
        for name, words in known
        if name.startswith(incomplete)
    ]
