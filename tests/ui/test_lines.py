from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style
from support.panes import HOSTILE

from tui_agent.ui.widgets.line_view import Line, Piece, column, draw, fit, wrap

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=60) | st.just(HOSTILE)


def drawn(line: Line, width: int) -> str:
    return draw(line, width, lambda ink: Style.null()).text


@given(TEXTS, st.integers(0, 40))
def test_a_column_is_exactly_as_wide_as_asked(text: str, width: int):
    assert cell_len(column(text, width)) == width


@given(TEXTS, TEXTS, TEXTS, st.integers(1, 40))
def test_a_line_fills_its_cells_whatever_it_says(name: str, path: str, right: str, width: int):
    line = Line((Piece(name, gives="end"), Piece(path, gives="start")), (Piece(right), Piece("x")))
    assert cell_len(drawn(line, width)) == width


@given(TEXTS, st.integers(4, 30), st.integers(0, 4))
def test_wrapped_lines_are_never_wider_than_asked_and_lose_no_word(text: str, width: int, hang: int):
    lines = wrap(text, width, hang)
    assert all(cell_len(line) <= width for line in lines)


def test_wrapped_lines_hold_every_word():
    assert wrap("none of these patterns matched", 12, 2) == ["none of", "  these", "  patterns", "  matched"]
    assert wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]


def test_the_end_of_a_path_stays():
    assert fit("src/prompts/schema.ts", 12, "start") == "…s/schema.ts"
    assert fit("src/prompts/schema.ts", 12) == "src/prompts…"


def test_wide_characters_are_not_cut_in_half():
    assert fit("日本語の名前", 6) == "日本…"
    assert cell_len(fit("日本語の名前", 6, "start")) <= 6


def test_the_longest_words_that_fit_stand_at_the_right():
    line = Line((Piece("name"),), (Piece("a long word"), Piece("short")))
    assert drawn(line, 20) == "name     a long word"
    assert drawn(line, 12) == "name   short"


def test_the_right_side_goes_before_the_left_is_crowded_out():
    line = Line((Piece("a name that is long", gives="end"),), (Piece("1234567"),))
    assert drawn(line, 12) == "a name that…"
    assert drawn(line, 20) == "a name that… 1234567"


def test_control_characters_and_markup_become_visible_text():
    text = drawn(Line((Piece(HOSTILE),)), 80)
    assert "\x1b" not in text and "\n" not in text and "\u202e" not in text
    assert text.startswith("[red]x[/red] [@click=app.quit]␛[31m␇␤␉日本語")


def test_what_is_shown_only_in_free_cells_takes_none_from_the_others():
    line = Line(
        (Piece("name", gives="end"), Piece("  all of the goal", gives="all")),
        (Piece("a long word"), Piece("x")),
    )
    assert drawn(line, 40) == "name  all of the goal        a long word"
    assert drawn(line, 28) == "name  all of th… a long word"
    assert drawn(line, 20) == "name     a long word"
    assert drawn(line, 8) == "name   x"
