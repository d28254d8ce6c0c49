"""Markdown from outside: drawn as text, cleaned after entities are decoded, in steps whatever its size."""

from __future__ import annotations

import pytest
from textual.app import ComposeResult

from tests.support.panes import ThemedApp
from tui_agent.ui.sink import parts
from tui_agent.ui.widgets.markdown import (
    MOST_LINES,
    MOST_TOGETHER,
    TOO_DEEP,
    TOO_LONG,
    draw,
)
from tui_agent.ui.widgets.message_text import MessageText
from tui_agent.ui.widgets.prompt_lines import in_words


def text_of(markdown: str) -> str:
    return "\n".join(line.content.plain for line in draw(markdown).lines)


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
def test_what_is_drawn_together_is_small_whatever_the_text(text: str) -> None:
    found = draw(text).lines
    assert all(len(line.content) <= MOST_TOGETHER and "\n" not in line.content.plain for line in found)
    assert TOO_LONG not in text_of(text)


def test_of_a_huge_text_the_beginning_is_drawn_and_a_line_says_so() -> None:
    shown = text_of("line\n\n" * MOST_LINES)
    assert shown.endswith(TOO_LONG)
    assert MOST_LINES - 1 <= len(shown.split("\n")) - 1 <= MOST_LINES


class MarkdownApp(ThemedApp):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.body = MessageText(text)

    def compose(self) -> ComposeResult:
        yield self.body

    def drawn(self) -> str:
        """What the widget draws, line by line; code is set in."""
        return "\n".join(self.body.render_line(y).text.strip() for y in range(self.body.size.height))


async def test_a_reply_that_streams_grows_and_shrinks_in_place() -> None:
    app = MarkdownApp("- a\n")
    async with app.run_test() as pilot:
        for text in ("- a\n- b *c", "- a\n- b *c*\n\n```python\nx = 1\n", "- a\n" * 200, "end"):
            await app.body.show(text)
            await pilot.pause()
            assert app.drawn() == text_of(text)
        assert "end" in app.text


LONG = (
    "# Title\n\nSome *text*, a list:\n\n- a\n- b\n  - c\n\n> said\n\n"
    + "word " * 60
    + (
        "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = 1\n\ny = [2]\n```\n"
        "1. one\n\n   more\n2. two\n\nend\n====\n"
    )
)


@pytest.mark.parametrize("size", [1, 7, 50])
def test_what_streams_ends_as_the_same_text_at_once(size: int) -> None:
    drawn = None
    for end in range(size, len(LONG) + size, size):
        drawn = draw(LONG[:end], growing=True, before=drawn)
        assert [line.content.plain for line in drawn.lines] == text_of(LONG[:end]).split("\n")
    assert drawn is not None and 0 < drawn.read < len(LONG) and drawn.settled
    assert draw(LONG, before=drawn).lines[-1].content.plain == "end"


def test_complete_blocks_are_not_drawn_again_while_more_comes() -> None:
    first = draw(LONG, growing=True)
    second = draw(LONG + "more words", growing=True, before=first)
    assert all(old is new for old, new in zip(first.lines[: first.settled], second.lines, strict=False))


def test_code_gets_its_colours_when_it_is_complete() -> None:
    text = "```python\nx = 1\n"
    assert not draw(text, growing=True).lines[0].content.spans
    assert draw(text + "```\n\nnext", growing=True).lines[0].content.spans
    assert draw(text).lines[0].content.spans


async def test_lines_are_wrapped_again_at_another_width_and_can_be_selected() -> None:
    app = MarkdownApp(LONG)
    async with app.run_test(size=(40, 60)) as pilot:
        await pilot.pause()
        narrow = app.body.size.height
        await pilot.resize_terminal(80, 60)
        await pilot.pause()
        assert app.body.size.height < narrow
        assert "".join(app.drawn().split()) == "".join(text_of(LONG).split())
        x, y = next((row.index("said"), y) for y, row in enumerate(app.drawn().split("\n")) if "said" in row)
        await pilot.mouse_down(app.body, offset=(x, y))
        await pilot.hover(app.body, offset=(x + 3, y))
        await pilot.mouse_up(app.body, offset=(x + 3, y))
        assert app.screen.get_selected_text() == "said"


async def test_a_resize_of_a_long_text_ends_at_the_new_width() -> None:
    text = "word " * 1_500 + "\n\n" + "x" * 9_000
    app = MarkdownApp(text)
    async with app.run_test(size=(40, 60)) as pilot:
        for width in (40, 80):
            await pilot.resize_terminal(width, 60)
            while app.body.size.height != rows(text, app.body.size.width):
                await pilot.pause(0.01)
        assert "".join(app.drawn().split()) == "".join(text.split())


def rows(text: str, width: int) -> int:
    """How many rows a text takes."""
    return sum(line.content.get_height({}, max(width, 1)) for line in draw(text).lines)


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
