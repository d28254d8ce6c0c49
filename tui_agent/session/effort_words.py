"""Efforts as text: in front of a message whose turn they are for, and in a few letters beside a model."""

from __future__ import annotations

import re
from typing import cast, get_args

from tui_agent.settings.schema import Effort

#: The levels that a person chooses among, the lowest first.
EFFORTS: tuple[Effort, ...] = get_args(Effort)
_WRITTEN = re.compile(rf"/effort\s+({'|'.join(EFFORTS)})\s+(?=\S)", re.IGNORECASE)


def with_effort(effort: Effort | None, message: str) -> str:
    """`/effort high Fix the parser`: the message as it is typed, and as it waits in the queue."""
    return message if effort is None else f"/effort {effort} {message}"


def split_effort(text: str) -> tuple[Effort | None, str]:
    """The effort and the message; (None, text) if no effort is written in front."""
    found = _WRITTEN.match(text)
    return (cast("Effort", found[1].lower()), text[found.end() :]) if found else (None, text)


def in_short(effort: Effort, level: str) -> str:
    """`high`, or `high→medium` if `level` is the model's own for it; "" for auto, and for a model without levels."""
    if effort == "auto" or not level:
        return ""
    return effort if effort == level else f"{effort}→{level}"
