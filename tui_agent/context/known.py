"""Known files: every file that the model has seen, and whether what it saw still holds."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

LoadedBy = Literal["plan", "mention", "buffer", "request", "bundle", "subtask"]
#: `fresh`: the hash is the one that was seen; anything else is why it is not.
Freshness = Literal["fresh", "disk", "buffer", "deleted", "renamed"]


class KnownFile(Struct, frozen=True):
    """One entry of the registry. `md5` is of the content that was seen; turns count from 1, 0 is never."""

    path: str
    md5: str
    seen_turn: int
    size: int
    lines: int = 0
    tokens: int = 0
    language: str = ""
    loaded_by: LoadedBy = "plan"
    whole: bool = True
    modified_turn: int = 0
    freshness: Freshness = "fresh"
    renamed_to: str = ""

    @property
    def stale(self) -> bool:
        return self.freshness != "fresh"


class Touch(Struct, frozen=True):
    """One line of a file's timeline: who did what to it at which turn."""

    path: str
    turn: int
    kind: Literal["read", "mentioned", "edited", "changed outside"]
    md5: str
    active: bool = True
