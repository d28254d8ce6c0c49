"""How often a promise was tried and how often it held, by kind, and the Markdown table of that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from msgspec import Struct, field

Job = TypeVar("Job")
#: The column of a case that names none.
TRIED = "tried"
#: Failures printed for one kind; the others are counted.
SHOWN = 5


class Part(NamedTuple):
    """One of the parts, counted from 1, in which a long proof is run."""

    number: int = 1
    count: int = 1

    def of(self, jobs: Sequence[Job]) -> Sequence[Job]:
        return jobs[self.number - 1 :: self.count]

    @property
    def processes(self) -> int:
        """A part leaves the machine a processor."""
        return 2 if self.count == 1 else 1


WHOLE = Part()


class Cell(Struct):
    """One kind of case, in one column: how often it was tried, how often it held."""

    tried: int = 0
    held: int = 0


class Tally(Struct):
    """All cases of one proof, in the order in which their kinds first came."""

    cells: dict[str, dict[str, Cell]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    #: A table of figures that stands below that of the cases, its head first.
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def case(self, kind: str, held: bool, *, column: str = TRIED, what: str = "") -> None:
        """Count one case. `what` tells a failure from the others: the seed, the file, the first difference."""
        cell = self.cells.setdefault(kind, {}).setdefault(column, Cell())
        cell.tried += 1
        cell.held += held
        if not held:
            self.failures.append(f"{kind} · {column}: {what}" if column != TRIED else f"{kind}: {what}")

    def figures(self, rows: Iterable[tuple[str, ...]]) -> None:
        """Show these figures too; the first row is the head of their table."""
        self.rows.extend(rows)

    def add(self, other: Tally) -> None:
        """Count what another part of the same proof counted."""
        for kind, row in other.cells.items():
            for column, cell in row.items():
                mine = self.cells.setdefault(kind, {}).setdefault(column, Cell())
                mine.tried += cell.tried
                mine.held += cell.held
        self.failures += other.failures
        self.rows += other.rows

    @property
    def tried(self) -> int:
        return sum(cell.tried for row in self.cells.values() for cell in row.values())

    def table(self) -> str:
        """A table in Markdown. With columns, a cell holds `held/tried`; without, a row holds both figures.

        Figures follow in a table of their own.
        """
        if self.rows:
            return f"{self._cases()}\n\n{markdown(self.rows[0], self.rows[1:])}"
        return self._cases()

    def _cases(self) -> str:
        columns = list(dict.fromkeys(column for row in self.cells.values() for column in row))
        if columns == [TRIED]:
            rows = [(kind, str(row[TRIED].tried), str(row[TRIED].held)) for kind, row in self.cells.items()]
            return markdown(("kind", "tried", "held"), rows)
        rows = [(kind, *(_share(row.get(column)) for column in columns)) for kind, row in self.cells.items()]
        return markdown(("kind", *columns), rows)


def _share(cell: Cell | None) -> str:
    return f"{cell.held}/{cell.tried}" if cell else "–"


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [tuple(head), *(tuple(row) for row in rows)]
    lines = [f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(cells[0]), *lines[1:]])
