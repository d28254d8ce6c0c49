"""What the terminal sends, read in pieces of any size, is the same events; a long paste is read at once."""

from __future__ import annotations

import pytest
from textual import events
from textual._xterm_parser import XTermParser

from tui_agent.ui.terminal import TerminalInput

SENT = "a\x1b[200~one two\x00\n\x1b[201~b\x1b[A\x1b\x1b[200~three\x1b[201~\x1b[200~x\x1b[201~"


def told(parser: TerminalInput | XTermParser, size: int) -> list[str]:
    pieces = (SENT[at : at + size] for at in range(0, len(SENT), size))
    return [
        f"paste {event.text!r}" if isinstance(event, events.Paste) else event.key
        for piece in pieces
        for event in parser.feed(piece)
        if isinstance(event, (events.Paste, events.Key))
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 1000])
def test_the_same_events_however_it_is_cut(size: int) -> None:
    expected = ["a", r"paste 'one two\n'", "b", "up", "escape", "paste 'three'", "paste 'x'"]
    assert told(TerminalInput(), size) == expected
    assert told(TerminalInput(), size) == told(XTermParser(), 1000)


def test_a_long_paste_is_not_read_letter_by_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    letters, feed = [], XTermParser.feed
    monkeypatch.setattr(XTermParser, "feed", lambda self, data: letters.append(len(data)) or feed(self, data))
    parser, text = TerminalInput(), "a line of a log\n" * 200_000
    sent = f"\x1b[200~{text}\x1b[201~"
    told = [event for at in range(0, len(sent), 4096) for event in parser.feed(sent[at : at + 4096])]
    assert [event.text for event in told if isinstance(event, events.Paste)] == [text]
    assert sum(letters) < 100


def test_a_letter_with_alt_is_a_key_and_no_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textual.constants.ESCAPE_DELAY", 0)
    parser, told = TerminalInput(bound=lambda key: key == "alt+a"), []
    for sent in (
        "\x1ba",
        "\x1b[97;3u",
        "\x1bx",
    ):  # of most terminals, of those that tell more, without a meaning
        for event in (*parser.feed(sent), *parser.tick()):
            assert isinstance(event, events.Key)
            told.append((event.key, event.character, event.is_printable))
    assert told == [("alt+a", None, False), ("alt+a", None, False), ("alt+x", "x", True)]
