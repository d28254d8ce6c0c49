"""One exchange of the rehearsal."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Scene(Struct, frozen=True):
    """One exchange: `answer` in the `structured` dialect, and the tokens as a provider would count them."""

    request: str
    answer: dict[str, Any]
    tokens_in: int
    tokens_out: int
    cached: int = 0
