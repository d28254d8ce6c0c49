"""The rehearsal: a bundled sample project and a recorded model, for which no network and no key is needed."""

from __future__ import annotations

from pathlib import Path

from tui_agent.rehearsal.requests import FIRST_REQUEST, SECOND_REQUEST

__all__ = ["FIRST_REQUEST", "SECOND_REQUEST", "copy_project", "recording"]

FOLDER = Path(__file__).parent


def recording() -> Path:
    """The file with the recorded replies, in the form that `--replay` reads."""
    return FOLDER / "recording.jsonl"


def copy_project(into: Path | None = None) -> Path:
    """Copy the sample project to a folder and return it; see `sample.copy_project`."""
    from tui_agent.rehearsal import sample

    return sample.copy_project(FOLDER / "project", into)
