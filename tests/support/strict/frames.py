"""Events of a stream, the faults that a test asks for, and the bytes of both."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, cycle
from typing import Any

#: Sizes of the pieces of "tiny_chunks", in bytes.
TINY = (1, 7, 3, 11, 2, 5)
MEGABYTE = "A" * 1_000_000


@dataclass(frozen=True, slots=True)
class Frame:
    """A server-sent event: `data` is JSON, or text as it is. A `final` frame ends the stream.

    The event ":" is a comment.
    """

    data: Any
    event: str = ""
    final: bool = False
    #: The index of the item that the frame belongs to, if the provider numbers its items.
    item: int | None = None

    def encode(self, end: str) -> bytes:
        data = self.data if isinstance(self.data, str) else json.dumps(self.data, ensure_ascii=False)
        if self.event == ":":
            return f": {data}{end}{end}".encode()
        name = f"event: {self.event}{end}" if self.event else ""
        return f"{name}data: {data}{end}{end}".encode()


def disturbed(
    frames: Iterable[Frame], misbehave: frozenset[str], unknown: Frame, error: Frame, halfway: int
) -> Iterator[Frame]:
    """The frames with the faults that are alike for all providers; `halfway` counts frames."""
    if "out_of_order" in misbehave:
        frames = _reversed_items(frames)
    for number, frame in enumerate(frames):
        if number == 1 and "unknown_event" in misbehave:
            yield unknown
        if number == halfway and "error_in_stream" in misbehave:
            yield error
            return
        if frame.final and "no_done" in misbehave:
            return
        if "other_model" in misbehave:
            frame = _renamed(frame, number)
        yield frame


def _renamed(frame: Frame, number: int) -> Frame:
    """The same frame under another model's name, if it names one; the first of a chat stream keeps its name."""
    data = frame.data
    if not isinstance(data, dict) or (number == 0 and data.get("object")):
        return frame
    data = {**data, **{key: "another-model-1" for key in ("model", "modelVersion") if key in data}}
    for key in ("message", "response"):
        if isinstance(data.get(key), dict) and "model" in data[key]:
            data[key] = {**data[key], "model": "another-model-1"}
    return Frame(data, frame.event, frame.final, frame.item)


def _reversed_items(frames: Iterable[Frame]) -> Iterator[Frame]:
    """Numbered items last to first; frames without a number keep their places around them."""
    items: dict[int, list[Frame]] = {}
    for frame in frames:
        if frame.item is not None:
            items.setdefault(frame.item, []).append(frame)
            continue
        yield from chain.from_iterable(items[index] for index in sorted(items, reverse=True))
        items.clear()
        yield frame
    yield from chain.from_iterable(items[index] for index in sorted(items, reverse=True))


def encoded(frames: Iterable[Frame], misbehave: frozenset[str], comment: str) -> Iterator[bytes]:
    """The bytes of a stream: its events, with comments, other line ends, and cuts in odd places."""
    end = "\r\n" if "crlf" in misbehave else "\n"
    events = (frame.encode(end) for frame in frames)
    if "comments" in misbehave:
        note = f": {comment}{end}{end}".encode()
        events = chain.from_iterable((note, event) for event in events)
    return _cut(events) if "tiny_chunks" in misbehave else iter(events)


def _cut(events: Iterable[bytes]) -> Iterator[bytes]:
    sizes = cycle(TINY)
    for event in events:
        start = 0
        while start < len(event):
            size = next(sizes)
            yield event[start : start + size]
            start += size
