"""Regular expressions that are compiled when they are first used: a start imports many that it does not need."""

from __future__ import annotations

import re
import sys
from typing import Any, cast


def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` gives, as far as its methods and attributes go; a fault in it shows at the first use."""
    return cast("re.Pattern[str]", _Late(pattern, flags))


def compile_in(*packages: str) -> None:
    """Compile those of the modules of these packages that are imported: for a moment in which nobody waits."""
    for name, module in sys.modules.copy().items():  # one step: other threads import meanwhile
        if name.startswith(packages):
            for value in vars(module).copy().values():
                if isinstance(value, _Late):
                    value.compiled()


class _Late:
    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags
        self._compiled: re.Pattern[str] | None = None

    def compiled(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(*self._source)
        return self._compiled

    def __getattr__(self, name: str) -> Any:
        """Asked once for each name; the next time it is there."""
        value = self.__dict__[name] = getattr(self.compiled(), name)
        return value
