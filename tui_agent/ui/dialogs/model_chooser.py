"""Model list: opens with cached data and is updated by provider responses; shows reasoning efforts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Input

from tui_agent.session.models import Offer
from tui_agent.turn.model_choice import EFFORTS, in_short
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.dialogs.model_rows import WIDE, OfferRows, about, fits, fitting, offer_row
from tui_agent.ui.safe_text import label, parts

if TYPE_CHECKING:
    from tui_agent.model.discovery import Suggestion
    from tui_agent.session.models import ModelAccess
    from tui_agent.settings.schema import Effort

#: Dialog width, width of margins and scroll bar, and rows built at once.
WIDTH, BESIDE, MOST = 120, 5, 100


class ModelChooser(Chooser):
    """Returns a row's value: a model name or a value from `others`. ← and → change the current model's
    effort; Tab reloads the provider lists."""

    ID = "model_list"
    DEFAULT_CSS = """
    ModelChooser {
        & > Vertical { width: 120; max-height: 90%; margin-top: 1; }
        & .facts { height: auto; min-height: 2; max-height: 4; margin: 0 0 1 0; }
    }
    """

    def __init__(
        self,
        models: ModelAccess,
        keyless: Callable[[str], Sequence[ChooserRow]],
        others: Callable[[str], Sequence[ChooserRow]],
        model_of: Callable[[str], str],
    ) -> None:
        """`keyless` rows need no API key and are first if no model is selected. `model_of` maps a row's value
        to its model, or ""."""
        to_type = "name or ability; or type provider/model"
        super().__init__("Models", self._rows_of, to_type, self._look(), hint=self._facts, most=MOST)
        self._models = models
        self._keyless = keyless
        self._others = others
        self._model_of = model_of
        #: Models detected apart from the provider lists.
        self.found: Sequence[Suggestion] = models.found or models.offers.suggested()
        self._looked = bool(self.found)
        #: Enter was pressed on an empty list: selects the first row to appear.
        self._waits = False
        #: All models of all providers, also by name.
        self._offers: list[Offer] = []
        self._by_name: dict[str, Offer] = {}
        #: Efforts changed in this dialog, by model name.
        self._efforts: dict[str, Effort] = {}

    # ── what there is ────────────────────────────────────────────────────────────────────────────────────

    async def _look(self) -> None:
        """Load the cache and then local servers, with provider requests in parallel."""

        async def kept() -> None:
            await self._models.offers.read()
            self._refresh()
            self.run_worker(self._models.offers.ask(self._refresh), group="lists", exclusive=True)

        async def find() -> None:
            self.found = await self._models.find()
            self._looked = True
            self._refresh()
            if self._waits:
                self.choose(0)

        await asyncio.gather(kept(), find())

    def action_ask_again(self) -> None:
        self.run_worker(self._models.offers.ask(self._refresh, again=True), group="lists", exclusive=True)

    def _refresh(self) -> None:
        offers = self._models.offers
        self._offers = offers.all()
        self._by_name = {offer.name: offer for offer in self._offers}
        asking = f" · asking {', '.join(sorted(offers.asking))}" if offers.asking else ""
        count = f" · {len(self._offers):,}" if self._offers else ""
        self.retitle(f"Models{count}{asking}")
        self._follow()
        self._show_hint()

    def choose(self, at: int | None) -> None:
        if self._looked or self._models.name or at or self.query_one(Input).value.strip():
            super().choose(at)
        self._waits = not self._looked

    # ── rows ─────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _width(self) -> int:
        return min(WIDTH, int(self.app.size.width * 0.94)) - BESIDE

    def _rows_of(self, words: str) -> OfferRows:
        in_use = self._in_use(words)
        found = [self._found(it) for it in self.found if fits(words, it.model) and it.model != in_use]
        before = [*([self._row(in_use)] if in_use else []), *found]
        shown = frozenset(row.value for row in before)
        typed, name = [], words.strip()
        if name and " " not in name and name not in shown and name not in self._by_name:
            typed.append(ChooserRow(name, label(f"{name}   as typed")))
        offers = fitting(words, self._offers, shown)
        keyless, others = self._keyless(words), self._others(words)
        if self._models.name or words.strip():
            return OfferRows(before, offers, [*typed, *others, *keyless], self._offer)
        if before:
            return OfferRows([*before, *keyless], offers, others, self._offer)
        return OfferRows((), offers, [*keyless, *others], self._offer)

    def _in_use(self, words: str) -> str:
        """The current model if it is the first row; a filtered list has its own order."""
        name = self._models.name
        if not name or not fits(words, name) or (words.strip() and name in self._by_name):
            return ""
        return name

    def _row(self, name: str) -> ChooserRow:
        if name in self._by_name:
            return self._offer(self._by_name[name])
        return ChooserRow(name, label(f"{name}   in use"))

    def _offer(self, offer: Offer) -> ChooserRow:
        mark = "in use" if offer.name == self._models.name else ""
        return offer_row(offer, self._width, mark)

    def _found(self, it: Suggestion) -> ChooserRow:
        offer = self._by_name.get(it.model)
        if offer is not None and self._width >= WIDE:
            return offer_row(offer, self._width, it.because)
        return ChooserRow(it.model, label(f"{it.model}   {it.because}"))

    # ── the lines above them ─────────────────────────────────────────────────────────────────────────────

    def _facts(self, value: str) -> Content:
        offer = self._by_name.get(value)
        keys = (
            self._effort_hint(value),
            parts(self.keys_for(("model_list.ask_again", "reloads"))),
        )
        lines = [
            label(about(offer, self._width) if offer else "").truncate(self._width, ellipsis=True),
            Content("   ").join([words for words in keys if words]),
            *(
                [label(self._error_line(), "$warning").truncate(self._width, ellipsis=True)]
                if self._error_line()
                else []
            ),
        ]
        return Content("\n").join(lines)

    def _error_line(self) -> str:
        lacking = self._models.offers.lacks(self._models.name)
        return " · ".join(
            [
                *([f"{self._models.name} is not in the list of {lacking}"] if lacking else []),
                *(f"{provider}: {why}" for provider, why in sorted(self._models.offers.errors.items())),
            ]
        )

    # ── effort ───────────────────────────────────────────────────────────────────────────────────────────

    def effort(self, name: str) -> Effort:
        """The effort of a model, including unsaved changes."""
        return self._efforts.get(name) or self._models.effort(name)

    def action_change_effort(self, step: int) -> None:
        if name := self._with_levels(self.value):
            at = EFFORTS.index(self.effort(name)) + step
            self._efforts[name] = EFFORTS[max(0, min(at, len(EFFORTS) - 1))]
            self._show_hint()

    def _effort_hint(self, value: str) -> Content:
        name = self._with_levels(value)
        if not name:
            return Content()
        effort = self.effort(name)
        shown = in_short(effort, self._models.level(effort, name)) or effort
        return parts(
            "effort ",
            (f"‹ {shown} ›", "$accent"),
            f"   {self.keys_for(('model_list.less_effort model_list.more_effort', 'change it'))}",
        )

    def _with_levels(self, value: str) -> str:
        """ "" if there is none or its provider has no effort levels."""
        name = self._model_of(value)
        return name if name and self._models.level("max", name) else ""
