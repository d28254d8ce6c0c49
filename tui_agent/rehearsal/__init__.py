"""The rehearsal: a bundled sample project and a recorded model, without network access or a key."""

from __future__ import annotations

from pathlib import Path

from tui_agent.rehearsal.requests import FIRST_REQUEST, SECOND_REQUEST

__all__ = ["FIRST_REQUEST", "SECOND_REQUEST", "copy_project", "recording"]

FOLDER = Path(__file__).parent


def recording() -> Path:
    """The file of recorded replies, in the format of `--replay`."""
    return FOLDER / "recording.jsonl"


def copy_project(into: Path | None = None) -> Path:
    """Copies the sample project and returns the new folder; see `sample.copy_project`."""
    from tui_agent.rehearsal import sample

    return sample.copy_project(FOLDER / "project", into)
