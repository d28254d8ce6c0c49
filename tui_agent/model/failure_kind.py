"""What a kind of failure is known by, and what a person reads of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from tui_agent.errors import ModelError
from tui_agent.files.late_expressions import late
from tui_agent.model.failures import Failure

Again = Literal["no", "if asked", "yes"]


@dataclass(frozen=True)
class FailureKind:
    """One kind. It fits a failure that has one of the `signs` in its words, one of the `statuses` and `when`.

    Of `signs` and `statuses`, an empty one fits everything, and words count also if the status is not known. `what` and
    `remedy` may hold the `{model}`, what was `{said}`, the title of the `{page}`, the `{status}`, the `{keys}` of the
    provider, `{where}` its address is set, and of a request that is too long for the account the `{limit}`, the
    `{span}` that it is for, and the tokens `{requested}`. `again` is whether to ask again: always, or only if the
    provider said when.
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
    """An expression for one of the signs."""
    return "|".join(signs)
