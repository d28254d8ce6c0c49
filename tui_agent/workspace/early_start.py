"""The child for slow workspace operations, and its start before a session."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from tui_agent.files.git_folder import TRUSTED_FILTERS
from tui_agent.processes.child import ChildProcess
from tui_agent.processes.environment import for_workspace


def workspace_child(filters: str = "") -> ChildProcess:
    """The child runs only filters with this fingerprint (see `trust`)."""
    return ChildProcess(
        "tui_agent.workspace.worker", name="workspace", env={**for_workspace(), TRUSTED_FILTERS: filters}
    )


class EarlyChild(Struct, frozen=True):
    workspace: Path
    filters: str
    process: ChildProcess

    def fits(self, workspace: Path, filters: str) -> bool:
        return (self.workspace, self.filters) == (workspace, filters)


async def start_ahead(workspace: Path, filters: str) -> EarlyChild:
    """Call `avoid_programs_in` first, so that no program of the folder runs."""
    process = workspace_child(filters)
    await process.start()
    return EarlyChild(workspace, filters, process)
