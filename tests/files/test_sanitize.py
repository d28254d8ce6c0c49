"""What acts or hides in text from outside is seen, in every form in which text is written."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.files import text as sanitize
from tui_agent.files.names import fault_of_new
from tui_agent.files.text import clean, escaped, hidden, json_escaped, one_line

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)
SHAPING = frozenset("\u200c\u200d") | {chr(c) for c in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))}
#: Text that would be spelled or drawn wrong without its joiners and selectors.
WRITTEN = {
    "a family": "👩‍👩‍👧",
    "a heart on fire": "❤️‍🔥",
    "a keycap": "1️⃣",
    "a rainbow flag": "🏳️‍🌈",
    "a skin tone": "👩🏽‍💻 🤷🏽‍♂️",
    "Persian": "می‌خواهم",
    "Devanagari": "क्‍ष",
    "Sinhala": "ශ්‍රී",
    "a Japanese name": "葛󠄀城",
    "plain": "naïve café 日本語 한국어 עברית\n\tx",
}
#: Joiners, selectors and letters that shape nothing: somebody hides something.
HIDING = {
    "a joiner between Latin letters": "pay\u200dpal",
    "a selector after a letter": "a\ufe0fb",
    "bytes in selectors": "a\U000e0148\U000e0155",
    "two selectors": "❤\ufe0f\ufe0f",
    "tags": "🏴\U000e0067\U000e0062\U000e007f",
    "a Hangul filler": "x\u3164",
    "a joiner of graphemes": "a\u034fb",
}


def dangerous(character: str) -> bool:
    """By Unicode's own categories, with no list of ours; joiners and selectors depend on what is beside them."""
    return (
        unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and character not in SHAPING
        and character not in "\n\t"
    )


def test_every_character_of_unicode_that_acts_or_hides_is_replaced() -> None:
    """One by one and between letters, so that no neighbour excuses it."""
    everything = [chr(code) for code in range(sys.maxunicode + 1)]
    left = [c for c in everything if dangerous(c) and (c in clean(f"a{c}b") or hidden(f"a{c}b") != c)]
    assert not left
    assert not [c for c in SHAPING if c in clean(f"a{c}b")]


def test_plain_lines_are_passed_on_without_a_look_at_each_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a megabyte that look is one call of 16 ms, in which no other thread runs."""
    asked: list[str] = []
    monkeypatch.setattr(sanitize, "_hides", lambda letter: asked.append(letter) or False)
    text = "one\n\ttwo\n"
    assert clean(text) is text
    assert json_escaped(text) is text
    assert not asked
    assert escaped(text) == "one\\n\\ttwo\\n"


@given(ANY_TEXT)
def test_whatever_surrounds_it(text: str) -> None:
    for shown in (clean(text), one_line(text), escaped(text), json_escaped(text)):
        assert not [c for c in shown if dangerous(c)]
    assert not {"\n", "\t"} & set(one_line(text) + escaped(text))


@given(ANY_TEXT)
def test_json_reads_back_as_it_was(text: str) -> None:
    assert json.loads(json_escaped(json.dumps({"a": text}, ensure_ascii=False))) == {"a": text}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_what_shapes_letters_and_emoji_stays(text: str) -> None:
    assert clean(text) == text
    assert not any(hidden(word) for word in text.split())


@pytest.mark.parametrize("text", HIDING.values(), ids=HIDING)
def test_what_shapes_nothing_is_shown_and_makes_no_new_name(text: str) -> None:
    assert len(clean(text)) == len(text)
    assert "�" in clean(text)
    assert "\\" in escaped(text)
    assert "invisible" in fault_of_new(text)


@pytest.mark.parametrize("name", ["a\nb", "\u2028", "a\u202eb", "\u2800", "\u00a0a", "a\ud800", "a\u200fb"])
def test_other_names_that_would_deceive_are_refused(name: str) -> None:
    assert fault_of_new(name)


def test_a_control_character_is_shown_by_its_picture() -> None:
    assert sanitize.clean("a\x01\x1b\x1f\x7f\x80\u202eb\n\t") == "a␁␛␟␡\ufffd\ufffdb\n\t"
