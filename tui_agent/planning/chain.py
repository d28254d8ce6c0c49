"""Climbing a fallback chain: each pattern in order, the first that matches wins, every attempt told."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Outcome = Literal["looking", "hit", "miss", "too_broad", "invalid", "timeout"]


class Attempt(Struct, frozen=True):
    """One pattern of one action: `index` of `total` from 1, how it ended, and how long it took.

    `matches` is how many paths fitted; `paths` are the first of them; `lines` are those of what was loaded.
    """

    action: str
    pattern: str
    index: int
    total: int
    outcome: Outcome = "looking"
    matches: int = 0
    ms: float = 0.0
    paths: tuple[str, ...] = ()
    lines: int = 0
    why: str = ""
