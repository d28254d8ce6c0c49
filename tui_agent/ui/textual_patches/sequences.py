"""Textual's tables of key sequences, and its reader of one whole sequence.

Defect: `XTermParser.feed` takes late or cut answers of a terminal for keys, so `ui/terminal_input.py` divides what is
read by itself, and needs from Textual only what a whole sequence means.

Figure: none; a late answer is never a key (docs/reliability.md).

Checked with: Textual 8.2.8.

Upstream report: "What a whole key sequence means could be a public function beside the parser that finds sequences."
"""

from __future__ import annotations

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS, IGNORE_SEQUENCE
from textual._keyboard_protocol import FUNCTIONAL_KEYS, MODIFIER_FUNCTIONAL_KEYS
from textual._xterm_parser import XTermParser

__all__ = [
    "ANSI_SEQUENCES_KEYS",
    "FUNCTIONAL_KEYS",
    "IGNORE_SEQUENCE",
    "MODIFIER_FUNCTIONAL_KEYS",
    "XTermParser",
]
