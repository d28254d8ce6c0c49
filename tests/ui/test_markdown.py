"""Markdown from outside: drawn as text, cleaned after entities are decoded, in steps whatever its size."""

from __future__ import annotations

import pytest
from textual.app import ComposeResult
from textual.widgets import Static

from tests.support.panes import ThemedApp
from tui_agent.ui.sink import parts
from tui_agent.ui.widgets.choices import in_words
from tui_agent.ui.widgets.markdown import (
    MOST_LINES,
    PIECE_CHARACTERS,
    PIECE_LINES,
    TOO_DEEP,
    TOO_LONG,
    MarkdownText,
    pieces,
)


def text_of(markdown: str) -> str:
    return "\n".join(piece.content.plain for piece in pieces(markdown))


@pytest.mark.parametrize(
    ("written", "drawn"),
    [
        ("# Title\n\nSome *text* and `code`.", "Title\n\nSome text and code."),
        ("- a\n- b\n  - c\n\n1. x\n2. y", "• a\n• b\n  ◦ c\n\n1. x\n2. y"),
        ("> said\n\nafter", "▏ said\n\nafter"),
        ("| a | b |\n|---|---|\n| long | c |", "a    │ b\n─────┼──\nlong │ c"),
        ("before\n\n    code\n\nafter", "before\n\ncode\n\nafter"),
        ("see [here](http://x.y/z)", "see here (http://x.y/z)"),
        ("<b>not bold</b>\n\n<div>\nseen", "<b>not bold</b>\n\n<div> seen"),
        ("- \n- b", "• \n• b"),
    ],
)
def test_it_is_drawn(written: str, drawn: str) -> None:
    assert text_of(written) == drawn


@pytest.mark.parametrize("entity", ["&#x202e;", "&#27;[31m", "&#8203;", "&#x9b;", "&lrm;", "&shy;", "&#x7f;"])
@pytest.mark.parametrize(
    "around",
    ["{}", "**{}**", "[{}](x)", "[x]({})", "![{}](x)", "| {} |\n|---|\n| {} |", "# {}", "```{}\nx\n```"],
)
def test_an_entity_is_decoded_before_it_is_cleaned(entity: str, around: str) -> None:
    shown = text_of(around.replace("{}", entity))
    assert not set(shown) & set("\x1b\u202e\u200b\x9b\u200e\u00ad\x7f")


DEEP = {
    "quotes": ">" * 1500 + " x",
    "lists on one line": "- " * 1500 + "x",
    "lists": "".join("  " * level + "- x\n" for level in range(300)),
    "quotes and lists": "> - " * 400 + "x",
    "brackets": "[" * 50_000,
    "links": "[" * 1500 + "](x)" * 1500,
    "emphasis": "*a **b " * 20_000,
    "ticks": "".join("`" * count + "a " for count in range(1, 400)),
    "tags": "<b>" * 5_000,
    "one line": "word " * 100_000,
    "columns": "|a" * 6_000 + "|\n" + "|-" * 6_000,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_what_is_too_deep_is_plain_text_and_a_line_says_so(text: str) -> None:
    shown = text_of(text)
    assert shown.endswith(TOO_DEEP)
    assert shown.replace("\n", "").startswith(text.replace("\n", "")[:1000])


@pytest.mark.parametrize(
    "text",
    [
        "- a *b*\n" * 4_000,
        "x\n\n" * 2_400,
        "|a|b|\n|-|-|\n" + "|a|b|\n" * 4_000,
        "word " * 1_900,
        "w" * 9_999,
    ],
)
def test_a_piece_is_small_whatever_the_text(text: str) -> None:
    found = pieces(text)
    assert all(len(piece.content) <= PIECE_CHARACTERS + PIECE_LINES for piece in found)
    assert all(piece.content.plain.count("\n") < PIECE_LINES for piece in found)
    assert TOO_LONG not in text_of(text)


def test_of_a_huge_text_the_beginning_is_drawn_and_a_line_says_so() -> None:
    shown = text_of("line\n\n" * MOST_LINES)
    assert shown.endswith(TOO_LONG)
    assert MOST_LINES - 1 <= len(shown.split("\n")) - 1 <= MOST_LINES


class MarkdownApp(ThemedApp):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.body = MarkdownText(text)

    def compose(self) -> ComposeResult:
        yield self.body

    def drawn(self) -> str:
        return "\n".join(str(child.content) for child in self.body.query_children(Static))


async def test_a_reply_that_streams_grows_and_shrinks_in_place() -> None:
    app = MarkdownApp("- a\n")
    async with app.run_test() as pilot:
        for text in ("- a\n- b *c", "- a\n- b *c*\n\n```python\nx = 1\n", "- a\n" * 200, "end"):
            await app.body.show(text)
            await pilot.pause()
            assert app.drawn() == text_of(text)
        assert "end" in app.text


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("Run <b>all</b> tests &amp; stop", "Run all tests & stop"),
        ("a < b", "a < b"),
        ("&#x202e;&#x9b;x", "�›x"),
    ],
)
def test_the_words_of_a_next_step_are_decoded_and_then_cleaned(label: str, shown: str) -> None:
    assert parts(in_words(label)).plain == shown
