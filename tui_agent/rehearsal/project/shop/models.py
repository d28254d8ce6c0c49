"""Orders and payments as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Line:
    """One title of an order; `price` is in cents for one copy."""

    title: str
    copies: int
    price: int


@dataclass(frozen=True)
class Order:
    id: str
    customer: str
    lines: tuple[Line, ...]

    @property
    def total(self) -> int:
        """The whole price in cents."""
        return sum(line.copies * line.price for line in self.lines)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Order:
        lines = tuple(Line(line["title"], line["copies"], line["price"]) for line in data["lines"])
        return cls(data["id"], data["customer"], lines)


@dataclass(frozen=True)
class Receipt:
    """What the payment service answers: `amount` is in cents."""

    order: str
    reference: str
    amount: int


def euros(cents: int) -> str:
    """`1995` as `19.95 EUR`."""
    return f"{cents // 100}.{cents % 100:02} EUR"
