"""Commands in a view of a folder, over an overlay or on a copy under Landlock, as a test wants them."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from tui_agent.sandbox import namespace_view
from tui_agent.sandbox.environment import variables
from tui_agent.sandbox.hidden_files import HiddenFiles
from tui_agent.sandbox.isolation import RunFolder, runner_for
from tui_agent.sandbox.run import Run, RunResult
from tui_agent.sandbox.view_plan import Limits, Seed, plan
from tui_agent.store.commands import Isolated

Runner = Callable[..., Awaitable[RunResult]]


async def in_view(
    root: Path, command: str, *seeds: Seed, timeout: float = 60, limits: Limits | None = None
) -> RunResult:
    hidden = [Seed(path, "hidden") for path in HiddenFiles(str(root)).paths()]
    made = plan(root, seeds=(*seeds, *hidden), limits=limits)
    chosen, _ = variables(str(root), made.places, os.environ)
    return await Run(timeout).alone(runner_for(made), ["/bin/sh", "-c", command], chosen)


async def on_a_copy(
    root: Path, command: str, *seeds: Seed, timeout: float = 60, limits: Limits | None = None
) -> RunResult:
    """Under Landlock; its folder is removed."""
    return await _with_folder("landlock", root, command, *seeds, timeout=timeout, limits=limits)


async def in_bubblewrap(
    root: Path, command: str, *seeds: Seed, timeout: float = 60, limits: Limits | None = None
) -> RunResult:
    """The same by bubblewrap. Raises `NoView` where that has no overlays."""
    namespace_view.check()
    return await _with_folder("bubblewrap", root, command, *seeds, timeout=timeout, limits=limits)


async def _with_folder(
    isolated: Isolated, root: Path, command: str, *seeds: Seed, timeout: float, limits: Limits | None
) -> RunResult:
    hidden = [Seed(path, "hidden") for path in HiddenFiles(str(root)).paths()]
    own = RunFolder(root.parent / "trials")
    made = plan(root, seeds=(*seeds, *hidden), limits=limits, isolated=isolated, folder=own.path)
    chosen, _ = variables(made.root, made.places, os.environ)
    try:
        return await Run(timeout).alone(runner_for(made), ["/bin/sh", "-c", command], chosen)
    finally:
        own.remove()


def text(result: RunResult) -> str:
    return result.output.content().decode("utf-8", "replace")
