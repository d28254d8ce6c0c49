"""What of a reply's text was used for something, and what is left to show."""

from __future__ import annotations

from tui_agent.answers.values import Ledger


def test_a_claim_on_joined_pieces_marks_each_piece_and_nothing_between_them() -> None:
    ledger = Ledger("one<a>two<b>three")
    ledger.claim(3, 6, "call")
    ledger.claim(9, 12, "call")
    left = ledger.left()
    assert left.text == "onetwothree"
    left.claim(2, 8, "change")
    assert [(ledger.text[one.begin : one.end], one.use) for one in ledger.spans] == [
        ("on", "shown"),
        ("e", "change"),
        ("<a>", "call"),
        ("two", "change"),
        ("<b>", "call"),
        ("th", "change"),
        ("ree", "shown"),
    ]
