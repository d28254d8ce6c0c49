"""`tui-agent places list|test`, and `tui-agent worker`, which runs in a place."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from pathlib import Path

import click

from tui_agent.errors import SessionError, UsageError
from tui_agent.files.text import escaped
from tui_agent.headless import arguments
from tui_agent.headless.arguments import CommandGroup
from tui_agent.headless.output import json_line, note, row
from tui_agent.settings.folders import user_folders
from tui_agent.settings.schema import PlaceSettings, Settings
from tui_agent.settings.trust import load_as_trusted


@click.group(cls=CommandGroup)
def places() -> None:
    """List and test places: containers and hosts that run commands."""


@places.command("list")
@arguments.workspace_option
@arguments.json_option
def list_(workspace: str, as_json: bool) -> int:
    """List the places in your settings and in those of a trusted workspace."""
    found = load_as_trusted(arguments.workspace_folder(workspace)).settings.places
    for one in found:
        if as_json:
            json_line(one)
        else:
            row(
                f"{one.name:<16} {one.copy:<7} {escaped(one.run)}{'  (also for the model)' if one.model else ''}"
            )
    if not found and not as_json:
        note("No places are configured: add [[places]] to your settings.")
    return 0


@places.command()
@click.argument("name", required=False)
@arguments.workspace_option
@arguments.json_option
def test(name: str | None, workspace: str, as_json: bool) -> int:
    """Test all places, or NAME: connect, run, stop, measure speed. The exit status is 1 if one fails."""
    from tui_agent.places.place import named

    folder = arguments.workspace_folder(workspace)
    settings = load_as_trusted(folder).settings
    wanted = [one for one in settings.places if name in (None, one.name)]
    if name and not wanted:
        named(settings.places, name)
    if not wanted:
        note("No places are configured: add [[places]] to your settings.")
    return asyncio.run(_test(settings, folder, wanted, as_json))


async def _test(settings: Settings, folder: Path, wanted: list[PlaceSettings], as_json: bool) -> int:
    from tui_agent.places.place import engine_environment, place_of
    from tui_agent.places.proof import ClusterProof, PlaceProof, ProofStep

    environment, failed = engine_environment(os.environ, settings.trial.env), 0

    def show(place: str, step: ProofStep) -> None:
        if as_json:
            json_line({"place": place, "step": step.name, "ok": step.ok, "seconds": round(step.seconds, 3),
                       "words": step.words, "remedy": step.remedy or None})  # fmt: skip
            return
        remedy = f": {step.remedy}" if step.remedy else ""
        row(
            f"{place:<12} {'ok' if step.ok else 'failed':<6} {step.name:<6} {step.seconds:6.2f} s  {step.words}{remedy}"
        )

    for one in wanted:
        key = hashlib.sha256(f"test\0{one.name}".encode()).hexdigest()[:20]
        try:
            proof = (
                ClusterProof(one.name, one.run)
                if one.kind == "dask"
                else PlaceProof(
                    place_of(one), user_folders().state / "places" / key, environment, str(folder)
                )
            )
        except SessionError as error:
            show(one.name, ProofStep("reach", False, 0.0, error.what, error.remedy))
            failed += 1
            continue
        async for step in proof.steps():
            show(one.name, step)
            failed += not step.ok
    return 1 if failed else 0


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
