"""`tui-agent worker`: a sub-task of a session elsewhere."""

from __future__ import annotations

import sys

import click

from tui_agent.errors import UsageError


@click.command("worker")
@click.option("--forks", is_flag=True, hidden=True)
def worker(forks: bool) -> int:
    """Run one sub-task for a session (internal).

    tui-agent starts it in a place and communicates over its standard input and output.
    """
    if sys.stdin.isatty():
        raise UsageError("tui-agent worker is started by a session", "set subtasks.place to a place")
    from tui_agent.session.worker import run, run_forks

    if forks:
        run_forks()
    run()
