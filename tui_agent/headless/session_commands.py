"""`tui-agent sessions …`, as click sees it; what it does is in `headless.sessions`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from tui_agent.headless import arguments
from tui_agent.headless.arguments import CommandGroup
from tui_agent.headless.commands import all_option, json_option

if TYPE_CHECKING:
    from tui_agent.log.catalog import Sort


session_argument = click.argument(
    "session", metavar="ID|last", callback=lambda context, parameter, value: arguments.session_id(value)
)


@click.group("sessions", cls=CommandGroup)
def sessions() -> None:
    """List, read, search, export, fork and delete sessions."""


@sessions.command("list")
@all_option
@click.option(
    "--sort",
    type=click.Choice(["newest", "turns", "size", "name"]),
    default="newest",
    help="The order of the list.",
)
@json_option
def list_(everywhere: bool, sort: Sort, as_json: bool) -> int:
    """List sessions, newest first; the id comes first on each line."""
    from tui_agent.headless import sessions as body

    here = arguments.workspace_folder(".")
    return body.list_sessions(here, everywhere=everywhere, as_json=as_json, sort=sort)


@sessions.command()
@session_argument
@click.option(
    "--sent", is_flag=True, help="Show what the model was sent and what it answered, word for word."
)
@json_option
def show(session: str, sent: bool, as_json: bool) -> int:
    """Show what was said, in words."""
    from tui_agent.headless import sessions as body

    return body.show_session(session, as_json=as_json, sent=sent)


@sessions.command()
@click.argument("words", metavar="WORDS", nargs=-1, required=True)
@all_option
@json_option
def search(words: tuple[str, ...], everywhere: bool, as_json: bool) -> int:
    """Find lines that hold WORDS; each begins with the id of its session."""
    from tui_agent.headless import sessions as body

    here = arguments.workspace_folder(".")
    return body.search_sessions(" ".join(words), here, everywhere=everywhere, as_json=as_json)


@sessions.command()
@session_argument
@click.option("--format", "form", type=click.Choice(["md", "json"]), default="md", help="Markdown or JSON.")
@click.option("--output", metavar="FILE", help="Where to write it; standard output if not given.")
def export(session: str, form: Literal["md", "json"], output: str | None) -> int:
    """Export a session as one file."""
    from tui_agent.headless import sessions as body

    return body.export_session(session, form=form, output=arguments.new_file(output))


@sessions.command("import")
@click.argument("source", metavar="FILE|FOLDER", type=click.Path(exists=True))
@click.option("--remove-legacy", is_flag=True, help="Remove an older messages file once all of it is kept.")
def import_(source: str, remove_legacy: bool) -> int:
    """Import an export, or a Roo-style task folder, into this workspace."""
    from tui_agent.headless import sessions as body

    return body.import_session(Path(source), arguments.workspace_folder("."), remove_legacy=remove_legacy)


@sessions.command()
@session_argument
@click.option("--turn", type=click.IntRange(min=1), help="Keep the turns up to this one; all if not given.")
def fork(session: str, turn: int | None) -> int:
    """Begin a new session where this one stood, and print its id."""
    from tui_agent.headless import sessions as body

    return body.fork_session(session, turn=turn)


@sessions.command()
@session_argument
@click.argument("name", metavar="NAME")
def rename(session: str, name: str) -> int:
    """Give a session a name."""
    from tui_agent.headless import sessions as body

    return body.rename_session(session, name)


@sessions.command()
@click.argument("session", metavar="ID")
@click.option("--yes", is_flag=True, help="Do it; without this nothing is deleted.")
def delete(session: str, yes: bool) -> int:
    """Delete a session for good."""
    from tui_agent.headless import sessions as body

    return body.delete_session(session, yes=yes)


@sessions.command()
@click.option("--young", is_flag=True, help="Also texts of the last 30 days, but not those of open sessions.")
@click.option("--yes", is_flag=True, help="Do it; without this, only say what is there.")
@json_option
def clean(young: bool, yes: bool, as_json: bool) -> int:
    """Remove the oldest texts kept for undo, down to undo.max_bytes."""
    from tui_agent.headless import sessions as body

    return body.clean_store(arguments.workspace_folder("."), young=young, yes=yes, as_json=as_json)
