"""Rows of the model list: filter, and facts in columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import overload

from tui_agent.session.models import Offer
from tui_agent.ui.dialogs.chooser import ChooserRow
from tui_agent.ui.safe_text import parts

#: Minimum and maximum name width, and the row width for abilities and dates.
LEAST_NAME, MOST_NAME, WIDE = 24, 44, 100
ABILITIES = {"t": "functions", "s": "schema", "v": "pictures", "r": "thinking"}
_PER_MILLION = 1_000_000


class OfferRows(Sequence[ChooserRow]):
    """Rows around a long list of models, whose rows are built on access."""

    def __init__(
        self,
        before: Sequence[ChooserRow],
        offers: Sequence[Offer],
        after: Sequence[ChooserRow],
        make: Callable[[Offer], ChooserRow],
    ) -> None:
        self._all: list[ChooserRow | Offer] = [*before, *offers, *after]
        self._make = make

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, at: int) -> ChooserRow: ...
    @overload
    def __getitem__(self, at: slice) -> list[ChooserRow]: ...
    def __getitem__(self, at: int | slice) -> ChooserRow | list[ChooserRow]:
        if isinstance(at, slice):
            return [self._row(one) for one in self._all[at]]
        return self._row(self._all[at])

    def _row(self, one: ChooserRow | Offer) -> ChooserRow:
        return self._make(one) if isinstance(one, Offer) else one


def fits(words: str, text: str) -> bool:
    """Whether a text contains all words, ignoring case."""
    text = text.lower()
    return all(word in text for word in words.lower().split())


def fitting(words: str, offers: Sequence[Offer], left_out: frozenset[str]) -> list[Offer]:
    """Without words, retired models are excluded."""
    if not words.strip():
        return [offer for offer in offers if not offer.ended and offer.name not in left_out]
    return [
        offer
        for offer in offers
        if offer.name not in left_out and fits(words, f"{offer.name} {abilities(offer)}")
    ]


def offer_row(offer: Offer, width: int, mark: str = "") -> ChooserRow:
    """A model's row, `width` cells wide: name, date, window, price and abilities, or its retirement. `mark`
    marks the current model."""
    wide = width >= WIDE
    name = max(LEAST_NAME, min(MOST_NAME, width - (70 if wide else 37)))
    shown = offer.name.ljust(name) if len(offer.name) <= name else f"{offer.name[: name - 1]}…"
    columns = [
        *([dated(offer).rjust(10)] if wide else []),
        tokens(offer.known.window).rjust(5),
        price(offer).ljust(13 if wide else 11),
    ]
    ending = end(offer)
    more = mark or ending or (abilities(offer) if wide else "")
    ink = "$accent" if mark else "$warning" if ending else "$muted"
    row = parts("  ".join([shown, *([] if offer.ended else columns)]), "  ", (more, ink))
    return ChooserRow(offer.name, row.truncate(width, ellipsis=True))


def about(offer: Offer, width: int) -> str:
    """Facts of a model in one line of `width` cells."""
    wide = width >= WIDE
    per = " per million tokens" if wide else ""
    facts = (
        end(offer),
        dated(offer),
        tokens(offer.known.window) + (" tokens" if wide and offer.known.window else ""),
        f"{price(offer)}{per}" if offer.known.prices else "",
        abilities(offer),
    )
    return " · ".join(filter(None, facts))


def end(offer: Offer) -> str:
    """`ends 2026-12-01`, `switched off since 2026-07-24, followed by deepseek/deepseek-v4-flash`, or ""."""
    if not offer.ended:
        return f"ends {offer.known.ends}" if offer.known.ends else ""
    return f"retired since {offer.known.ends}" + (f", replaced by {offer.follower}" if offer.follower else "")


def dated(offer: Offer) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(offer.created)) if offer.created else ""


def tokens(count: int) -> str:
    """ "" if unknown."""
    if count >= 999_500:
        return f"{count / 1_000_000:.1f}M".replace(".0M", "M")
    return f"{round(count / 1000)}k" if count >= 1000 else str(count or "")


def price(offer: Offer) -> str:
    """Dollars per million input and output tokens, `$2 / $10`; "" if unknown."""
    return "".join(
        f"${it} / ${out}"
        for it, out in [(_dollars(it.input), _dollars(it.output)) for it in offer.known.prices[:1]]
    )


def abilities(offer: Offer) -> str:
    return " ".join(word for letter, word in ABILITIES.items() if letter in offer.known.can)


def _dollars(for_a_token: float) -> str:
    return f"{for_a_token * _PER_MILLION:.3f}".rstrip("0").rstrip(".")
