"""Efforts as text: the prefix of a message, and a short form beside a model."""

from __future__ import annotations

import re
from typing import cast, get_args

from tui_agent.settings.schema import Effort

#: Selectable levels, lowest first.
EFFORTS: tuple[Effort, ...] = get_args(Effort)
_WRITTEN = re.compile(rf"/effort\s+({'|'.join(EFFORTS)})\s+(?=\S)", re.IGNORECASE)


def with_effort(effort: Effort | None, message: str) -> str:
    """`/effort high Fix the parser`: the message as typed and queued."""
    return message if effort is None else f"/effort {effort} {message}"


def split_effort(text: str) -> tuple[Effort | None, str]:
    """The effort prefix and the message; (None, text) without a prefix."""
    found = _WRITTEN.match(text)
    return (cast("Effort", found[1].lower()), text[found.end() :]) if found else (None, text)


def in_short(effort: Effort, level: str) -> str:
    """`high`, or `high→medium` if the model uses another `level`; "" for auto, and for a model without
    levels."""
    if effort == "auto" or not level:
        return ""
    return effort if effort == level else f"{effort}→{level}"
