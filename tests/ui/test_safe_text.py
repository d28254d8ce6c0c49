"""Text from outside never acts: not on the terminal, not as markup."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tui_agent.ui import safe_text

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)


def acts(character: str) -> bool:
    """Whether a terminal or a reader's eye can be led astray by this character."""
    return unicodedata.category(character) in ("Cc", "Cs") or unicodedata.bidirectional(character) in (
        "LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI",
    )  # fmt: skip


@given(ANY_TEXT)
def test_nothing_that_acts_is_left(text: str) -> None:
    assert not [
        character for character in safe_text.clean(text) if acts(character) and character not in "\n\t"
    ]


@given(ANY_TEXT)
def test_each_character_stays_in_its_column(text: str) -> None:
    assert len(safe_text.clean(text)) == len(text.replace("\r\n", "\n"))


@given(ANY_TEXT)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    once = safe_text.clean(text)
    assert safe_text.clean(once) == once


@given(ANY_TEXT)
def test_one_line_is_one_line(text: str) -> None:
    assert not {"\n", "\t", "\r"} & set(safe_text.one_line(text))


def test_what_was_hidden_is_seen() -> None:
    assert safe_text.clean("a\x1b[31mb\x7f\u202ec") == "a␛[31mb␡�c"


def test_ordinary_text_of_any_language_stays_as_it_is() -> None:
    for text in ("plain", "日本語", "naïve café", "한국어", "עברית", "👩‍👩‍👧", "x\n\ty"):
        assert safe_text.clean(text) == text


def test_markup_is_text() -> None:
    assert safe_text.plain("[b]x[/b] [@click=app.quit]").plain == "[b]x[/b] [@click=app.quit]"
    assert safe_text.parts(("[red]", "bold"), "[/]").plain == "[red][/]"
    assert not safe_text.plain("[b]x[/b]").spans


def test_a_label_for_rich_is_text_too() -> None:
    console = Console(width=40, color_system=None)
    with console.capture() as captured:
        console.print(safe_text.rich_label("[b]x\n\x1b[0m"), end="")
    assert captured.get().rstrip() == "[b]x␤␛[0m"
