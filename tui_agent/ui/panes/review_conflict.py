"""What the person has chosen of a conflict so far, place by place, until all of it can be settled."""

from __future__ import annotations

from typing import cast

from tui_agent.edits.conflicts import ConflictView, Side


class ConflictChoices:
    """The choices for one conflict; nothing of it lasts before the last place is decided."""

    def __init__(self, view: ConflictView) -> None:
        self.view = view
        self.place = 0
        self.chosen: dict[int, str] = {}
        self._texts: dict[int, str] = {}

    @property
    def count(self) -> int:
        return len(self.view.conflicts)

    @property
    def decided(self) -> bool:
        return len(self.chosen) == self.count

    @property
    def sides(self) -> list[Side]:
        """A side for each place; where a text stands for it, which side is of no account."""
        return [
            cast("Side", "theirs" if self.chosen[place] == "by hand" else self.chosen[place])
            for place in range(self.count)
        ]

    @property
    def by_hand(self) -> dict[int, str]:
        return {place: text for place, text in self._texts.items() if self.chosen.get(place) == "by hand"}

    def take(self, side: Side) -> None:
        """Choose for the current place, and go on to the next that is open."""
        self.chosen[self.place] = side
        self._go_on()

    def write(self, text: str) -> None:
        """Put a text at the current place."""
        self.chosen[self.place] = "by hand"
        self._texts[self.place] = text if not text or text.endswith("\n") else text + "\n"
        self._go_on()

    def step(self, step: int) -> bool:
        """Go to the next or previous place; whether there was one."""
        wanted = self.place + step
        if not 0 <= wanted < self.count:
            return False
        self.place = wanted
        return True

    @property
    def draft(self) -> str:
        """What editing the current place begins with: both sides, or what was written before."""
        if self.place in self._texts:
            return self._texts[self.place]
        region = self.view.regions[self.view.conflicts[self.place]]
        return "".join((*region.yours, *region.theirs))

    def _go_on(self) -> None:
        order = [*range(self.place + 1, self.count), *range(self.place)]
        self.place = next((place for place in order if place not in self.chosen), self.place)
