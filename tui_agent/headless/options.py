"""What the person asked for on the command line, checked, as values."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct


class OpenOption(Struct, frozen=True):
    """`--open FILE[:LINE[-LINE]]`: a path below the workspace, and the lines of a cursor or a selection.

    Lines count from 1; `first` is 0 where none was given, `last` is `first` where nothing is selected.
    """

    path: str
    first: int = 0
    last: int = 0


class RunOptions(Struct, frozen=True):
    """`tui-agent run`. The workspace exists and is resolved; `overrides` are settings as `KEY=VALUE`.

    `overrides` hold `--model`, `--planner-model` and `--protocol` too. `session` is "" for a new one, `last`, or
    an id. `trust` uses what the workspace brings, in this run alone. `attach` are paths below the workspace.
    """

    prompt: str
    workspace: Path
    session: str = ""
    overrides: tuple[str, ...] = ()
    trust: bool = False
    replay: Path | None = None
    record: Path | None = None
    open: tuple[OpenOption, ...] = ()
    attach: tuple[str, ...] = ()
    apply: Literal["none", "all"] = "none"
    as_json: bool = False


class DecideOptions(Struct, frozen=True):
    """`tui-agent apply|skip|undo|redo`; without `changes` everything that is pending, or the last apply or undo."""

    decision: Literal["apply", "skip", "undo", "redo"]
    session: str
    workspace: Path
    changes: tuple[str, ...] = ()


class ScreenOptions(Struct, frozen=True):
    """`tui-agent [PATH]`. `resume` is an id, "" to pick one, None not to; `overrides` hold `--theme` and so on."""

    workspace: Path
    resume: str | None = None
    continue_newest: bool = False
    overrides: tuple[str, ...] = ()
    replay: Path | None = None
    record: Path | None = None
