"""What is typed before there is anything to type into: kept in order, shown, and typed again when there is."""

from __future__ import annotations

from textual import events
from textual.app import App

#: Keys that are kept besides those that can be printed.
_KEPT = frozenset({"enter", "backspace"})


class EarlyKeys:
    def __init__(self) -> None:
        self._events: list[events.Key | events.Paste] = []

    def __bool__(self) -> bool:
        return bool(self._events)

    def keep(self, event: events.Key | events.Paste) -> bool:
        """Keep a paste, or a key that belongs to a text; whether it was one."""
        if isinstance(event, events.Key) and not event.is_printable and event.key not in _KEPT:
            return False
        self._events.append(event)
        return True

    @property
    def text(self) -> str:
        return "".join(e.text if isinstance(e, events.Paste) else e.character or "" for e in self._events)

    def type_again(self, app: App[int]) -> None:
        """Give everything to the application, as if it were typed now."""
        for event in self._events:
            match event:
                case events.Paste():
                    app.post_message(events.Paste(event.text))
                case events.Key():
                    app.post_message(events.Key(event.key, event.character))
        self._events = []
