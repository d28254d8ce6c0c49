"""The process that does what is slow about a folder, and its start ahead of the session that uses it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from tui_agent.errors import ChildFailed
from tui_agent.files.git_folder import TRUSTED_FILTERS
from tui_agent.processes.child import ChildProcess
from tui_agent.processes.environment import for_workspace


def workspace_child(filters: str = "") -> ChildProcess:
    """The process, not started yet. It runs only filters with this fingerprint (see `trust`)."""
    return ChildProcess(
        "tui_agent.workspace.worker", name="workspace", env={**for_workspace(), TRUSTED_FILTERS: filters}
    )


class ChildAhead(Struct, frozen=True):
    """One that gets ready on another core meanwhile, for a folder and the filters that were trusted in it by then."""

    workspace: Path
    filters: str
    process: ChildProcess

    def fits(self, workspace: Path, filters: str) -> bool:
        """Whether a session in this folder may use it."""
        return (self.workspace, self.filters) == (workspace, filters)


async def start_ahead(workspace: Path, filters: str) -> ChildAhead:
    """Start it. No program is taken from the folder: see `avoid_programs_in`, which comes first."""
    process = workspace_child(filters)
    with suppress(ChildFailed):  # the first use says so
        await process.start()
    return ChildAhead(workspace, filters, process)
