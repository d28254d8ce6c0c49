"""What a benchmark prints: a row a figure, with what it should be and what it was."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
OVER = "OVER"


@dataclass(frozen=True)
class Figure:
    """One measured value. `limit` is the most it may be (None: only to be known); `note` is what it is made of."""

    name: str
    measured: float
    limit: float | None = None
    unit: str = ""
    note: str = ""

    @property
    def over(self) -> bool:
        return self.limit is not None and self.measured > self.limit

    def row(self) -> tuple[str, str, str]:
        target = "" if self.limit is None else f"<= {self.limit:g}{self.unit}"
        measured = f"{self.measured:.3g}{self.unit}" + (f"  ({self.note})" if self.note else "")
        return self.name, target, measured + (f"  {OVER}" if self.over else "")


def show(figures: Iterable[Figure]) -> None:
    """Print the rows as `figure | target | measured`, aligned."""
    rows = [("figure", "target", "measured"), *(figure.row() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print(
            " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(),
            flush=True,
        )


def paired(first: Callable[[], T], second: Callable[[], T], pairs: int) -> tuple[list[T], list[T]]:
    """Measure two things in turn, so that what else the machine does falls on both; one run of each goes unused."""
    first(), second()
    measured = [(first(), second()) for _ in range(pairs)]
    return [one for one, _ in measured], [other for _, other in measured]


def ratio(name: str, bare: Sequence[float], ours: Sequence[float], limit: float | None = None) -> Figure:
    """The median of the pairs' ratios, with the two medians in milliseconds beside it."""
    share = statistics.median(our / base for base, our in zip(bare, ours, strict=True))
    note = f"{statistics.median(ours) * 1000:.0f} ms against {statistics.median(bare) * 1000:.0f} ms, {len(bare)} pairs"
    return Figure(name, share, limit, " x", note)
