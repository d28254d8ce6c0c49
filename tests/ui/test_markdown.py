"""Markdown from outside: drawn as text, cleaned after entities are decoded, in steps whatever its size."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest
from textual.app import ComposeResult
from textual.geometry import Region
from textual.strip import Strip

from tests.support.markdown import draw
from tests.support.panes import ThemedApp
from tui_agent.ui.markdown import rendering as markdown_blocks
from tui_agent.ui.markdown import streaming as markdown
from tui_agent.ui.markdown.message_text import MOST_STRIPS, MessageText
from tui_agent.ui.markdown.rendering import MOST_TOGETHER, coloured
from tui_agent.ui.markdown.streaming import MOST_LINES, TOO_DEEP, TOO_LONG, DrawnLines, Reading
from tui_agent.ui.safe_text import parts
from tui_agent.ui.widgets.prompt_lines import step_text


def text_of(markdown: str) -> str:
    return "\n".join(getattr(line, "head", "") or line.plain for line in draw(markdown).lines)


@pytest.mark.parametrize(
    ("written", "drawn"),
    [
        ("# Title\n\nSome *text* and `code`.", "Title\n\nSome text and code."),
        ("- a\n- b\n  - c\n\n1. x\n2. y", "• a\n• b\n  ◦ c\n\n1. x\n2. y"),
        ("> said\n\nafter", "▏ said\n\nafter"),
        ("| a | b |\n|---|---|\n| long | c |", "a │ b\nlong │ c"),
        ("- [ ] a\n- [x] b\n\n  more\n- c\n\n- d", "○ a\n✓ b\n\n  more\n• c\n\n• d"),
        ("> - a\n>\n>   b\n\n3. x\n   - y\n4. z", "▏ • a\n▏\n▏   b\n\n3. x\n   • y\n4. z"),
        ("see [here].\n\nx\n\n[here]: http://x.y/z\n", "see here (http://x.y/z).\n\nx"),
        ("before\n\n    code\n\nafter", "before\n\ntext\ncode\n\nafter"),
        ("see [here](http://x.y/z)", "see here (http://x.y/z)"),
        ("<b>not bold</b>\n\n<div>\nseen", "<b>not bold</b>\n\n<div> seen"),
        ("- \n- b", "• \n• b"),
    ],
    ids=[
        "heading",
        "lists",
        "quote",
        "table",
        "tasks",
        "items in a quote",
        "reference",
        "code",
        "link",
        "HTML",
        "empty item",
    ],
)
def test_it_is_drawn(written: str, drawn: str) -> None:
    assert text_of(written) == drawn


@pytest.mark.parametrize(
    "entity",
    ["&#x202e;", "&#27;[31m", "&#8203;", "&#x9b;", "&lrm;", "&shy;", "&#x7f;"],
    ids=["override", "escape", "zero width", "CSI", "mark", "soft hyphen", "delete"],
)
@pytest.mark.parametrize(
    "around",
    ["{}", "**{}**", "[{}](x)", "[x]({})", "![{}](x)", "| {} |\n|---|\n| {} |", "# {}", "```{}\nx\n```"],
    ids=["words", "strong", "link", "address", "image", "cells", "heading", "language"],
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
    ids=["items", "paragraphs", "rows", "words", "one word"],
)
def test_what_is_drawn_together_is_small_whatever_the_text(text: str) -> None:
    found = draw(text).lines
    assert all(len(line.content) <= MOST_TOGETHER and "\n" not in line.plain for line in found)
    assert TOO_LONG not in text_of(text)


def test_of_a_huge_text_the_beginning_is_drawn_and_a_line_says_so() -> None:
    shown = text_of("line\n\n" * MOST_LINES)
    assert shown.endswith(TOO_LONG)
    assert MOST_LINES - 1 <= len(shown.split("\n")) - 1 <= MOST_LINES


class MarkdownApp(ThemedApp):
    CSS = "Screen { overflow: hidden; }"

    def __init__(self, text: str) -> None:
        super().__init__()
        self.body = MessageText(text)

    def compose(self) -> ComposeResult:
        yield self.body

    def drawn(self) -> str:
        """What the widget draws, line by line; code is set in, and the mark that copies it is left out."""
        rows = (self.body.render_line(y).text.strip() for y in range(self.body.size.height))
        return "\n".join(re.sub(r" +Ctrl\+O y, y copies$", "", row) for row in rows)


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


def test_complete_blocks_are_not_drawn_again_while_more_comes() -> None:
    reading = Reading()
    first = reading.read(LONG, growing=True)
    second = reading.read(LONG + "more words", growing=True)
    assert len(first.lines) - 3 < second.kept < len(second.lines)
    assert all(old is new for old, new in zip(first.lines[: second.kept], second.lines, strict=False))


@pytest.mark.parametrize(
    "more",
    ["- item *{}*\n", "| {} | b |\n", "x = {}\n", "1. {}\n\n   more\n"],
    ids=["items", "rows", "code", "paragraphs in items"],
)
def test_what_is_open_at_the_end_grows_by_what_has_come(more: str) -> None:
    """A list by items, a table by rows, code by lines: what is settled does not wait for their end."""
    text = {"|": "| a | b |\n|---|---|\n", "x": "```python\n"}.get(more[0], "")
    reading, drawn = Reading(), DrawnLines()
    for number in range(300):
        text += more.format(number)
        drawn = reading.read(text, growing=True)
        changed = len(drawn.lines) - drawn.kept
        assert changed < 8 or number in (10, 100), "a table has its columns laid out again where one is wider"
    assert [getattr(line, "head", "") or line.plain for line in drawn.lines] == text_of(text).split("\n")


def test_code_gets_its_colours_when_it_is_complete() -> None:
    text, reading = "```python\nx = 1\n", Reading()
    assert (
        draw(text).lines[1].content.spans
    )  # this loads the language, for which a growing text does not wait
    assert not reading.read(text, growing=True).lines[1].content.spans
    assert reading.read(text + "```\n\nnext", growing=True).lines[1].content.spans


def test_what_knows_the_words_of_a_language_is_loaded_beside_the_keyboard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes 50 ms. Code in a list and in a quote gets its colours too, behind its marks."""
    monkeypatch.setattr(markdown_blocks, "LOADED", set())
    loaded: list[object] = []
    lexer = markdown_blocks.get_lexer_by_name
    monkeypatch.setattr(
        markdown_blocks, "get_lexer_by_name", lambda *of, **how: loaded.append(of) or lexer(*of, **how)
    )
    text = "1. do\n\n   ```python\n   x = 1\n   y = 2\n   ```\n\n> ```python\n> z = 3\n> ```\n"
    reading = Reading()
    plain = reading.read(text)
    assert loaded == []
    assert [(code.language, code.code) for code in reading.uncoloured] == [
        ("python", "x = 1\ny = 2"),
        ("python", "z = 3"),
    ]
    coloured_later = plain
    for code in list(reading.uncoloured):
        coloured_later = reading.colour(code, coloured(code.code, code.language), coloured_later)
    assert [line.plain for line in coloured_later.lines] == [line.plain for line in plain.lines]
    assert exactly(coloured_later) == exactly(DrawnLines(tuple(Reading().read(text).lines))), (
        "now it is loaded"
    )
    assert exactly(coloured_later) != exactly(plain)


def test_for_an_unknown_language_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """To look for one, pygments reads about each package that is installed."""
    asked: list[object] = []
    monkeypatch.setattr(markdown_blocks, "get_lexer_by_name", lambda *of, **_: asked.append(of))
    reading = Reading()
    drawn = reading.read("".join(f"```none-{number}\nx\n```\n" for number in range(50)))
    assert (asked, reading.uncoloured) == ([], []) and len(drawn.lines) == 149


def test_an_address_that_is_given_later_reaches_the_words_above() -> None:
    reading = Reading()
    text = "see [here]\n\nand\n\n"
    assert reading.read(text, growing=True).lines[0].plain == "see [here]"
    assert reading.read(text + "[here]: http://x.y", growing=True).lines[0].plain == "see [here]"
    found = reading.read(text + "[here]: http://x.y/z\n\nend\n", growing=True)
    assert found.lines[0].plain == "see here (http://x.y/z)" and not found.kept


PARTS = [
    "# Title\n", "para *em* `c`\n", "word ", "word\n", "\n", "\n\n", "- a\n", "- b\n", "  - c\n", "   d\n",
    "* x\n", "1. one\n", "2. two\n", "7) z\n", "   more\n", "    code\n", "```python\nx = 1\n", "```\n", "~~~\n",
    "```py\n", "def f():\n    return 1\n", "> q\n", "> - q\n", ">\n", "---\n", "===\n", "[x]: http://a.b/c\n",
    "see [x] and [y][x]\n", "[y]: <http://q>\n", "- [ ] todo\n", "  ```js\n  a\n  ```\n", "<b>\n", "- \n",
    "+ p\n\n  q\n", "  1. n\n", "\r\n", "a\r\n", "日本語 text\n", "    - deep\n", "***\n", "[long\nlabel]: /u\n",
    "- - -\n", "10. ten\n",
]  # fmt: skip
PARTS += ["| a | b |\n", "|---|---|\n", "| 1 | long words |\n", "|x|\n", "x" * 80 + "\n"]


def documents(count: int, seed: int) -> Iterator[tuple[str, random.Random]]:
    for number in range(count):
        chance = random.Random(seed * 10_000 + number)
        yield "".join(chance.choices(PARTS, k=chance.randrange(1, 30))), chance


def exactly(drawn: DrawnLines) -> list[object]:
    return [(line, line.content.plain, line.content.spans) for line in drawn.lines]


@pytest.mark.parametrize("seed", [1, 2])
def test_what_streams_ends_as_the_same_text_at_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown_blocks, "COLOURED_AT_ONCE", 30)
    if seed == 2:  # what is too long begins early, and little is parsed together
        monkeypatch.setattr(markdown, "_LONG", re.compile(r"^.{61,}$", re.MULTILINE))
        monkeypatch.setattr(markdown, "WINDOW", 40)
    for text, chance in documents(120, seed):
        reading, before, at = Reading(), DrawnLines(), 0
        while at < len(text):
            at += chance.choice((1, 2, 5, 20))
            drawn = reading.read(text[:at], growing=True)
            assert exactly(drawn)[: drawn.kept] == exactly(before)[: drawn.kept], repr(text[:at])
            before = drawn
        drawn = reading.read(text)
        for code in list(reading.uncoloured):
            drawn = reading.colour(code, coloured(code.code, code.language), drawn)
        assert exactly(drawn) == exactly(draw(text)), repr(text)


BAD = {
    "one line": "word " * 20_000,
    "items": "".join(f"- item *{number}*\n" for number in range(1_200)),
    "a table": "| a | b |\n|---|---|\n" + "".join(f"| {n} | {'word ' * (n % 9)}|\n" for n in range(500)),
    "code without an end": "```python\n" + "x = 1  # one\n" * 1_000,
    "fences": "".join(f"```python\nx = {number}\n```\n\nnext\n\n" for number in range(50)),
}


@pytest.mark.parametrize(
    ("kind", "size"),
    [*((kind, (60, 30)) for kind in BAD), ("a table", (40, 10)), ("fences", (300, 100))],
    ids=[*BAD, "a table, narrow", "fences, wide"],
)
async def test_bad_input_looks_the_same_however_it_came(kind: str, size: tuple[int, int]) -> None:
    """Fed in pieces, and resized meanwhile; each letter of it is there."""
    text = BAD[kind]
    app = MarkdownApp("")
    async with app.run_test(size=size) as pilot:
        for at in range(1, 9):
            await app.body.show(text[: at * len(text) // 8], growing=True)
            if at in (3, 5):
                await pilot.resize_terminal(size[0] - 13 * (at == 3), size[1])
        await app.body.show(text)
        whole = MarkdownApp(text)
        async with whole.run_test(size=size) as other:
            pictures: list[list[Strip]] = []
            tall = rows(text, size[0])
            for body, driver in ((app.body, pilot), (whole.body, other)):
                for _ in range(200):
                    if not body._reading.uncoloured and not body._colouring and body.size == (size[0], tall):
                        break
                    await driver.pause(0.05)
                assert body.size == (size[0], tall)
                step = max(body.size.height // 500, 1)
                pictures.append([body.render_line(y) for y in range(0, body.size.height, step)])
            assert pictures[0] == pictures[1]
            body._strips |= {at: [] for at in range(1_000)}
            body.render_lines(Region(0, 0, size[0], 1))
            assert len(body._strips) < MOST_STRIPS, "what is far off the screen is let go"
    shown = "".join(app.body.plain.split())
    letters = re.sub(r"[^a-z0-9]", "", "".join(text.replace("```python", "").split()))
    assert re.sub(r"[^a-z0-9]", "", shown).startswith(letters)


@pytest.mark.parametrize("width", [100, 30, 9])
async def test_a_table_wraps_its_cells_and_becomes_cards_before_words_are_cut(width: int) -> None:
    text = "| name | what it does |\n|---|---|\n| store | keeps what it was given and tells listeners |\n"
    app = MarkdownApp(text)
    async with app.run_test(size=(width, 30)) as pilot:
        await pilot.pause()
        drawn = app.drawn()
        assert all(word in drawn for word in ("store", "keeps", "listeners"))
        assert ("│" in drawn) is (width > 9)
        assert app.body.size.height == {100: 3, 30: 5, 9: 11}[width]


async def test_a_code_block_names_its_language_and_is_copied_by_a_click() -> None:
    app = MarkdownApp("- a\n\n  ```python title=x\n  x = 1\n\n  y = 2\n  ```\n\n```\nz\n```\n")
    async with app.run_test(size=(40, 30)) as pilot:
        await pilot.pause()
        rows = [app.body.render_line(y).text for y in range(app.body.size.height)]
        at = next(y for y, row in enumerate(rows) if row.split()[:1] == ["python"])
        assert rows[at].rstrip().endswith("copies")
        await pilot.click(app.body, offset=(rows[at].index("copies"), at))
        assert app.clipboard == "x = 1\n\ny = 2\n"


async def test_code_has_a_ground_of_its_own_as_wide_as_the_text() -> None:
    app = MarkdownApp("Words.\n\n```python\nx = 1\n```\n")
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        words, *code = ([*app.body.render_line(y)] for y in (0, 2, 3))
        around = {segment.style.bgcolor for segment in words if segment.style}
        for row in code:
            found = {segment.style.bgcolor for segment in row if segment.style}
            assert len(found) == 1 and not found & around
            assert sum(segment.cell_length for segment in row) == 40


def test_a_table_follows_the_alignment_of_its_columns() -> None:
    line = draw("| a | count |\n|---|---:|\n| x | 7 |").lines[1]
    row = "".join(piece.content.plain for piece in next(iter(line.rows(40, line.content))).pieces)
    assert row == "x │     7"


async def test_a_diff_in_an_answer_fills_its_rows_with_the_colours_of_a_change() -> None:
    app = MarkdownApp("```diff\n-old\n+new\n```\n")
    async with app.run_test(size=(40, 10)) as pilot:
        while not app.body._drawn.lines[1].content.spans:
            await pilot.pause(0.01)
        await pilot.pause()
        rows = [[*app.body.render_line(y)] for y in (1, 2)]
        grounds = [{segment.style.bgcolor for segment in row[1:-1] if segment.style} for row in rows]
        assert all(len(found) == 1 for found in grounds) and grounds[0] != grounds[1]
        plain = app.body.visual_style.rich_style.bgcolor
        assert plain not in grounds[0] | grounds[1]


async def test_code_goes_on_below_behind_a_mark() -> None:
    app = MarkdownApp("```\n" + "x" * 30 + "\n```\n\n- item that goes on below\n")
    async with app.run_test(size=(20, 30)) as pilot:
        await pilot.pause()
        _, code, more, _, item, below = app.drawn().split("\n")[:6]
        assert code + more.removeprefix("↪ ") == "x" * 30 and more.startswith("↪ ")
        assert app.body.render_line(5).text.startswith("  ") and (item, below) == (
            "• item that goes on",
            "below",
        )


async def test_a_click_on_a_link_copies_its_address() -> None:
    app = MarkdownApp("see [here](http://x.y/z) now")
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.click(app.body, offset=(1, 0))
        assert app.clipboard == ""
        await pilot.click(app.body, offset=(5, 0))
        assert app.clipboard == "http://x.y/z"


async def test_lines_are_wrapped_again_at_another_width_and_can_be_selected() -> None:
    app = MarkdownApp(LONG)
    async with app.run_test(size=(40, 60)) as pilot:
        await pilot.pause()
        narrow = app.body.size.height
        before = app.drawn()
        await pilot.resize_terminal(80, 60)
        await pilot.pause()
        assert app.body.size.height < narrow
        await pilot.resize_terminal(40, 60)  # a size for which Textual has kept the height
        await pilot.pause()
        assert app.drawn() == before
        await pilot.resize_terminal(80, 60)
        await pilot.pause()
        assert "".join(app.drawn().replace("──┼──", "").split()) == "".join(text_of(LONG).split())
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
    return sum(line.height(max(width, 1)) for line in draw(text).lines)


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("Run <b>all</b> tests &amp; stop", "Run all tests & stop"),
        ("a < b", "a < b"),
        ("&#x202e;&#x9b;x", "�›x"),
    ],
)
def test_the_words_of_a_next_step_are_decoded_and_then_cleaned(label: str, shown: str) -> None:
    assert parts(step_text(label)).plain == shown
