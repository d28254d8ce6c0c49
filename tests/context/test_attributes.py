"""Attributes of the tags around what the model reads: what was put in comes out of a parser again."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.context.attributes import quoted

#: What XML 1.0 can hold at all, see its 2.2.
XML = st.text(
    st.characters(
        codec="utf-8",
        exclude_categories=["Cs", "Cc"],
        include_characters="\t\n\r",
        exclude_characters="\ufffe\uffff",
    )
)


@given(XML)
def test_a_parser_reads_back_what_was_quoted(text: str) -> None:
    assert ElementTree.fromstring(f"<file path={quoted(text)}/>").get("path") == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("src/api.py", '"src/api.py"'),
        ("a & b", '"a &amp; b"'),
        ("<x>", '"&lt;x&gt;"'),
        ('say "hi".md', '"say &quot;hi&quot;.md"'),
        ("it's", '"it\'s"'),
        ("two\nlines", '"two&#10;lines"'),
    ],
)
def test_what_would_end_a_value_or_its_tag_is_an_entity(text: str, expected: str) -> None:
    assert quoted(text) == expected
