"""Each answer of the collections leaves the same words to read, and the same is said of it, in both dialects.

`samples/told.json` has for each: the words, unless they are the whole answer; those that are shown
while it is read, if these are others; the sentences about it; and those about its first two thirds, cut there, in
each dialect. A difference is one that a person sees. If it is intended, write the
file again: `python -m tests.answers.test_told_readings`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import local_replies, replies
from support.shapes import FUNCTIONS, RESPONSE

from tui_agent.answers.structured_reader import StructuredReader
from tui_agent.answers.tools_reader import ToolsReader
from tui_agent.answers.values import Delta, Reply

TOLD = Path(__file__).parent / "samples" / "told.json"
TEXTS = {
    **{sample.name: sample.text for sample in (*replies.READ, *replies.REFUSED, *replies.SHOWN)},
    **{f"local: {name}": text for name, text in (local_replies.READ | local_replies.REFUSED).items()},
}


def structured(text: str, cut: bool) -> tuple[Reply, str]:
    reader = StructuredReader(RESPONSE, FUNCTIONS)
    shown = in_pieces(text, reader.feed)
    return reader.finish(cut), shown


def tools(text: str, cut: bool) -> tuple[Reply, str]:
    reader = ToolsReader(RESPONSE, FUNCTIONS)
    shown = in_pieces(text, reader.feed)
    return reader.finish(cut), shown


def in_pieces(text: str, feed: Callable[[str], Iterable[Delta]]) -> str:
    """The words that are shown while the pieces are read."""
    deltas = (delta for at in range(0, len(text), 11) for delta in feed(text[at : at + 11]))
    return "".join(delta.text for delta in deltas if delta.part == "message")


def told(reply: Reply) -> list[str]:
    return [
        *reply.faults,
        *(f"{one.path or '-'} refused: {one.why}" for one in reply.refused),
        *(f"{one.path} offered: {one.offered}" for one in reply.offered),
        *(f"call of {one.name}: {one.fault}" for one in reply.calls if one.fault),
    ]


def read(text: str) -> dict[str, Any]:
    """Both dialects read the whole answer alike."""
    (whole, shown), (other, _) = tools(text, False), structured(text, False)
    assert (whole.message, told(whole)) == (other.message, told(other))
    words = {} if whole.message == text else {"words": whole.message}
    words |= {} if shown == whole.message else {"shown": shown}
    cuts = [reader(text[: len(text) * 2 // 3], True)[0] for reader in (tools, structured)]
    return {**words, "told": told(whole), "cut": [told(cut) for cut in cuts]}


@pytest.mark.parametrize("name", TEXTS)
def test_the_same_is_left_and_told(name: str) -> None:
    assert read(TEXTS[name]) == json.loads(TOLD.read_text())[name]


if __name__ == "__main__":
    found = {name: read(text) for name, text in TEXTS.items()}
    TOLD.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
