"""Regular expressions that are compiled when they are first used: a start imports many that it does not need."""

from __future__ import annotations

import re
from typing import Any, cast


def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` gives, as far as its methods and attributes go; a fault in it shows at the first use."""
    return cast("re.Pattern[str]", _Late(pattern, flags))


class _Late:
    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        """Asked once for each name; the next time it is there."""
        value = getattr(re.compile(*self._source), name)  # which keeps the newest 512
        self.__dict__[name] = value
        return value
