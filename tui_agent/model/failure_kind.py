"""A class of failures: its criteria and its error message."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from tui_agent.errors import ModelError
from tui_agent.files.lazy_regex import late
from tui_agent.model.failures import Failure

Again = Literal["no", "if asked", "yes"]


@dataclass(frozen=True)
class FailureKind:
    """A class of failures, matched by text (`signs`), status and `when`.

    Empty `signs` or `statuses` match everything, and an unknown status matches if `signs` are set. The
    templates `what` and `remedy` may contain `{model}`, `{said}` (the server's message), `{page}` (a web
    page's title), `{status}`, `{keys}` (key variables), `{where}` (address variable), and for requests
    over an account limit `{limit}` and `{requested}` in tokens per `{span}`. `again`: whether to retry,
    always or only after a delay requested by the provider.
    """

    error: type[ModelError]
    what: str
    remedy: str
    signs: str = ""
    statuses: tuple[int, ...] = ()
    when: Callable[[Failure], bool] = lambda failure: True
    again: Again = "no"
    sought: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sought", late(f"(?im){self.signs}"))

    def fits(self, failure: Failure) -> bool:
        known = failure.status or not self.signs
        if self.statuses and known and failure.status not in self.statuses:
            return False
        return bool(self.sought.search(failure.text)) and self.when(failure)


def any_of(*signs: str) -> str:
    return "|".join(signs)
