"""Textual's tables of key sequences, and its parser for one complete sequence.

Defect: `XTermParser.feed` treats late or split terminal responses as keys. `ui/terminal_input.py`
therefore splits the input and uses Textual only to interpret complete sequences. Without the patch
Textual reads the terminal.

Upstream report: "The meaning of a complete key sequence could be a public function beside the parser that
finds sequences."
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from textual import events

from tui_agent.ui.textual_patches.guard import missing, usable

try:
    from textual import _ansi_sequences, _keyboard_protocol
    from textual._xterm_parser import XTermParser
except ImportError:
    _ansi_sequences = _keyboard_protocol = XTermParser = None

ANSI_SEQUENCES_KEYS: dict[str, Any] = getattr(_ansi_sequences, "ANSI_SEQUENCES_KEYS", {})
IGNORE_SEQUENCE: Any = getattr(_ansi_sequences, "IGNORE_SEQUENCE", None)
FUNCTIONAL_KEYS: dict[str, str] = getattr(_keyboard_protocol, "FUNCTIONAL_KEYS", {})
MODIFIER_FUNCTIONAL_KEYS: set[str] = getattr(_keyboard_protocol, "MODIFIER_FUNCTIONAL_KEYS", set())


@cache
def known() -> bool:
    return usable(
        "key sequences",
        "" if ANSI_SEQUENCES_KEYS and FUNCTIONAL_KEYS and XTermParser else "its names are others",
        missing(
            XTermParser or object,
            parse_mouse_code="self code",
            _sequence_to_key_events="self sequence alt",
        ),
    )


def parser(debug: bool) -> Any:
    assert XTermParser is not None, "only called if known"
    return XTermParser(debug)


def keys_of(reader: Any, sequence: str, alt: bool) -> Iterable[events.Key]:
    return reader._sequence_to_key_events(sequence, alt=alt)
